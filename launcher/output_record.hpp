#pragma once

/// What is whose among the outputs of a stage: a file beside their folder, `.troupe/STAGE.jsonl`, which says of each
/// task that has made some by which run, from which inputs and by which command. (In the folder itself it would come
/// between those who compare or copy it.) One JSON object a line:
///
///     {"run": R, "job": NAME, "file": PATH, "stage": NAME, "command": [WORD...], "profile": TEXT, "ended": TIME}
///     {"run": R, "partition": N, "inputs": [{"path": P, "bytes": N, "modified": TIME}...], "outputs": [NAME...]}
///
/// where R is SESSION-JOB. Tasks of earlier runs stay in it for as long as an output of theirs does. Nothing depends on
/// the file. It is written at a job's end by who has submitted it, and not where that is killed.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

/// One thread.
class output_record {
public:
  /// Looks at the inputs as they are before the job begins, but for those that it makes itself.
  /// @param job_file that it was read from
  output_record(std::shared_ptr<const job_spec> job, std::string job_file);

  /// Records what the job has made, as far as this process sees it. @param done accepted attempts
  /// @returns sentences about files that lie there and that it has not made
  std::vector<std::string> finish(const std::string& session, const job_end& end,
                                  const std::vector<task_placement>& done);

private:
  struct file_state {
    std::uint64_t bytes = 0;
    std::int64_t modified = 0; ///< seconds since 1970
  };
  struct stage_outputs;

  void look_at(const std::string& input);
  /// @param mark of what the stage has made in this run (made_mark.hpp)
  stage_outputs outputs_of(const stage_spec& stage, const std::vector<bool>& done, const std::string& mark) const;
  std::string task_line(const std::string& run, const stage_spec& stage, partition_index partition);
  void finish_stage(const std::string& run, const stage_spec& stage, const stage_progress& progress,
                    const std::vector<bool>& done, bool failed, std::vector<std::string>& sentences);

  const std::shared_ptr<const job_spec> job_;
  const std::string job_file_;
  const std::int64_t began_;                           ///< nanoseconds since 1970
  std::unordered_map<std::string, file_state> inputs_; ///< of those that were there
  std::unordered_set<std::string> own_;                ///< paths of the job's own outputs that it reads
  std::size_t looks_ = 0;
};

} // namespace troupe
