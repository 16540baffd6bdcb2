#pragma once

/// How failures reach the author of a job: as one exception type.

#include <stdexcept>
#include <utility>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

/// A job that could not be built, was refused, failed or was cancelled. `what()` is one text for people: for a failed
/// task it names stage, partition, attempt and executor, then the task's own message and the last lines of its standard
/// error. `troupe::run` prints it and returns `exit_code_of(code())`.
class job_error : public std::runtime_error {
public:
  explicit job_error(const error& failure, job_progress progress = {})
    : std::runtime_error(failure.message), code_(failure.code), progress_(std::move(progress)) {}

  ec code() const noexcept { return code_; }
  /// The job as it stood at its end; no stages where it never started.
  const job_progress& progress() const noexcept { return progress_; }

private:
  ec code_;
  job_progress progress_;
};

} // namespace troupe
