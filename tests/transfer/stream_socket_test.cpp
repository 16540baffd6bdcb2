// Connecting to one of several addresses.

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <troupe/runtime/transfer/stream_socket.hpp>
#include <troupe/tests/support/patience.hpp>

#include "listener.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

using testing_transfer::listener;

/// The next one would be taken for the one that is missing.
TEST(stream_sockets, say_when_descriptors_that_came_along_were_dropped) {
  const auto path = ::testing::TempDir() + "troupe-socket-" + std::to_string(::getpid());
  ::unlink(path.c_str());
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  const descriptor listening{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  ASSERT_EQ(::bind(listening.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  for (const std::size_t count : {1u, 9u}) {
    auto reader = stream_socket::connect_local(path);
    ASSERT_TRUE(reader) << reader.error().message;
    const descriptor peer{::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    const std::vector<int> lent(count, listening.get());
    char byte = 'x';
    iovec bytes{&byte, 1};
    std::vector<char> control(CMSG_SPACE(count * sizeof(int)));
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    auto* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(part), lent.data(), count * sizeof(int));
    ASSERT_EQ(::sendmsg(peer.get(), &message, 0), 1);
    char got = 0;
    const auto received = reader->receive_some(&got, 1, troupe::testing::patience(), [] { return false; });
    if (count == 1) {
      ASSERT_TRUE(received) << received.error().message;
      EXPECT_TRUE(reader->take_descriptor());
    } else {
      ASSERT_FALSE(received);
      EXPECT_EQ(received.error().code, ec::overloaded);
    }
  }
  ::unlink(path.c_str());
}

TEST(stream_sockets, go_on_to_the_next_address_and_say_which_one_answered) {
  listener silent{1, true};
  listener awake{2, false};
  auto second = awake.before(nullptr);
  const auto first = silent.before(&second);
  // A thread that stands still uses up the time of all addresses: then once more.
  const auto end = std::chrono::steady_clock::now() + troupe::testing::patience();
  auto stream = stream_socket::connect(first, 200ms, [] { return false; });
  while (!stream && std::chrono::steady_clock::now() < end)
    stream = stream_socket::connect(first, 200ms, [] { return false; });
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
