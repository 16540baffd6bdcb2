#pragma once

/// How an executor's process ended, as far as whoever started it knows.

#include <cstdint>
#include <string>

namespace troupe {

/// Numbers are wire format.
enum class exit_cause : std::uint8_t {
  unknown = 0,      ///< nobody has seen its end: it fell silent, or was started elsewhere
  exit_code = 1,    ///< it ended by itself
  signal = 2,       ///< somebody, or a defect of its own, has ended it
  memory_limit = 3, ///< the kernel has killed it at its memory limit
  no_memory = 4,    ///< the kernel has killed it because the machine, or a group around the session, had no memory left
};

struct executor_exit {
  exit_cause cause = exit_cause::unknown;
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;        ///< that ended it, else 0
  std::uint64_t memory_limit = 0; ///< bytes; 0: none was enforced
  std::uint64_t peak_memory = 0;  ///< bytes of the executor with its commands; 0: not known

  bool operator==(const executor_exit&) const = default;
};

/// Whether what ran in the process may have ended it: it crashed, left by itself, or was out of memory. Not where it
/// was killed from outside, or nobody knows.
bool is_own_doing(const executor_exit& exit) noexcept;

/// `signal 9 (SIGKILL)`.
std::string signal_text(int signal);

/// For people: `it was killed at its memory limit of 256m, peak memory 256m`; "" where the cause is unknown.
std::string to_string(const executor_exit& exit);

} // namespace troupe
