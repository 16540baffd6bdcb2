// Executors that are gone: what ran there, who may have ended them, and how it is tried again.

#include <algorithm>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// The lane of this number, which comes into being when a task first needs it.
task_lane& dag_scheduler::open_lane(stage_run& stage, lane_number number) {
  const auto [it, is_new] = stage.lanes.try_emplace(number);
  auto& lane = it->second;
  if (!is_new) return lane;
  lane.stage = &stage;
  lane.number = number;
  const auto step = escalations_of(number);
  const auto demands = step == 0 ? stage.demands() : demands_of(stage.escalations[step - 1], *stage.spec);
  for (const auto d : demands) {
    auto what = pool_.demand_of(d);
    if (is_alone(number)) {
      auto content = *what.content;
      content.max_tasks_per_executor = 1;
      content.exclusive = true;
      what.content = std::make_shared<const resource_profile>(std::move(content));
      what.alone = true;
    }
    lane.demands.push_back(pool_.intern(std::move(what)));
  }
  return lane;
}

/// From now on the task runs under the conditions of that lane.
void dag_scheduler::change_lane(stage_run& stage, partition_index partition, lane_number number, time_point now) {
  const auto before = stage.lanes.find(stage.tasks.lane_of(partition));
  open_lane(stage, number);
  stage.tasks.move_to(number, partition);
  if (before->second.pending() == 0) unready(before->second);
  if (stage.state == stage_state::running) make_ready(stage, now);
}

/// The attempt has run out of memory: its task has more from now on, if there is a step left, or has more already,
/// since another attempt ran out of it before. @returns whether it has
bool dag_scheduler::escalate(stage_run& stage, partition_index partition, const lease_record& lease,
                             attempt_number attempt, time_point now, effects::list& out) {
  const auto& present = stage.lanes.at(stage.tasks.lane_of(partition));
  const auto step = escalations_of(present.number);
  const auto ran_as = pool_.demand_of(lease.demand).profile;
  if (std::none_of(present.demands.begin(), present.demands.end(),
                   [&](demand_index d) { return pool_.demand_of(d).profile == ran_as; }))
    return true;
  if (step >= stage.escalations.size()) return false;
  suspects_.acquit({stage.id, partition});
  change_lane(stage, partition, lane_of(step + 1, false), now);
  out.push_back(effects::publish{events::task_escalated{
      stage.id, partition, attempt, pool_[lease.executor].info.executor, stage.escalations[step].profile}});
  return true;
}

/// A task that ran alone has ended its executor. Whoever was accused with it is free again.
void dag_scheduler::convict(stage_task task, time_point now) {
  for (const auto& cleared : suspects_.convict(task)) {
    auto& stage = *find_stage(cleared.stage);
    change_lane(stage, cleared.partition, lane_of(escalations_of(stage.tasks.lane_of(cleared.partition)), false), now);
  }
}

/// Whoever may be reading these outputs is told that they do not come: a process that is frozen, or behind a cut wire,
/// would be waited for as long as silence is allowed.
void dag_scheduler::tell_readers_of(executor_id lost, const std::unordered_map<stage_id, kept_partitions>& kept) {
  std::set<executor_index> told;
  for (const auto& [stage_number, partitions] : kept) {
    const auto* stage = find_stage(stage_number);
    if (!stage || !(stage->spec->is_shuffle_map() || stage->hands_on)) continue;
    for (const auto reader : find_job(stage->job)->touched.all()) {
      const auto e = pool_.find(reader);
      if (reader == lost || e == no_executor || pool_[e].in_flight == 0 || !told.insert(e).second) continue;
      orders_for(e).gone.push_back(lost);
    }
  }
}

