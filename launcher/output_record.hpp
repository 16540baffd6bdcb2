#pragma once

/// What is whose among the outputs of jobs: a file beside them, `OUTPUT/.troupe/record.jsonl`, which says of each task
/// that has made some by which run, from which inputs and by which command. One JSON object a line:
///
///     {"run": R, "job": NAME, "stage": NAME, "command": [WORD...], "profile": TEXT, "ended": TIME}
///     {"run": R, "partition": N, "inputs": [{"path": P, "bytes": N, "modified": TIME}...], "outputs": [NAME...]}
///
/// where R is SESSION-JOB. Tasks of earlier runs stay in it for as long as an output of theirs does. Nothing depends on
/// the file. It is written at a job's end by who has submitted it, and not where that is killed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

/// One thread.
class output_record {
public:
  /// Looks at the inputs as they are before the job begins.
  explicit output_record(std::shared_ptr<const job_spec> job);

  /// Records what the job has made, as far as this process sees its output directories. @param done accepted attempts
  /// @returns sentences about files that lie there and that it has not made
  std::vector<std::string> finish(const std::string& session, const job_end& end,
                                  const std::vector<task_placement>& done);

private:
  struct file_state {
    std::uint64_t bytes = 0;
    std::int64_t modified = 0; ///< seconds since 1970
  };
  const file_state* state_of(const std::string& input);

  const std::shared_ptr<const job_spec> job_;
  std::unordered_map<std::string, file_state> inputs_; ///< of those that were there
};

} // namespace troupe
