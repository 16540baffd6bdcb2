#pragma once

/// From a dataset and an action to a job. Narrow steps become one stage; shuffles cut. Pure.

#include <cstdint>
#include <string>

#include <troupe/runtime/api/graph.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/build_id.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// What happens where the datasets of one stage carry different profiles (`troupe.scheduler.profile-change`).
enum class profile_change : std::uint8_t {
  error = 0, ///< the job is refused
  merge = 1, ///< the stage gets the larger amount of each
};

/// What applies to all stages of a job.
struct compile_options {
  profile_change on_profile_change = profile_change::error;
  std::string build_id = troupe::build_id(); ///< of this program; compared when a stage is installed
  std::uint32_t max_task_failures = 4;
};

namespace detail {

/// The job that computes `last` and ends every partition with `end`. Parents stand before children; a shuffle that
/// several datasets read is written once. Refused (invalid_profile, with both datasets, both profiles and the cures)
/// where one stage has two profiles and `error` applies.
result<job_spec> compile(const dataset_node& last, const operation& end, const std::string& action,
                         const compile_options& options);

} // namespace detail

} // namespace troupe
