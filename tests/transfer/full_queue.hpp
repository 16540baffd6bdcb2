#pragma once

/// A listener that answers nobody any more.

#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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

} // namespace troupe::testing_transfer
