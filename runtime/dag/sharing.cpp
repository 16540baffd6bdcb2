// Whose the next slot is: first come first served, or pools with weights and minimum shares.

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// The slots of all stages that flow into each other: each for itself would get as many as the other, and producers
/// would run away from their consumers.
std::uint32_t dag_scheduler::slots_of_line(const stage_run& stage) const {
  std::uint32_t slots = stage.slots;
  if (stage.feeds.empty() && stage.fed_by.empty()) return slots;
  for (const auto& other : jobs_.at(stage.job).stages)
    if (other.line == stage.line && other.id != stage.id) slots += other.slots;
  return slots;
}

bool dag_scheduler::serves_line(const lease_record& lease, const stage_run& stage) const {
  return std::ranges::any_of(jobs_.at(stage.job).stages, [&](const stage_run& other) {
    return other.line == stage.line && other.id == lease.serves;
  });
}

/// Whose the next slot is: by rank, or where pools share, of the pool that lacks most. `freed`: counts as given back.
bool dag_scheduler::comes_before(const task_lane& a, const task_lane& b, const lease_record* freed) const {
  if (sharing_.are_fair() && a.stage != b.stage) {
    const auto& x = *a.stage;
    const auto& y = *b.stage;
    if (x.pool != y.pool) return sharing_.comes_before(x.pool, y.pool, freed ? freed->pool : std::nullopt);
    const auto slots = [&](const stage_run& s) { return slots_of_line(s) - (freed && serves_line(*freed, s) ? 1 : 0); };
    if (sharing_.is_fair_inside(x.pool) && slots(x) != slots(y)) return slots(x) < slots(y);
  }
  return rank_of(a) < rank_of(b);
}

/// @pre `lanes` not empty
task_lane& dag_scheduler::first_in_line(const std::map<rank, task_lane*>& lanes, const lease_record* freed) const {
  auto* first = lanes.begin()->second;
  if (sharing_.are_fair())
    for (const auto& [r, lane] : lanes)
      if (comes_before(*lane, *first, freed)) first = lane;
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
  const auto queue_up = [&](demand_index d, const std::pair<const rank, task_lane*>& entry) {
    turns.emplace(entry.first, entry.second->preference_of(d), d);
  };
  for (const auto& [d, lanes] : ready_)
    if (pool_.has_room(d)) queue_up(d, *lanes.begin());
  while (!turns.empty()) {
    const auto [r, preference, d] = turns.top();
    turns.pop();
    auto lanes = ready_.find(d);
    if (lanes == ready_.end() || !pool_.has_room(d)) continue;
    // All of it may have gone to another of its demands meanwhile.
    if (const auto it = lanes->second.find(r); it != lanes->second.end())
      grant(*it->second, d, it->second->pending(), now, out);
    lanes = ready_.find(d);
    if (lanes == ready_.end()) continue;
    if (const auto next = lanes->second.upper_bound(r); next != lanes->second.end()) queue_up(d, *next);
  }
}

/// One slot after the other to whom the next one belongs (spec TS-3). A lane that can take none of those that are free
/// keeps nobody else from them.
void dag_scheduler::grant_fairly(time_point now, effects::list& out) {
  std::set<std::pair<demand_index, rank>> exhausted;
  while (true) {
    task_lane* next = nullptr;
    demand_index as = 0;
    for (const auto& [d, lanes] : ready_) {
      if (!pool_.has_room(d)) continue;
      for (const auto& [r, lane] : lanes) {
        const bool better = !next || (lane == next ? lane->preference_of(d) < next->preference_of(as)
                                                   : comes_before(*lane, *next, nullptr));
        if (!better || exhausted.contains({d, r})) continue;
        next = lane;
        as = d;
      }
    }
    if (!next) return;
    const auto r = rank_of(*next); // it may be gone when it has got the slot
    if (!grant(*next, as, 1, now, out)) exhausted.insert({as, r});
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
