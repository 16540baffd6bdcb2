// Executors with addresses that a task does not ask for, kept for those that do.

#include <algorithm>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

void dag_scheduler::count_asks(stage_run& stage, bool unfinished) {
  if (stage.is_counted_asking == unfinished) return;
  stage.is_counted_asking = unfinished;
  for (const auto& name : stage.asks) {
    if (unfinished)
      asking_[name].emplace(rank_of(stage, 0), &stage);
    else if (const auto stages = asking_.find(name); stages->second.erase(rank_of(stage, 0)) > 0)
      if (stages->second.empty()) asking_.erase(stages);
  }
  scarce_due_ = scarce_due_ || !stage.asks.empty();
}

/// Whether an unfinished stage asks for the resource for whose sake this one is to leave its executors alone. Not one
/// that no present executor could serve. One that still waits for its own inputs counts for later stages alone: else
/// two such would wait for each other, and a stage for what cannot begin before it has ended. One into which this one
/// flows counts where this one can run elsewhere, and there alone: both would else run by turns, not side by side.
bool dag_scheduler::is_asked_by_others(const stage_run& stage, const std::string& resource) const {
  const auto known = asking_.find(resource);
  if (known == asking_.end()) return false;
  const auto can_be_served = [&](const stage_run& asker) {
    return std::any_of(asker.demands().begin(), asker.demands().end(), [&](demand_index d) {
      return pool_.satisfying(d) > 0 && pool_.demand_of(d).content->task.contains(resource);
    });
  };
  return std::any_of(known->second.begin(), known->second.end(), [&](const auto& entry) {
    const auto& asker = *entry.second;
    if (&asker == &stage || asker.paused || !can_be_served(asker)) return false; // one that pauses takes none
    if (asker.job == stage.job && asker.line == stage.line && asker.index > stage.index) return runs_on_plain(stage);
    if (asker.state == stage_state::running && !asker.is_starved()) return true;
    return std::pair{asker.job, asker.index} < std::pair{stage.job, stage.index};
  });
}

/// Whether an executor could run its tasks that has nothing which they do not ask for.
bool dag_scheduler::runs_on_plain(const stage_run& stage) const {
  return std::ranges::any_of(stage.demands(), [this](demand_index d) { return pool_.plainly_satisfying(d) > 0; });
}

/// Decides for each demand that waits, by its first stage. Under `exact` an executor runs what it was started for.
void dag_scheduler::keep_scarce(time_point now) {
  if (!scarce_due_) return;
  scarce_due_ = false;
  const auto wait = options_.scarce_resource_wait;
  if (options_.matching == profile_matching::exact || wait == duration::zero()) return;
  for (const auto& [d, lanes] : ready_) {
    auto& lane = first_in_line(lanes, nullptr);
    std::set<std::string, std::less<>> kept;
    if (!asking_.empty()) {
      if (wait != never && now - lane.served >= wait) lane.takes_scarce = true;
      if (!lane.takes_scarce)
        for (const auto& [name, askers] : asking_)
          if (!pool_.demand_of(d).content->task.contains(name) && is_asked_by_others(*lane.stage, name))
            kept.insert(name);
    }
    pool_.keep_from(d, std::move(kept));
    drop_kept_claims(d);
  }
}

/// What is kept from a demand is not claimed for it either: nobody could take it then.
void dag_scheduler::drop_kept_claims(demand_index d) {
  const auto known = claims_.find(d);
  if (known == claims_.end()) return;
  auto& claimed = known->second;
  for (auto it = claimed.slots.begin(); it != claimed.slots.end();) {
    if (pool_.kept_for(it->first, d).empty()) {
      ++it;
      continue;
    }
    claimed.total -= it->second;
    pool_.unreserve(it->first);
    it = claimed.slots.erase(it);
  }
  if (claimed.slots.empty()) claims_.erase(known);
}

} // namespace troupe
