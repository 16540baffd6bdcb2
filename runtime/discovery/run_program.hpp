#pragma once

/// Runs a small program to its end and takes what it prints. For probing at start-up: blocks the calling thread.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// What to run. No shell is involved: the first word is a path (not searched for), all words are passed as they are.
struct program_call {
  std::vector<std::string> words;
  duration time_out = std::chrono::seconds{10};
  std::size_t max_output = 1 << 20; ///< bytes on standard output
};

/// How it ended.
struct program_output {
  int exit_code = 0; ///< 128 + signal where a signal ended it
  std::string output;
  std::string error_output; ///< the first 4 KiB of standard error

  bool operator==(const program_output&) const = default;
};

/// `run_program`, or a stand-in for it.
using program_runner = std::function<result<program_output>(const program_call&)>;

/// Runs `call` in a process group of its own with an empty standard input, this process's environment and no other open
/// descriptor. When the program ends, exceeds its output or its time, everything left in its group is killed. Any exit
/// code is success here; ec::not_found when there is no such file, ec::io when it cannot be started, ec::overloaded
/// when it prints too much, ec::cancelled when its time is up. Messages name the program.
result<program_output> run_program(const program_call& call);

} // namespace troupe
