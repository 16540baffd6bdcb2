#pragma once

/// What the dag scheduler says about jobs: progress, end, results. Immutable values.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/accumulated.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// accepted -> running -> succeeded | failed | cancelled. Numbers are wire format.
enum class job_state : std::uint8_t { accepted = 0, running = 1, succeeded = 2, failed = 3, cancelled = 4 };
/// docs/state-machines.md has the arrows. Numbers are wire format.
enum class stage_state : std::uint8_t { waiting = 0, running = 1, complete = 2, failed = 3 };
std::string_view to_string(job_state state) noexcept;
std::string_view to_string(stage_state state) noexcept;

/// One stage of one job at one moment.
struct stage_progress {
  stage_id stage;
  std::string name;
  std::string profile; ///< for people: `default`, or to_string of the profile
  profile_id profile_number;
  stage_state state = stage_state::waiting;
  attempt_number attempt = 0;
  std::uint32_t tasks = 0;
  std::uint32_t running = 0; ///< handed out and not ended
  std::uint32_t done = 0;
  std::uint32_t failures = 0;        ///< attempts that failed
  std::uint32_t executors = 0;       ///< that ran at least one task of it
  std::uint64_t run_nanoseconds = 0; ///< of all attempts together
  std::uint64_t cpu_nanoseconds = 0;
  std::uint64_t peak_memory = 0; ///< bytes, the largest seen
  std::uint64_t output_bytes = 0;
  std::uint64_t wall_nanoseconds = 0; ///< from the first launch to the end, or to now
  /// A file in the directory of a command that was probably wanted, and goes (command_hints.hpp); "": none.
  std::string left;

  bool operator==(const stage_progress&) const = default;
};

/// One job at one moment.
struct job_progress {
  job_id job;
  std::string name;
  job_state state = job_state::accepted;
  std::vector<stage_progress> stages;
  std::uint64_t wall_nanoseconds = 0;
  std::string waiting_for;          ///< why nothing of it runs, "" when something does
  std::string group;                ///< see job_spec
  std::vector<accumulated> counted; ///< in accumulators by its tasks so far, ascending names

  bool operator==(const job_progress&) const = default;
};

/// A result that stayed on the executor that made it because of its size.
struct result_location {
  partition_index partition = 0;
  attempt_number attempt = 0;
  stage_id stage;
  block_endpoint endpoint;
  std::uint64_t bytes = 0;

  bool operator==(const result_location&) const = default;
};

/// Results of a stage, in partition order.
struct job_results {
  packed_column values;                   ///< one per partition; "" for one that is in `elsewhere`
  std::vector<result_location> elsewhere; ///< ascending partition

  bool operator==(const job_results&) const = default;
};

/// Which attempts were accepted where; the user asks which executor and address ran what.
struct task_placement {
  stage_id stage;
  partition_index partition = 0; ///< the first of `count` consecutive ones
  std::uint32_t count = 1;
  attempt_number attempt = 0;
  executor_id executor;
  std::string host;
  allotment holding;

  bool operator==(const task_placement&) const = default;
};

/// The end of a job.
struct job_end {
  job_id job;
  error failure;                              ///< ec::none on success
  job_progress progress;                      ///< as it stood at the end
  std::shared_ptr<const job_results> results; ///< of the last stage where it keeps results; null on failure
  std::uint64_t result_bytes = 0;

  bool operator==(const job_end& other) const;
};

/// Makes the end of a job whose values are more than `most` bytes together a failure without results: a message that
/// large reaches nobody in another process. @returns whether it has done so
bool drop_what_cannot_travel(job_end& end, std::size_t most);

} // namespace troupe
