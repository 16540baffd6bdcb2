#pragma once

/// What all commands of an executor are allowed and told, as configured.

#include <chrono>

#include <troupe/runtime/execution/failure_logs.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

struct command_terms {
  /// For which what a command has left behind may write its outputs without any of them changing.
  duration writer_grace = std::chrono::minutes{2};
  /// Numeric libraries are told to start as many threads as the task has cpus, unless the user says how many.
  bool thread_variables = true;
  log_limits logs; ///< of failed attempts
};

} // namespace troupe
