#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <thread>

#include <troupe/runtime/time.hpp>

namespace troupe {

/// Ctrl-C, SIGTERM and a hangup for a program that runs jobs: the first one calls the handler, and the process ends
/// with code 130 if it has not done so by itself soon after the grace; a second one ends it at once. What the process
/// ignores, as a shell's script lets its background ignore Ctrl-C, stays ignored. Blocks these signals in the calling
/// thread, so make it before any other thread. One per process.
class interruption {
public:
  explicit interruption(duration grace);
  ~interruption();
  interruption(const interruption&) = delete;
  interruption& operator=(const interruption&) = delete;

  /// Replaces the handler; called on a thread of this object, at once when the signal has come already.
  void on_signal(std::function<void()> handler);
  bool requested() const noexcept { return requested_; }

private:
  void watch();

  duration grace_;
  std::atomic<bool> requested_ = false;
  std::atomic<bool> over_ = false;
  std::mutex mutex_;
  std::function<void()> handler_;
  std::thread thread_;
};

} // namespace troupe
