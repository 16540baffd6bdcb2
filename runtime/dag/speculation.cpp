// Second attempts of tasks that take longer than the others of their stage.

#include <algorithm>
#include <map>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// How long a task may run before it gets a copy; nothing where too few have ended to tell.
std::optional<duration> dag_scheduler::copy_threshold(const stage_run& stage) const {
  const auto& rule = options_.speculation;
  if (!stage.durations || stage.state != stage_state::running) return std::nullopt;
  const auto part = static_cast<__int128>(stage.tasks.size()) * rule.quantile.units / share::units_per_whole;
  if (stage.tasks.done() < std::max<__int128>(1, part)) return std::nullopt;
  const auto times =
      static_cast<__int128>(stage.durations->median().count()) * rule.multiplier.units / share::units_per_whole;
  const duration long_time{static_cast<std::int64_t>(std::min<__int128>(times, duration::max().count()))};
  return std::max(rule.min_task_runtime, long_time);
}

/// Marks what has run for too long. Only what is at the front of its lease runs; who has to prove its innocence alone
/// has no copy. @returns whether there was any
bool dag_scheduler::speculate(time_point now, effects::list& out) {
  if (!options_.speculation.enabled) return false;
  std::map<stage_id, duration> thresholds;
  for (const auto& [id, job] : jobs_)
    for (const auto& stage : job.stages)
      if (const auto threshold = copy_threshold(stage)) thresholds.emplace(stage.id, *threshold);
  if (thresholds.empty()) return false;
  bool any = false;
  for (const auto& [id, e] : pool_.all())
    for (const auto number : pool_[e].leases) {
      const auto& lease = *pool_.find_lease(number);
      if (lease.runs.empty()) continue;
      const auto& run = lease.runs.front();
      const auto threshold = thresholds.find(run.stage);
      if (threshold == thresholds.end() || now - lease.front_since <= threshold->second) continue;
      auto* stage = find_stage(run.stage);
      const auto p = run.first;
      if (!stage->tasks.is_current(p, run.attempt, e) || stage->tasks.has_copy(p) || is_alone(stage->tasks.lane_of(p)))
        continue;
      stage->tasks.want_copy(p);
      out.push_back(
          effects::publish{events::speculative_task_submitted{run.stage, p, run.attempt, id, stage->attempt}});
      make_ready(*stage, now);
      any = true;
    }
  return any;
}

/// On another executor, and on another host if there is one that could take it.
bool dag_scheduler::may_copy(const task_lane& lane, partition_index partition, executor_index e) const {
  const auto first = lane.stage->tasks.executor_of(partition);
  if (first == e) return false;
  const auto& host = pool_[first].info.host;
  if (pool_[e].info.host != host) return true;
  return std::none_of(lane.demands.begin(), lane.demands.end(),
                      [&](demand_index d) { return pool_.is_satisfied_beyond(host, d); });
}

/// A task of the lane whose copy may run there.
std::optional<partition_index> dag_scheduler::copy_for(const task_lane& lane, executor_index e) const {
  for (const auto p : lane.stage->tasks.wanted_copies(lane.number))
    if (lane.stage->tasks.is_admitted(p) && may_copy(lane, p, e)) return p;
  return std::nullopt;
}

/// Leases, at most so many, for copies where there is room on executors that may run them. @returns whether there was
/// any
bool dag_scheduler::place_copies(task_lane& lane, demand_index d, std::uint64_t most, time_point now,
                                 effects::list& out) {
  if (lane.stage->tasks.wanted_copies(lane.number).empty()) return false;
  const auto before = most;
  for (const auto e : pool_.with_room(d)) {
    if (most == 0 || lane.stage->tasks.wanted_copies(lane.number).empty()) break;
    if (!copy_for(lane, e)) continue;
    auto* lease = pool_.grant_on(e, d);
    if (!lease) continue;
    open_lease(*lease, out);
    fill(*lease, 1, now);
    if (lease->in_flight == 0) drop_lease(*lease, true, now, out);
    --most;
  }
  return most < before;
}

} // namespace troupe
