// Connecting, to all that may be at an address instead of a driver.

#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <caf/event_based_actor.hpp>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// A listening socket on loopback that leaves everything to the kernel until it is told to answer.
class listener {
public:
  explicit listener(int backlog = 16) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    where_.sin_family = AF_INET;
    where_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where_;
    EXPECT_EQ(::bind(fd_, address(), size), 0);
    EXPECT_EQ(::listen(fd_, backlog), 0);
    EXPECT_EQ(::getsockname(fd_, address(), &size), 0);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    ::shutdown(fd_, SHUT_RDWR); // ends `answer_all`
    if (answering_.joinable()) answering_.join();
    for (const int each : filling_) ::close(each);
    ::close(fd_);
  }
  std::uint16_t port() const { return ntohs(where_.sin_port); }

  /// Says `text` to whoever comes, and hangs up once the other side has read it.
  void answer_all(std::string text) {
    answering_ = std::thread{[this, text = std::move(text)] {
      for (;;) {
        const int peer = ::accept(fd_, nullptr, nullptr);
        if (peer < 0) return;
        static_cast<void>(::send(peer, text.data(), text.size(), MSG_NOSIGNAL));
        ::shutdown(peer, SHUT_WR);
        char ignored[256];
        while (::recv(peer, ignored, sizeof ignored, 0) > 0) {}
        ::close(peer);
      }
    }};
  }
  /// Fills the queue: the kernel leaves later connections without an answer.
  void fill() {
    for (int i = 0; i < 4; ++i) {
      filling_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      static_cast<void>(::connect(filling_.back(), address(), sizeof where_));
    }
  }

private:
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&where_); }
  sockaddr_in where_{};
  int fd_;
  std::vector<int> filling_;
  std::thread answering_;
};

class connecting : public ::testing::Test {
protected:
  /// As processes of Troupe end: a heartbeat between the end of CAF's broker and that of its clock is never freed.
  struct heartbeats_end {
    caf::actor_system& of;
    ~heartbeats_end() { cancel_delayed(of); }
  };
  struct config : caf::actor_system_config {
    config() {
      init_types();
      register_types(*this);
      load<caf::io::middleman>();
      // As nodes have them: CAF gives handshakes up at every heartbeat.
      EXPECT_TRUE(set_caf_option(*this, "middleman.heartbeat-interval", "50ms"));
      EXPECT_TRUE(set_caf_option(*this, "middleman.connection-timeout", "2min"));
    }
  };
  error failure(const std::string& host, std::uint16_t port, duration patience = troupe::testing::patience()) {
    const auto found = connect<driver_actor>(system, host, port, patience);
    return found ? error{} : found.error();
  }
  config cfg;
  caf::actor_system system{cfg};
  heartbeats_end last{system};
};

TEST_F(connecting, says_that_a_name_has_no_address) {
  const auto why = failure("no-such-host.invalid", 7077);
  EXPECT_EQ(why.code, ec::unreachable);
  EXPECT_THAT(why.message, HasSubstr("no-such-host.invalid:7077: the host name cannot be resolved"));
}

TEST_F(connecting, says_that_another_program_answers) {
  listener web;
  web.answer_all("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  const auto why = failure("127.0.0.1", web.port());
  EXPECT_EQ(why.code, ec::unreachable);
  EXPECT_THAT(why.message, HasSubstr("what listens there is no Troupe driver"));
  listener curt;
  curt.answer_all("");
  EXPECT_THAT(failure("127.0.0.1", curt.port()).message, HasSubstr("hung up"));
}

TEST_F(connecting, to_somebody_silent_takes_the_patience_and_no_more) {
  listener silent;
  const auto begin = std::chrono::steady_clock::now();
  const auto why = failure("127.0.0.1", silent.port(), 400ms);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 400ms) << "it gave up with CAF's handshake";
  EXPECT_EQ(why.code, ec::unreachable);
  EXPECT_THAT(why.message, AllOf(HasSubstr("no answer came within 400ms (troupe.driver.request-timeout)"),
                                 HasSubstr("stopped or overloaded")));
}

TEST_F(connecting, to_a_host_that_leaves_it_without_an_answer_takes_the_patience_and_no_more) {
  listener full{0};
  full.fill();
  const auto begin = std::chrono::steady_clock::now();
  {
    config other;
    caf::actor_system ending{other};
    const heartbeats_end before_it{ending};
    const auto found = connect<driver_actor>(ending, "127.0.0.1", full.port(), 200ms);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, ec::unreachable);
    EXPECT_THAT(found.error().message, HasSubstr("no answer came within 200ms (troupe.driver.request-timeout)"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 100s) << "the end of the system waited for the kernel's patience";
}

TEST_F(connecting, ends_when_it_is_told_to) {
  listener silent;
  int asked = 0;
  const auto found = connect<driver_actor>(system, "127.0.0.1", silent.port(), 1h, [&] { return ++asked > 3; });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ec::cancelled);
}

/// Descriptors of this process.
std::size_t descriptors() {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator{"/proc/self/fd"}, fs::directory_iterator{}));
}

TEST_F(connecting, leaves_nothing_of_a_port_that_is_closed_as_soon_as_it_is_there) {
  const auto before = descriptors();
  {
    config other;
    caf::actor_system brief{other};
    const heartbeats_end before_it{brief};
    // CAF on its own keeps some fifty of them, by chance.
    for (int i = 0; i < 1000; ++i) {
      const auto published = brief.spawn([](caf::event_based_actor* self) -> caf::behavior {
        harden(self, {});
        return {[](const boxed<acknowledged>&) {}};
      });
      EXPECT_TRUE(publish(brief, published, 0, "127.0.0.1"));
      shut_down(published);
    }
  }
  EXPECT_EQ(descriptors(), before);
}

} // namespace
} // namespace troupe
