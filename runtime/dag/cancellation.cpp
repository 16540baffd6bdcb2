// What is ended on request: jobs, groups of them, stages; what takes longer than it may; and attempts that do not end
// although they should.

#include <algorithm>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

namespace {

error was_cancelled(const std::string& what, const std::string& reason) {
  return make_error(ec::cancelled, what + " was cancelled" + (reason.empty() ? "" : ": " + reason));
}

/// Where what the running commands of a stage have printed is mostly kept (failure_logs.hpp); "" where it has none.
std::string where_logs_are(const stage_run& stage) {
  const auto* command = std::get_if<command_program>(&stage.spec->program);
  if (command == nullptr || stage.tasks.running() == 0) return {};
  const auto parent = command->output_directory.substr(0, command->output_directory.rfind('/'));
  return "; see " + parent + "/.troupe/logs for what those that ran have printed (troupe.logs.keep)";
}

} // namespace

bool dag_scheduler::on_job_cancelled(job_id id, const std::string& reason, time_point now, effects::list& out) {
  if (ended_.contains(id)) return true;
  auto* job = find_job(id);
  if (!job) return false;
  if (!job->finished()) {
    end(*job, job_state::cancelled, make_error(ec::cancelled, reason), now, out);
    schedule(now, out);
  }
  return true;
}

result<void> dag_scheduler::on_stage_cancelled(job_id id, std::uint32_t index, const std::string& reason,
                                               time_point now, effects::list& out) {
  auto* job = find_job(id);
  const auto old = ended_.find(id);
  if (!job && old == ended_.end())
    return make_error(ec::not_found, "there is no job " + std::to_string(id.value) + ": `troupe jobs` lists them");
  const auto stages = job ? job->stages.size() : old->second.progress.stages.size();
  if (index >= stages)
    return make_error(ec::not_found, "job " + std::to_string(id.value) + " has no stage " + std::to_string(index) +
                                         ": its stages have the numbers 0 to " + std::to_string(stages - 1));
  if (!job || job->finished()) return {};
  const auto& stage = job->stages[index];
  if (stage.state == stage_state::complete) return {};
  fail(*job, was_cancelled("stage " + std::to_string(index) + " (" + stage.spec->name + ")", reason), now, out);
  schedule(now, out);
  return {};
}

result<std::vector<job_id>> dag_scheduler::on_group_cancelled(const std::string& group, const std::string& reason,
                                                              time_point now, effects::list& out) {
  std::vector<job_id> open;
  for (const auto& [id, job] : jobs_)
    if (!group.empty() && job.spec->group == group) open.push_back(id);
  const bool known = !open.empty() || (!group.empty() && std::any_of(ended_.begin(), ended_.end(), [&](const auto& e) {
    return e.second.progress.group == group;
  }));
  if (!known)
    return make_error(ec::not_found, group.empty() ? "the name of the group is empty"
                                                   : "there is no job of group '" + group +
                                                         "': `troupe jobs` shows the groups of those that are known");
  for (const auto id : open)
    end(*find_job(id), job_state::cancelled, was_cancelled("its group " + group, reason), now, out);
  if (!open.empty()) schedule(now, out);
  return open;
}

/// Stages that have run into their time-out. @returns whether there was any
bool dag_scheduler::fail_overdue_stages(time_point now, effects::list& out) {
  std::vector<stage_id> late;
  for (const auto& [id, deadline] : deadlines_)
    if (deadline <= now) late.push_back(id);
  for (const auto id : late) {
    const auto* stage = find_stage(id);
    if (!stage) continue; // of a job that another one of these has ended
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(stage->spec->timeout).count();
    const auto waits_for = stage->tasks.running() == 0 ? "; " + waiting_for(*stage) : std::string{};
    late_stage_ = id;
    fail(*find_job(stage->job),
         make_error(ec::timed_out, "stage " + std::to_string(stage->index) + " (" + stage->spec->name +
                                       ") did not end within its time-out of " + std::to_string(waited) +
                                       "ms: " + std::to_string(stage->tasks.done()) + " of " +
                                       std::to_string(stage->tasks.size()) + " tasks are done" + waits_for +
                                       where_logs_are(*stage)),
         now, out);
    late_stage_ = {};
  }
  return !late.empty();
}

