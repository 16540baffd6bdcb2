#pragma once

/// Memory of a process as the kernel counts it.

#include <atomic>
#include <cstdint>
#include <sys/types.h>

#include <troupe/runtime/time.hpp>

namespace troupe {

/// Peak resident memory in bytes (VmHWM) of a process of this user; 0 where it cannot be had, as of one that has ended.
std::uint64_t peak_memory_of(pid_t pid);

/// Data of a process as RLIMIT_DATA counts it (VmData), in bytes; 0 where it cannot be had.
std::uint64_t data_of(pid_t pid);

/// Memory that a process holds for itself: without the files that it maps, and with a part of what several processes
/// share that makes the sum right. Bytes; 0 where it has ended.
std::uint64_t private_memory_of(pid_t pid);
/// Its resident pages that belong to no file, in bytes: the same at a fraction of the cost, and too much where
/// processes share pages after a fork.
std::uint64_t anonymous_memory_of(pid_t pid);

/// Peak resident memory of this process for callers that ask often: read again only when the last reading is old.
/// Any thread.
class own_peak_memory {
public:
  std::uint64_t read(time_point now);

private:
  static constexpr duration max_age = std::chrono::milliseconds{20};

  std::atomic<std::uint64_t> bytes_ = 0;
  std::atomic<time_point::rep> next_reading_ = 0;
};

} // namespace troupe