void dag_scheduler::on_executor_gone(executor_id id, incarnation epoch, const std::string& cause, bool lost,
                                     time_point now, effects::list& out, const executor_exit& exit, bool ended) {
  const auto e = pool_.find(id);
  if (e == no_executor || pool_[e].info.epoch != epoch) {
    ++stale_;
    return;
  }
  out.push_back(effects::publish{events::executor_removed{id, cause, lost, exit}});
  kept_.forget(id);
  std::set<job_id> hit;
  std::vector<std::pair<job_id, error>> failed;
  const auto running = std::count_if(pool_[e].leases.begin(), pool_[e].leases.end(),
                                     [&](lease_id lease) { return pool_.find_lease(lease)->in_flight > 0; });
  const bool crashed = lost && is_own_doing(exit);
  std::vector<stage_task> accused;
  std::vector<std::pair<stage_task, profile_id>> at_stake; ///< for which the host may be to blame
  struct gang_member {
    stage_task task;
    attempt_number attempt = 0;
    bool blame = false;
  };
  std::vector<gang_member> gangs;
  for (const auto lease_number : pool_[e].leases) {
    auto& lease = *pool_.find_lease(lease_number);
    stop_serving(lease);
    queued_.forget(lease_number);
    // What ran when the executor died may have killed it; what only waited in its queue has not.
    bool front = true;
    for (const auto& run : lease.runs) {
      auto* stage = find_stage(run.stage);
      const auto attempt = run.attempt;
      for (auto p = run.first; p < run.first + run.count; ++p) {
        const bool first = std::exchange(front, false);
        if (!stage || !stage->tasks.is_current(p, attempt, e)) continue;
        auto& job = *find_job(stage->job);
        hit.insert(job.id);
        const bool needed = stage->state != stage_state::complete;
        const bool late = pool_[e].guilty.contains({run.stage, p, attempt});
        const bool gang = stage->spec->barrier; // fails as a whole: nobody of it has to be found guilty
        const bool suspect = needed && first && crashed && running > 1 && !gang;
        const bool blame = needed && ((lost && first && !suspect) || late || attempt >= task_set::free_attempts);
        if (suspect) accused.push_back({run.stage, p});
        if (blame && first && crashed && !gang) convict({run.stage, p}, now);
        const bool has_more = blame && !gang && first && crashed && exit.cause == exit_cause::memory_limit &&
                              escalate(*stage, p, lease, attempt, now, out);
        if (gang) gangs.push_back({{run.stage, p}, attempt, blame});
        const auto failures = gang ? 0 : stage->tasks.requeue(p, attempt, blame && !has_more);
        if (lost && ended && first && !pool_[e].info.in_process) keep_printed(job, *stage, p, attempt, out);
        if (!blame && !suspect) continue;
        if (!gang) ++stage->failures;
        const auto why = suspect                                  ? failure_cause::suspected
                         : late                                   ? failure_cause::time_limit
                         : exit.cause == exit_cause::memory_limit ? failure_cause::memory_limit
                                                                  : failure_cause::lost;
        tell_failure(*stage, {stage->id, p, attempt, id, task_status::lost, why, cause},
                     "its executor was lost: " + cause, out);
        if (!has_more) at_stake.push_back({{run.stage, p}, pool_.demand_of(lease.demand).profile});
        if (blame && !gang && !has_more && failures >= std::min(job.spec->max_task_failures, task_set::max_failures))
          failed.emplace_back(
              job.id, make_error(ec::task_failed,
                                 "stage " + std::to_string(stage->index) + " (" + stage->spec->name + "), partition " +
                                     std::to_string(p) + ", attempt " + std::to_string(attempt) + ": its executor " +
                                     std::to_string(id.value) + " on " + pool_[e].info.host + " was lost (" + cause +
                                     ") while it ran; that was failure " + std::to_string(failures) + " of " +
                                     std::to_string(job.spec->max_task_failures) + " allowed"));
      }
    }
  }
  lose_publications(id, ended, cause, pool_[e].info.host, hit, failed, now, out);
  accuse_lost(pool_[e].info, at_stake, cause, now, out);
  const auto kept = std::move(pool_[e].kept);
  for (const auto& [stage_number, partitions] : kept) {
    auto* stage = find_stage(stage_number);
    if (!stage) continue;
    auto& job = *find_job(stage->job);
    hit.insert(job.id);
    for (const auto p : partitions)
      if (stage->tasks.status_of(p) == task_set::status::done && stage->tasks.executor_of(p) == e)
        lose_output(*stage, p, out);
  }
  tell_readers_of(id, kept);
  idle_.erase(id);
  drop_claims(e);
  if (const auto at = pool_[e].orders; at != executor_record::no_orders) orders_[at].first = no_executor;
  const bool service = pool_[e].info.shuffle_service;
  const auto host = pool_[e].info.host;
  pool_.remove(e);
  if (service) remove_service(id);
  scarce_due_ = gather_due_ = true;
  std::erase_if(overdue_, [this](const auto& entry) { return !pool_.find_lease(entry.first); });
  for (const auto& task : accused) {
    auto& stage = *find_stage(task.stage);
    suspects_.acquit(task); // of what it was accused of before
    change_lane(stage, task.partition, lane_of(escalations_of(stage.tasks.lane_of(task.partition)), true), now);
  }
  suspects_.accuse(accused);
  if (lost)
    for (const auto job : hit) find_job(job)->failures.add({0, true, 0, 0, id, host, cause});
  for (const auto& [task, attempt, blame] : gangs)
    if (auto* stage = find_stage(task.stage))
      on_gang_failure(*find_job(stage->job), *stage, task.partition, attempt, id,
                      "partition " + std::to_string(task.partition) + ": its executor " + std::to_string(id.value) +
                          " was lost (" + cause + ")",
                      blame,
                      exit.cause == exit_cause::memory_limit && is_own_doing(exit) ? failure_cause::memory_limit
                                                                                   : failure_cause::lost,
                      now, out);
  for (auto& [job, why] : failed)
    if (auto* j = find_job(job); j && !j->finished()) fail(*j, std::move(why), now, out);
  for (const auto job : hit)
    if (auto* j = find_job(job); j && !j->finished()) settle(*j, now, out);
  schedule(now, out);
}

} // namespace troupe
