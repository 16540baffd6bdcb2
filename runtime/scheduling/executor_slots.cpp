// The slots of the executors of a pool: which are free for whom, the best first, and who takes them.

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <troupe/runtime/scheduling/executor_pool.hpp>

namespace troupe {

std::int64_t executor_pool::excess_of(const executor_record& e, const demand& d) const {
  // Scarce things first: an executor with a GPU is the last choice for a task that asks for none. A counted size is one
  // thing, however large.
  std::int64_t excess = 0;
  for (const auto& [name, pool] : e.info.capacity.custom)
    if (!d.content->task.contains(name)) excess += pool.counted ? 1 : pool.amount;
  return excess;
}

std::int64_t executor_pool::load_of(const executor_record& e) const {
  if (policy_ == placement_policy::spread) return static_cast<std::int64_t>(e.leases.size());
  const auto free = static_cast<std::int64_t>(e.book.free_cpus().units * 1000 / share::units_per_whole);
  if (policy_ == placement_policy::pack) return free;
  const auto cores = e.info.capacity.cores;
  return cores == 0 ? 0 : 1'000'000 - free * 1000 / cores;
}

void executor_pool::refresh(executor_index executor) {
  if (executor == unlisted_.executor) unlisted_ = {};
  auto& e = executors_[executor];
  const auto load = load_of(e);
  for (auto& s : e.services) refresh(executor, s, load);
}

void executor_pool::refresh(executor_index executor, demand_index d) {
  if (executor == unlisted_.executor) return refresh(executor);
  auto& e = executors_[executor];
  for (auto& s : e.services)
    if (s.demand == d) refresh(executor, s, load_of(e));
}

room_key executor_pool::key_of(executor_index executor, const executor_record::service& s) const {
  return {s.excess, s.load, executors_[executor].info.executor, executor};
}

void executor_pool::refresh(executor_index executor, executor_record::service& s, std::int64_t load) {
  auto& record = demands_[s.demand];
  const auto& e = executors_[executor];
  const auto free = free_in_service(executor, s.demand);
  if (free == 0) return drop_room(executor, s);
  record.free += free - s.free;
  record.held += (e.held ? free : 0) - (s.held ? s.free : 0);
  const bool was = s.free > 0;
  s.free = free;
  s.held = e.held;
  if (was && s.load == load) return;
  if (was) record.room.erase(key_of(executor, s));
  s.load = load;
  record.room.insert(key_of(executor, s));
}

void executor_pool::drop_room(executor_index executor, executor_record::service& s) {
  if (s.free == 0) return;
  auto& record = demands_[s.demand];
  record.free -= s.free;
  if (s.held) record.held -= s.free;
  record.room.erase(key_of(executor, s));
  s.free = 0;
  s.held = false;
}

void executor_pool::settle() {
  if (unlisted_.executor != no_executor) refresh(unlisted_.executor);
}

const executor_pool::demand_record& executor_pool::settled(demand_index d) const {
  if (unlisted_.executor != no_executor) throw std::logic_error{"slots are counted before they are settled"};
  return demands_[d];
}

lease_record* executor_pool::grant(demand_index d) {
  auto& record = demands_[d];
  if (record.room.empty()) return has_unlisted_room(d) ? grant_on(unlisted_.executor, d) : nullptr;
  settle();
  return grant_on(record.room.begin()->executor, d);
}

std::vector<executor_index> executor_pool::with_room(demand_index d, std::size_t most) {
  settle();
  std::vector<executor_index> best;
  for (const auto& key : demands_[d].room) {
    if (best.size() == most) break;
    best.push_back(key.executor);
  }
  return best;
}

lease_record* executor_pool::grant_on(executor_index executor, demand_index d) {
  ++examined_;
  if (!has_room_on(executor, d)) return nullptr;
  auto holding = executors_[executor].book.choose(*demands_[d].what.content, demands_[d].what.profile);
  if (!holding) return nullptr;
  return open(executor, d, std::move(*holding));
}

lease_record* executor_pool::open(executor_index executor, demand_index d, allotment holding) {
  auto& e = executors_[executor];
  if (!e.book.acquire(holding)) return nullptr;
  auto& lease = leases_.add({next_lease_++});
  lease.executor = executor;
  lease.demand = d;
  lease.holding = std::move(holding);
  e.leases.push_back(lease.id);
  ++demands_[d].leases;
  if (executor == unlisted_.executor && unlisted_.came_back == lease.holding)
    unlisted_ = {}; // as it was listed
  else
    refresh(executor);
  return &lease;
}

void executor_pool::release(lease_id id) {
  const auto* lease = leases_.find(id);
  if (!lease) return;
  if (lease->in_flight != 0) throw std::logic_error{"a lease must not be released before its attempts have ended"};
  const auto executor = lease->executor;
  auto& e = executors_[executor];
  // Cannot fail: the book gave exactly this.
  (void) e.book.release(lease->holding);
  if (unlisted_.executor == executor) {
    unlisted_.came_back.reset();
  } else {
    settle();
    unlisted_ = {executor, lease->holding};
  }
  e.leases.erase(std::ranges::lower_bound(e.leases, id));
  --demands_[lease->demand].leases;
  leases_.erase(id);
}

} // namespace troupe
