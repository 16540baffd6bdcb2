// Executors and hosts that get no tasks of a profile for a while, since too many have failed there; and the stages that
// nobody is left for.

#include <algorithm>
#include <set>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// An attempt failed on the executor of this lease, for which that one may be to blame.
void dag_scheduler::accuse(const stage_run& stage, const lease_record& lease, partition_index partition,
                           const std::string& text, time_point now, effects::list& out) {
  if (!options_.exclusion.enabled) return;
  const auto& info = pool_[lease.executor].info;
  const auto told = "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "), partition " +
                    std::to_string(partition) + " on executor " + std::to_string(info.executor.value) + " (" +
                    info.host + ")" + (text.empty() ? "" : ": " + text);
  const auto profile = pool_.demand_of(lease.demand).profile;
  exclude(exclusions_.on_failure({profile, info.executor, info.host, stage.id, partition, false, told}, now), false,
          told, out);
}

/// An executor goes away and takes these along. It counts against its host.
void dag_scheduler::accuse_lost(const executor_info& info,
                                const std::vector<std::pair<stage_task, profile_id>>& attempts, const std::string& text,
                                time_point now, effects::list& out) {
  if (!options_.exclusion.enabled || attempts.empty()) return;
  const auto told = "executor " + std::to_string(info.executor.value) + " (" + info.host + ") was lost: " + text;
  std::vector<exclusion_book::failure> all;
  for (const auto& [task, profile] : attempts)
    all.push_back({profile, info.executor, info.host, task.stage, task.partition, true, told});
  exclude(exclusions_.on_loss(all, now), true, told, out);
}

/// New leases go elsewhere; what runs there runs on.
void dag_scheduler::exclude(const exclusion_book::changes& begun, bool lost, const std::string& text,
                            effects::list& out) {
  const auto shut = [this](executor_index e, profile_id profile) {
    drop_claims(e);
    pool_.exclude(e, profile);
    for (const auto id : pool_[e].leases)
      if (auto& lease = *pool_.find_lease(id); pool_.demand_of(lease.demand).profile == profile) lease.draining = true;
  };
  const auto wait = static_cast<std::uint64_t>(options_.exclusion.timeout.count());
  for (const auto& change : begun) {
    if (change.executor) {
      if (lost) continue; // it counts against its host alone
      shut(pool_.find(change.executor), change.profile);
      out.push_back(effects::publish{
          events::executor_excluded{change.executor, change.host, change.profile, change.count, wait, text}});
    } else {
      for (const auto& [id, e] : pool_.all())
        if (pool_[e].info.host == change.host) shut(e, change.profile);
      out.push_back(effects::publish{events::node_excluded{change.host, change.profile, change.count, wait, text}});
    }
  }
  if (begun.empty()) return;
  load_due_ = true;
  scarce_due_ = gather_due_ = true;
}

void dag_scheduler::readmit(const exclusion_book::changes& over, const std::string& cause, effects::list& out) {
  const auto open = [this](executor_index e, profile_id profile) {
    if (!exclusions_.is_excluded(profile, pool_[e].info.executor, pool_[e].info.host)) pool_.readmit(e, profile);
  };
  for (const auto& change : over) {
    if (change.executor) {
      const auto e = pool_.find(change.executor);
      if (e == no_executor) continue;
      open(e, change.profile);
      out.push_back(effects::publish{events::executor_readmitted{change.executor, change.profile, cause}});
    } else {
      for (const auto& [id, e] : pool_.all())
        if (pool_[e].info.host == change.host) open(e, change.profile);
      out.push_back(effects::publish{events::node_readmitted{change.host, change.profile, cause}});
    }
  }
  if (over.empty()) return;
  load_due_ = true;
  scarce_due_ = gather_due_ = true;
}

/// @returns whether any is over
bool dag_scheduler::end_exclusions(time_point now, effects::list& out) {
  const auto over = exclusions_.on_time(now);
  readmit(over, "its time is over (troupe.exclude-on-failure.timeout)", out);
  return !over.empty();
}

/// Its failures may have been its own fault. So a job that cannot succeed anywhere costs others no executor for longer
/// than it takes to fail.
void dag_scheduler::drop_accusations(const stage_run& stage, effects::list& out) {
  if (exclusions_.empty()) return;
  readmit(exclusions_.on_stage_ended(stage.id),
          "stage " + std::to_string(stage.index) + " (" + stage.spec->name + ") of job " +
              std::to_string(stage.job.value) + " has ended without success, so its failures do not count",
          out);
}

/// On a host that is excluded.
void dag_scheduler::exclude_newcomer(executor_index e) {
  const auto& info = pool_[e].info;
  for (const auto profile : exclusions_.profiles_excluded_from(info.executor, info.host)) pool_.exclude(e, profile);
}

