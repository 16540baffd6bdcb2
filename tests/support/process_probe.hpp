#pragma once

/// What the operating system says about processes, descriptors and ports: what is left behind, and how big it is.
/// Linux. Any thread.

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/runtime/time.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe::testing {

/// A process as `/proc` shows it.
struct seen_process {
  pid_t pid = 0;
  pid_t parent = 0;
  char state = '?'; ///< R, S, D, T (stopped), Z (ended, not waited for), …
  std::string command_line;

  /// `pid 12 (state S): /usr/bin/x y`
  std::string text() const;
};

/// The process, or one with pid 0 where there is none.
seen_process look_at(pid_t pid);
/// True while the process runs or is stopped; one that has ended and was not waited for does not count.
bool is_alive(pid_t pid);
/// Whether the process was started as an executor by its own program: that, or its keeper. Its arguments do not tell.
bool is_executor(pid_t pid);
/// Every other process of this user that names `path` in its arguments or its environment, or works in it.
std::vector<seen_process> processes_of(const std::string& path);
/// Children of a process, whatever their state.
std::vector<seen_process> children_of(pid_t pid);

/// Descriptors of this process with what they refer to; the one that reading them takes is left out.
std::map<int, std::string> open_descriptors();
/// TCP ports on which this process listens, by the number of the socket.
std::map<std::uint64_t, std::uint16_t> listening_ports();

/// Bytes of a process that are in memory (VmRSS); 0 where there is no such process.
std::uint64_t resident_memory(pid_t pid);

/// Waits until `condition()` holds, looking again after 1 ms at first and then ever less often, up to 50 ms.
/// @returns whether it held before the deadline
template <class Condition>
bool wait_until(Condition condition, duration deadline = patience());

namespace detail {
/// The pause before look number `look`, from 0.
void pause_before_look(unsigned look);
} // namespace detail

template <class Condition>
bool wait_until(Condition condition, duration deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  for (unsigned look = 0;; ++look) {
    if (condition()) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    detail::pause_before_look(look);
  }
}

} // namespace troupe::testing