void dag_scheduler::on_overdue(executor_index e, const overdue_attempt& a, time_point now, effects::list& out) {
  auto* lease = pool_.find_lease(a.lease);
  if (!lease || lease->executor != e || !lease->holds(a.stage, a.partition, a.attempt)) {
    ++stale_;
    return;
  }
  auto& record = pool_[e];
  // One that another attempt of its task has beaten costs its slot until it ends, and nobody anything else.
  const auto* its = find_stage(a.stage);
  const bool beaten = its && !its->spec->barrier && !its->tasks.is_current(a.partition, a.attempt, e);
  const bool replaced = !record.info.in_process && !beaten;
  const auto text = "an attempt of stage " + a.stage_name + " of job " + std::to_string(a.job.value) + " (partition " +
                    std::to_string(a.partition) + ", attempt " + std::to_string(a.attempt) +
                    ") did not end within troupe.task.kill-grace after it was " +
                    (a.timed_out ? "asked to, since it ran into its task-timeout" : "cancelled") + ": it still runs " +
                    std::to_string(a.waited_nanoseconds / 1'000'000) +
                    "ms later; a long task looks at task_context::cancelled() now and then";
  out.push_back(effects::publish{
      events::attempt_overdue{a.job, a.stage, a.partition, a.attempt, record.info.executor, replaced, text}});
  // What ends with its job is nobody's concern any more; what has a time-out is, and may not go round for ever.
  const auto* stage = a.timed_out && !beaten ? its : nullptr;
  if (stage && !replaced) fail(*find_job(stage->job), make_error(ec::timed_out, text), now, out);
  if (replaced) {
    if (stage) record.guilty.insert({a.stage, a.partition, a.attempt});
    // Only the end of its process ends the thread. Nothing starts there until it is gone.
    if (record.status == executor_record::state::active) {
      drain(e);
      load_due_ = true;
    }
    orders_for(e).stop = true;
    out.push_back(effects::give_up_executor{record.info.executor, record.info.epoch, text, false});
    return;
  }
  // The thread cannot be ended without the driver. What waits behind the attempt goes elsewhere.
  overdue_.insert_or_assign(a.lease, a);
  lease->draining = true;
  for (const auto& run : lease->runs)
    for (auto p = run.first; p < run.first + run.count; ++p)
      if (run.stage != a.stage || p != a.partition || run.attempt != a.attempt)
        orders_for(e).kills.push_back({run.stage, p, run.attempt});
}

void dag_scheduler::forget_overdue(lease_id lease, stage_id stage, partition_index partition, attempt_number attempt) {
  const auto it = overdue_.find(lease);
  if (it != overdue_.end() && it->second.stage == stage && it->second.partition == partition &&
      it->second.attempt == attempt)
    overdue_.erase(it);
}

/// How many slots that tasks of the demand could have are lost to attempts that do not end; "" where none is.
std::string dag_scheduler::lost_slots(demand_index d) const {
  std::uint32_t slots = 0;
  const overdue_attempt* example = nullptr;
  for (const auto& [id, attempt] : overdue_) {
    const auto* lease = pool_.find_lease(id);
    if (!lease || !pool_.satisfies(lease->executor, d)) continue;
    ++slots;
    example = &attempt;
  }
  if (slots == 0) return {};
  return "; " + std::string{slots == 1 ? "a slot is" : std::to_string(slots) + " slots are"} +
         " taken by cancelled attempts that do not end (stage " + example->stage_name + " of job " +
         std::to_string(example->job.value) + ": troupe.task.kill-grace)";
}

} // namespace troupe
