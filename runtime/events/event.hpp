#pragma once

/// The history of a session as facts: plain values, in the order in which the owner of the state decided them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/scheduling/executor_exit.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe::events {

struct profile_added {
  profile_id profile;
  resource_profile content;
  bool operator==(const profile_added&) const = default;
};
struct job_submitted {
  job_id job;
  std::string name;
  std::uint32_t stages = 0;
  stage_id first_stage; ///< its stages are numbered from here on
  bool operator==(const job_submitted&) const = default;
};
struct job_ended {
  job_id job;
  job_state state = job_state::succeeded;
  error failure;
  bool operator==(const job_ended&) const = default;
};
struct stage_submitted {
  job_id job;
  stage_id stage;
  attempt_number attempt = 0;
  std::string name;
  profile_id profile;
  std::uint32_t tasks = 0;
  bool operator==(const stage_submitted&) const = default;
};
struct stage_completed {
  job_id job;
  stage_id stage;
  attempt_number attempt = 0;
  error failure;
  std::string name;
  profile_id profile;
  std::uint32_t tasks = 0;       ///< of this attempt
  std::uint64_t nanoseconds = 0; ///< since this attempt was submitted
  bool operator==(const stage_completed&) const = default;
};
/// A task of a gang has failed, or what it had made was lost: all of its tasks run again, in the next stage attempt.
struct stage_restarted {
  job_id job;
  stage_id stage;
  attempt_number attempt = 0; ///< that has failed
  std::string reason;
  std::string name;
  profile_id profile;
  std::uint32_t tasks = 0;       ///< of this attempt
  std::uint64_t nanoseconds = 0; ///< since this attempt was submitted
  bool operator==(const stage_restarted&) const = default;
};
struct lease_granted {
  lease_id lease;
  executor_id executor;
  profile_id profile;
  allotment holding;
  bool operator==(const lease_granted&) const = default;
};
struct lease_released {
  lease_id lease;
  executor_id executor;
  bool operator==(const lease_released&) const = default;
};
struct lease_refused {
  lease_id lease;
  executor_id executor;
  std::string reason;
  bool operator==(const lease_refused&) const = default;
};
/// Attempts of one batch that ended well; one event per batch, never per task.
struct tasks_succeeded {
  stage_id stage;
  lease_id lease;
  executor_id executor;
  std::uint32_t count = 0;
  partition_index first = 0;
  bool operator==(const tasks_succeeded&) const = default;
};
struct task_failed {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  executor_id executor;
  task_status status = task_status::failed;
  failure_cause cause = failure_cause::error;
  std::string message;
  bool operator==(const task_failed&) const = default;
};
/// A task has run for longer than others of its stage: it is to have a second attempt on another executor.
struct speculative_task_submitted {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0; ///< that runs
  executor_id executor;       ///< where
  attempt_number stage_attempt = 0;
  bool operator==(const speculative_task_submitted&) const = default;
};
/// An attempt ran out of memory: the next one of its task has more.
struct task_escalated {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0; ///< that ran out of memory
  executor_id executor;
  profile_id profile; ///< of the next one
  bool operator==(const task_escalated&) const = default;
};
/// An attempt of a native task was asked to end and still runs after `troupe.task.kill-grace`. Once for each. An
/// executor process is replaced; in the driver's process the thread is given up, and its slot with it until it ends.
struct attempt_overdue {
  job_id job;
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  executor_id executor;
  bool replaced = false; ///< its executor is
  std::string message;
  bool operator==(const attempt_overdue&) const = default;
};
struct executor_requested {
  request_id request;
  shape_id shape;
  std::string profile;
  bool operator==(const executor_requested&) const = default;
};
struct executor_added {
  executor_info info;
  std::optional<profile_id> profile; ///< that it was asked for as; none: nobody has asked, or for no particular one
  bool operator==(const executor_added&) const = default;
};
struct executor_removed {
  executor_id executor;
  std::string cause;
  bool lost = false;
  executor_exit exit = {}; ///< where whoever started it has seen its end
  bool operator==(const executor_removed&) const = default;
};
/// An executor gets no tasks of a profile for a while, since too many different ones have failed there.
struct executor_excluded {
  executor_id executor;
  std::string host;
  profile_id profile;
  std::uint32_t failed_tasks = 0;
  std::uint64_t nanoseconds = 0; ///< at most so long
  std::string failure;           ///< the last one
  bool operator==(const executor_excluded&) const = default;
};
/// Not told of one that is gone.
struct executor_readmitted {
  executor_id executor;
  profile_id profile;
  std::string cause;
  bool operator==(const executor_readmitted&) const = default;
};
/// No executor of this host, nor one that comes, gets tasks of a profile for a while, since too many are excluded.
struct node_excluded {
  std::string host;
  profile_id profile;
  std::uint32_t excluded_executors = 0; ///< those included that were lost
  std::uint64_t nanoseconds = 0;        ///< at most so long
  std::string failure;                  ///< the last one
  bool operator==(const node_excluded&) const = default;
};
struct node_readmitted {
  std::string host;
  profile_id profile;
  std::string cause;
  bool operator==(const node_readmitted&) const = default;
};
/// A stage has tasks that no executor may run because of exclusions. It fails when that lasts.
struct stage_unschedulable {
  job_id job;
  stage_id stage;
  profile_id profile;
  std::string reason;
  attempt_number attempt = 0; ///< of the stage
  bool operator==(const stage_unschedulable&) const = default;
};
struct map_output_lost {
  stage_id stage;
  partition_index partition = 0;
  executor_id executor;
  bool operator==(const map_output_lost&) const = default;
};

using any = std::variant<profile_added, job_submitted, job_ended, stage_submitted, stage_completed, lease_granted,
                         lease_released, lease_refused, tasks_succeeded, task_failed, executor_requested,
                         executor_added, executor_removed, map_output_lost, attempt_overdue, task_escalated,
                         speculative_task_submitted, executor_excluded, executor_readmitted, node_excluded,
                         node_readmitted, stage_unschedulable, stage_restarted>;

/// The event's name, in kebab-case: `stage-submitted`.
std::string_view name_of(const any& event) noexcept;

/// An event with its place in the history.
struct record {
  std::uint64_t number = 0;          ///< from 1, without gaps
  std::int64_t unix_nanoseconds = 0; ///< wall clock at the owner when it was decided
  any content;
  bool operator==(const record&) const = default;
};

} // namespace troupe::events
