// Gangs that run: how their tasks meet, and how one that fails takes the others along (spec BA-9 to BA-12).

#include <algorithm>
#include <map>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

void dag_scheduler::on_arrival(executor_index e, const barrier_arrival& a, time_point now) {
  auto* stage = find_stage(a.stage);
  // Late: its gang has failed since, and it is being ended. Or forged.
  if (!stage || !stage->rounds || stage->attempt != a.stage_attempt || a.text.size() > max_gather_text ||
      !stage->tasks.is_current(a.partition, a.attempt, e)) {
    ++stale_;
    return;
  }
  answer(*stage, stage->rounds->on_arrival(a, now));
}

/// Tells those that wait no longer, and knows which gangs meet from now on.
void dag_scheduler::answer(const stage_run& stage, std::optional<barrier_coordinator::verdict> verdict) {
  if (stage.rounds->waiting_since())
    meeting_.insert(stage.id);
  else
    meeting_.erase(stage.id);
  if (!verdict) return;
  std::map<executor_index, std::vector<partition_index>> where;
  for (const auto p : verdict->partitions) where[stage.tasks.executor_of(p)].push_back(p);
  for (auto& [e, partitions] : where)
    orders_for(e).barriers.push_back(
        {stage.id, stage.attempt, verdict->round, std::move(partitions), verdict->texts, verdict->failure});
}

/// Each gang has a clock of its own (spec BA-12). @returns whether any was late
bool dag_scheduler::fail_late_rounds(time_point now) {
  std::vector<stage_id> late;
  for (const auto id : meeting_) {
    const auto& stage = *find_stage(id);
    if (stage.spec->sync_timeout != never && now - *stage.rounds->waiting_since() >= stage.spec->sync_timeout)
      late.push_back(id);
  }
  for (const auto id : late) {
    auto& stage = *find_stage(id);
    answer(stage, stage.rounds->on_timeout(stage.spec->sync_timeout));
  }
  return !late.empty();
}

void dag_scheduler::end_rounds(stage_run& stage) {
  stage.rounds.reset();
  meeting_.erase(stage.id);
}

/// An attempt of a gang has ended without success, and so have all. Once for each attempt of the gang it counts, if it
/// is the gang's own fault: `exact` allows it as many as missing inputs may end (spec BA-9, DG-6).
/// @pre the attempt was current
void dag_scheduler::on_gang_failure(job_run& job, stage_run& stage, partition_index partition, attempt_number attempt,
                                    executor_id executor, const std::string& why, bool blame, failure_cause cause,
                                    time_point now, effects::list& out) {
  (void) stage.tasks.requeue(partition, attempt, false);
  if (blame) ++stage.failures;
  break_gang(stage, why);
  auto& broken = broken_.at(stage.id);
  if (!blame || std::exchange(broken.blamed, true)) return;
  broken.why = why;
  const auto step = escalations_of(stage.tasks.lane_of(partition));
  if (cause == failure_cause::memory_limit && step < stage.escalations.size()) {
    broken.escalates = true;
    out.push_back(effects::publish{
        events::task_escalated{stage.id, partition, attempt, executor, stage.escalations[step].profile}});
    return;
  }
  const bool exact = options_.matching == profile_matching::exact;
  const auto allowed = exact ? options_.max_stage_attempts : job.spec->max_task_failures;
  ++stage.gang_failures;
  if (cause == failure_cause::certain) {
    fail(job, make_error(ec::task_failed, why + " (no other attempt can change that)"), now, out);
    return;
  }
  if (stage.gang_failures + (exact ? stage.fetch_failures : 0) < allowed) return;
  const auto count = std::to_string(stage.gang_failures + (exact ? stage.fetch_failures : 0));
  const auto name = "stage " + std::to_string(stage.index) + " (" + stage.spec->name + ")";
  fail(job,
       make_error(ec::task_failed, exact ? name + " has failed the maximum allowable number of times: " + count +
                                               ". Most recent failure reason: Stage failed because a barrier task "
                                               "finished unsuccessfully: " +
                                               why
                                         : why + " (the whole barrier stage failed with it; failure " + count + " of " +
                                               std::to_string(allowed) + " allowed)"),
       now, out);
}

/// All of it runs again: see `settle`, which has to be called.
void dag_scheduler::break_gang(const stage_run& stage, const std::string& why) {
  broken_.try_emplace(stage.id, broken_gang{why});
}

/// Ends what is left of a gang that has failed. It waits for its next attempt.
/// @returns false when the job has failed of it
bool dag_scheduler::restart_gang(job_run& job, stage_run& stage, time_point now, effects::list& out) {
  const auto broken = std::move(broken_.extract(stage.id).mapped());
  // It may have failed while it waits for inputs that were lost under it: then, too, what is left of it ends.
  if (job.finished() || (stage.state != stage_state::running && stage.state != stage_state::waiting))
    return !job.finished();
  const bool exact = options_.matching == profile_matching::exact;
  if (exact && !stage.spec->is_shuffle_map()) {
    fail(job,
         make_error(ec::task_failed, "stage " + std::to_string(stage.index) + " (" + stage.spec->name +
                                         "): Could not recover from a failed barrier ResultStage. Most recent failure "
                                         "reason: " +
                                         broken.why),
         now, out);
    return false;
  }
  tell_restart(stage, broken.why, now, out);
  clear_gang(job, stage, out);
  if (broken.escalates) {
    const auto lane = lane_of(escalations_of(stage.tasks.lane_of(0)) + 1, false);
    for (partition_index p = 0; p < stage.tasks.size(); ++p) change_lane(stage, p, lane, now);
  }
  unready(stage);
  deadlines_.erase(stage.id);
  if (stage.state == stage_state::running) transition("stage", stage.state, stage_state::waiting);
  if (exact) hold_back(stage, now);
  return true;
}

/// All its tasks wait again: those that run are killed, and what others have made is forgotten, since nobody can use a
/// part of it.
void dag_scheduler::clear_gang(job_run& job, stage_run& stage, effects::list& out) {
  end_rounds(stage);
  discard_publications(stage, out);
  stage.gang.reset();
  for (partition_index p = 0; p < stage.tasks.size(); ++p) {
    const auto attempt = stage.tasks.attempt_of(p);
    if (stage.tasks.status_of(p) == task_set::status::running) {
      orders_for(stage.tasks.executor_of(p)).kills.push_back({stage.id, p, attempt});
      (void) stage.tasks.requeue(p, attempt, false);
    } else if (stage.tasks.status_of(p) == task_set::status::done) {
      stage.tasks.invalidate(p);
    }
  }
  for (const auto id : job.touched.all())
    if (const auto e = pool_.find(id); e != no_executor) pool_[e].kept.erase(stage.id);
  stage.drop_values();
}

} // namespace troupe
