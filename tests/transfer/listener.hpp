#pragma once

/// Listening sockets, also one that answers nobody any more.

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/tests/support/patience.hpp>

namespace troupe::testing_transfer {

/// Waits until the first of the connections that have been begun stands in the queue of a listener with a backlog of 0,
/// which is full then: `connect` may return before.
inline void await_full_queue(int listener) {
  const auto end = std::chrono::steady_clock::now() + testing::patience();
  tcp_info info{};
  do {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "no connection arrives";
    std::this_thread::yield();
    socklen_t size = sizeof info;
    ASSERT_EQ(::getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  } while (info.tcpi_unacked == 0);
}

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
    if (full) await_full_queue(fd_);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;
  ~listener() {
    for (const int each : filling_) ::close(each);
    ::close(fd_);
  }
  std::uint16_t port() const { return ntohs(where_.sin_port); }
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

/// A port of 127.0.0.1 that is taken, and at which nobody listens: no other process can take it meanwhile.
class silent_port {
public:
  silent_port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    where_.sin_family = AF_INET;
    where_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where_;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&where_), size), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&where_), &size), 0);
  }
  silent_port(const silent_port&) = delete;
  silent_port& operator=(const silent_port&) = delete;
  ~silent_port() { ::close(fd_); }
  std::uint16_t number() const { return ntohs(where_.sin_port); }

private:
  sockaddr_in where_{};
  int fd_;
};

} // namespace troupe::testing_transfer
