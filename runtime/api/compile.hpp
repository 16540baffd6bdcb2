#pragma once

/// From a dataset and an action to a job. Narrow steps become one stage; shuffles cut, and so do changes of profile.
/// Pure.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <troupe/runtime/api/graph.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/build_id.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// What applies to all stages of a job.
struct compile_options {
  profile_change on_profile_change = profile_change::by_matching;
  std::string build_id = troupe::build_id(); ///< of this program; compared when a stage is installed
  std::uint32_t max_task_failures = 4;
  std::string pool{}; ///< see job_spec::pool
  duration stage_timeout = never;
  duration task_timeout = never;
  duration sync_timeout = never; ///< of barrier stages
};

namespace detail {

/// A job, and what it needs.
struct compiled_job {
  job_spec spec;
  std::vector<std::shared_ptr<const void>> held; ///< until it has ended
};

/// The job that computes `last` and ends every partition with `end`. Parents stand before children; a shuffle that
/// several datasets read is written once. Where several profiles meet in a stage that is not cut it names them all:
/// what becomes of them is decided by the session's rules, where the job is submitted.
result<compiled_job> compile(const dataset_node& last, const operation& end, const std::string& action,
                             const compile_options& options);

} // namespace detail

} // namespace troupe
