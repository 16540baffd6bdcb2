#include <troupe/runtime/events/event.hpp>

namespace troupe::events {

namespace {

/// One overload per event, so that a new event without a name does not compile.
struct names {
  std::string_view operator()(const profile_added&) const noexcept { return "profile-added"; }
  std::string_view operator()(const job_submitted&) const noexcept { return "job-submitted"; }
  std::string_view operator()(const job_ended&) const noexcept { return "job-ended"; }
  std::string_view operator()(const stage_submitted&) const noexcept { return "stage-submitted"; }
  std::string_view operator()(const stage_completed&) const noexcept { return "stage-completed"; }
  std::string_view operator()(const stage_restarted&) const noexcept { return "stage-restarted"; }
  std::string_view operator()(const lease_granted&) const noexcept { return "lease-granted"; }
  std::string_view operator()(const lease_released&) const noexcept { return "lease-released"; }
  std::string_view operator()(const lease_refused&) const noexcept { return "lease-refused"; }
  std::string_view operator()(const tasks_succeeded&) const noexcept { return "tasks-succeeded"; }
  std::string_view operator()(const task_failed&) const noexcept { return "task-failed"; }
  std::string_view operator()(const speculative_task_submitted&) const noexcept { return "speculative-task-submitted"; }
  std::string_view operator()(const task_escalated&) const noexcept { return "task-escalated"; }
  std::string_view operator()(const attempt_overdue&) const noexcept { return "attempt-overdue"; }
  std::string_view operator()(const executor_requested&) const noexcept { return "executor-requested"; }
  std::string_view operator()(const executor_added&) const noexcept { return "executor-added"; }
  std::string_view operator()(const executor_removed&) const noexcept { return "executor-removed"; }
  std::string_view operator()(const map_output_lost&) const noexcept { return "map-output-lost"; }
  std::string_view operator()(const executor_excluded&) const noexcept { return "executor-excluded"; }
  std::string_view operator()(const executor_readmitted&) const noexcept { return "executor-readmitted"; }
  std::string_view operator()(const node_excluded&) const noexcept { return "node-excluded"; }
  std::string_view operator()(const node_readmitted&) const noexcept { return "node-readmitted"; }
  std::string_view operator()(const stage_unschedulable&) const noexcept { return "stage-unschedulable"; }
};

} // namespace

std::string_view name_of(const any& event) noexcept { return std::visit(names{}, event); }

} // namespace troupe::events
