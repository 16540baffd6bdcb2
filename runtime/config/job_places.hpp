#pragma once

/// Where the stages of a job put what they make, and what they take: no output may lie on an input, on a file that the
/// job file names, or on another output, and no `for-each` may take for an input what this job makes, since it would
/// find what an earlier run has left.

#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/config/file_place.hpp>
#include <troupe/runtime/config/job_stage.hpp>
#include <troupe/runtime/config/job_tasks.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// What all stages of a job share.
struct job_folders {
  std::string file;      ///< the job file, as errors name it
  std::string directory; ///< absolute; relative paths start there
  std::string output;    ///< absolute; parent of the stages' output directories
};

/// Refuses a `for-each` of `stage` that may find what another stage among `makers` publishes: before its files are
/// looked up, since in the first run there are none. Names both stages and the cure.
result<void> check_patterns(const job_folders& job, const declared_stage& stage,
                            const std::vector<declared_stage>& makers);

/// The same for what `stage` publishes itself. `check_places` comes first, which says more of a file that is there.
result<void> check_own_patterns(const job_folders& job, const declared_stage& stage);

struct placed_stage {
  const declared_stage* declared;
  const planned_stage* planned;
};

/// Refuses outputs that would lie on one another, on a file that `for-each` has found, or on a file that the job file
/// names: `named` has what such a file is and its absolute path; words of `run` and values of `environment` are looked
/// at here. A stage may name what a stage before it publishes. Errors name both.
result<void> check_places(const job_folders& job, const std::vector<placed_stage>& stages,
                          const std::vector<std::pair<std::string, std::string>>& named, file_places places);

} // namespace troupe