/// Only executors of profiles that its tasks may run as count (spec TS-19).
bool dag_scheduler::is_unschedulable(const task_lane& lane) const {
  const auto queue = ready_.find(lane.demands.front());
  if (queue == ready_.end() || !queue->second.contains(rank_of(lane))) return false;
  if (lane.stage->tasks.pending(lane.number) == 0) return false; // it wants copies, which nobody needs
  if (std::any_of(lane.demands.begin(), lane.demands.end(), [&](demand_index d) { return has_enough(*lane.stage, d); }))
    return false;
  // While those that were given back are being replaced, none is there.
  const bool is_known = unschedulable_.contains(rank_of(lane));
  return std::any_of(lane.demands.begin(), lane.demands.end(), [&](demand_index d) {
    return !pool_.excluded_from(d).empty() || (is_known && exclusions_.concerns(pool_.demand_of(d).profile));
  });
}

void dag_scheduler::watch_unschedulable(time_point now, effects::list& out) {
  std::erase_if(unschedulable_, [&](const auto& entry) { return !is_unschedulable(*entry.second.lane); });
  // What is given back for one lane may have been all that another one had.
  for (bool again = !exclusions_.empty(); std::exchange(again, false);)
    for (const auto& [d, lanes] : ready_) {
      if (pool_.excluded_from(d).empty()) continue;
      for (const auto& [r, lane] : lanes) {
        if (!is_unschedulable(*lane)) continue;
        const auto [it, is_new] = unschedulable_.try_emplace(r, unschedulable_lane{lane, now});
        if (is_new)
          out.push_back(effects::publish{events::stage_unschedulable{lane->stage->job, lane->stage->id,
                                                                     pool_.demand_of(d).profile, waiting_for(*lane),
                                                                     lane->stage->attempt}});
        again |= replace_excluded(it->second, d);
      }
    }
}

/// Gives idle executors back that are excluded, so that fresh ones can be had: no more than there is use for, and none
/// on a host where a fresh one would be excluded, too. @returns whether there was any
bool dag_scheduler::replace_excluded(unschedulable_lane& waits, demand_index d) {
  const auto& what = pool_.demand_of(d);
  const auto slots = static_cast<std::uint64_t>(std::max<std::int64_t>(1, slots_on_its_shape(what)));
  const auto useful = (waits.lane->stage->tasks.pending(waits.lane->number) + slots - 1) / slots;
  const auto excluded = pool_.excluded_from(d);
  bool any = false;
  for (const auto e : excluded) {
    if (waits.replaced >= useful) break;
    const auto& record = pool_[e];
    if (!record.leases.empty() || !record.info.request) continue;
    if (exclusions_.is_host_excluded(what.profile, record.info.host)) continue;
    drain(e); // the allocator stops what drains and is idle
    ++waits.replaced;
    load_due_ = true;
    any = true;
  }
  return any;
}

/// @returns whether there was any whose time is over
bool dag_scheduler::fail_unschedulable_stages(time_point now, effects::list& out) {
  std::vector<rank> late;
  for (const auto& [r, waits] : unschedulable_)
    if (now - waits.since >= options_.unschedulable_timeout) late.push_back(r);
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(options_.unschedulable_timeout).count();
  for (const auto& r : late) {
    // The end of one job takes its other lanes along, and may bring executors back for others.
    const auto it = unschedulable_.find(r);
    if (it == unschedulable_.end() || !is_unschedulable(*it->second.lane)) continue;
    fail(*find_job(r.job),
         make_error(ec::infeasible, waiting_for(*it->second.lane) + " (waited " + std::to_string(waited) +
                                        "ms: troupe.exclude-on-failure.unschedulable-timeout)"),
         now, out);
  }
  return !late.empty();
}

/// How many that fit are excluded, and where nobody is left, which and why; "" where none is.
std::string dag_scheduler::excluded_executors(demand_index d) const {
  const auto excluded = pool_.excluded_from(d).size();
  if (excluded == 0) return {};
  const auto all = excluded + pool_.satisfying(d);
  const auto text = (all == 1          ? "the one executor that fits is"
                     : all == excluded ? "all " + std::to_string(all) + " executors that fit are"
                                       : std::to_string(excluded) + " of the " + std::to_string(all) +
                                             " executors that fit " + (excluded == 1 ? "is" : "are")) +
                    std::string{" excluded after failures (troupe.exclude-on-failure.enabled"};
  if (excluded < all) return text + ")";
  return text + "): " + exclusions_.describe(pool_.demand_of(d).profile);
}

std::optional<std::string> dag_scheduler::fault_of_exclusions() const {
  for (const auto& [id, e] : pool_.all())
    if (pool_[e].excluded != exclusions_.profiles_excluded_from(id, pool_[e].info.host))
      return "executor " + std::to_string(id.value) + " is excluded from other profiles than the book says";
  for (const auto& [r, waits] : unschedulable_) {
    const auto job = jobs_.find(r.job);
    if (job == jobs_.end() || job->second.finished()) return "a stage of an ended job is unschedulable";
    if (!is_unschedulable(*waits.lane)) return "a stage is wrongly listed as unschedulable";
  }
  for (const auto& [d, lanes] : ready_)
    for (const auto& [r, lane] : lanes)
      if (is_unschedulable(*lane) && !unschedulable_.contains(r)) return "an unschedulable stage is not listed";
  return std::nullopt;
}

} // namespace troupe
