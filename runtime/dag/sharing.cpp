// Whose the next slot is: first come first served, or pools with weights and minimum shares.

#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// Whose the next slot is: by rank, or where pools share, of the pool that lacks most. `freed`: counts as given back.
bool dag_scheduler::comes_before(const stage_run& a, const stage_run& b, const lease_record* freed) const {
  if (sharing_.are_fair()) {
    if (a.pool != b.pool) return sharing_.comes_before(a.pool, b.pool, freed ? freed->pool : std::nullopt);
    const auto slots = [&](const stage_run& s) { return s.slots - (freed && freed->serves == s.id ? 1 : 0); };
    if (sharing_.is_fair_inside(a.pool) && slots(a) != slots(b)) return slots(a) < slots(b);
  }
  return rank{a.job, a.index} < rank{b.job, b.index};
}

/// @pre `stages` not empty
stage_run& dag_scheduler::first_in_line(const std::map<rank, stage_run*>& stages, const lease_record* freed) const {
  auto* first = stages.begin()->second;
  if (sharing_.are_fair())
    for (const auto& [r, stage] : stages)
      if (comes_before(*stage, *first, freed)) first = stage;
  return *first;
}

/// The lease's slot counts as the stage's, and its pool's, from now on.
void dag_scheduler::serve(lease_record& lease, stage_run& stage) {
  if (!sharing_.are_fair() || lease.serves == stage.id) return;
  stop_serving(lease);
  lease.serves = stage.id;
  lease.pool = stage.pool;
  ++stage.slots;
  sharing_.take_slot(stage.pool);
}

void dag_scheduler::stop_serving(lease_record& lease) {
  if (!lease.pool) return;
  if (auto* stage = find_stage(lease.serves)) --stage->slots;
  sharing_.give_back_slot(*lease.pool);
  lease.pool.reset();
  lease.serves = {};
}

void dag_scheduler::grant_by_rank(time_point now, effects::list& out) {
  // Best rank first, stage by stage (spec TS-3): a later stage of one demand waits for an earlier one of another. Of
  // one stage, what it would rather have first.
  using turn = std::tuple<rank, std::uint32_t, demand_index>;
  std::priority_queue<turn, std::vector<turn>, std::greater<>> turns;
  const auto queue_up = [&](demand_index d, const std::pair<const rank, stage_run*>& entry) {
    turns.emplace(entry.first, entry.second->preference_of(d), d);
  };
  for (const auto& [d, stages] : ready_)
    if (pool_.has_room(d)) queue_up(d, *stages.begin());
  while (!turns.empty()) {
    const auto [r, preference, d] = turns.top();
    turns.pop();
    auto stages = ready_.find(d);
    if (stages == ready_.end() || !pool_.has_room(d)) continue;
    // All of it may have gone to another of its demands meanwhile.
    if (const auto it = stages->second.find(r); it != stages->second.end())
      grant(*it->second, d, it->second->tasks.pending(), now, out);
    stages = ready_.find(d);
    if (stages == ready_.end()) continue;
    if (const auto next = stages->second.upper_bound(r); next != stages->second.end()) queue_up(d, *next);
  }
}

/// One slot after the other to whom the next one belongs (spec TS-3).
void dag_scheduler::grant_fairly(time_point now, effects::list& out) {
  std::set<demand_index> exhausted;
  while (true) {
    stage_run* next = nullptr;
    demand_index as = 0;
    for (const auto& [d, stages] : ready_) {
      if (!pool_.has_room(d) || exhausted.contains(d)) continue;
      auto& first = first_in_line(stages, nullptr);
      const bool better = !next || (&first == next ? first.preference_of(d) < next->preference_of(as)
                                                   : comes_before(first, *next, nullptr));
      if (!better) continue;
      next = &first;
      as = d;
    }
    if (!next) return;
    if (!grant(*next, as, 1, now, out)) exhausted.insert(as);
  }
}

/// Slots are counted where leases serve.
std::optional<std::string> dag_scheduler::fault_of_sharing() const {
  std::map<pool_index, std::uint64_t> held;
  std::map<stage_id, std::uint32_t> served;
  for (const auto& [id, e] : pool_.all())
    for (const auto number : pool_[e].leases) {
      const auto& lease = *pool_.find_lease(number);
      if (!lease.pool) continue;
      ++held[*lease.pool];
      ++served[lease.serves];
    }
  for (const auto& [p, slots] : held)
    if (sharing_.slots_of(p) != slots) return "pool " + sharing_.name_of(p) + " counts its slots wrongly";
  for (const auto& [id, job] : jobs_)
    for (const auto& stage : job.stages) {
      if (!job.finished() && stage.slots != served[stage.id]) return "a stage counts its slots wrongly";
      if (!held.contains(stage.pool) && sharing_.slots_of(stage.pool) != 0) return "a pool holds slots of nobody";
    }
  return std::nullopt;
}

} // namespace troupe
