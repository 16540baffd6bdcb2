// Connecting to one of several addresses.

#include <chrono>
#include <vector>

#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/runtime/transfer/stream_socket.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// A listening socket at 127.0.0.`last`. One whose queue is full leaves who comes without an answer.
class listener {
public:
  listener(std::uint32_t last, bool full) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    where_.sin_family = AF_INET;
    where_.sin_addr.s_addr = htonl((127u << 24) + last);
    socklen_t size = sizeof where_;
    EXPECT_EQ(::bind(fd_, address(), size), 0);
    EXPECT_EQ(::listen(fd_, full ? 0 : 16), 0);
    EXPECT_EQ(::getsockname(fd_, address(), &size), 0);
    for (int i = 0; full && i < 4; ++i) {
      filling_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      static_cast<void>(::connect(filling_.back(), address(), size));
    }
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    for (const int each : filling_) ::close(each);
    ::close(fd_);
  }
  addrinfo before(addrinfo* next) {
    addrinfo out{};
    out.ai_family = AF_INET;
    out.ai_socktype = SOCK_STREAM;
    out.ai_addr = address();
    out.ai_addrlen = sizeof where_;
    out.ai_next = next;
    return out;
  }

private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&where_); }
  sockaddr_in where_{};
  int fd_;
  std::vector<int> filling_;
};

TEST(stream_sockets, go_on_to_the_next_address_and_say_which_one_answered) {
  listener silent{1, true};
  listener awake{2, false};
  auto second = awake.before(nullptr);
  const auto first = silent.before(&second);
  const auto stream = stream_socket::connect(first, 200ms, [] { return false; });
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream->peer(), "127.0.0.2");
}

TEST(stream_sockets, share_the_time_among_all_addresses) {
  listener silent{1, true};
  auto third = silent.before(nullptr);
  auto second = silent.before(&third);
  const auto first = silent.before(&second);
  // A wait asks every 50 ms; on a busy machine less often.
  int asked = 0;
  const auto stream = stream_socket::connect(first, 600ms, [&] { return ++asked < 0; });
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, ec::unreachable);
  EXPECT_LE(asked, 12 + 2 * 3);
}

} // namespace
} // namespace troupe
