// Whether the executor pool agrees with itself. For tests and debug builds.

#include <troupe/runtime/scheduling/executor_pool.hpp>

namespace troupe {

std::optional<std::string> executor_pool::fault() const {
  if (unlisted_.executor != no_executor) return "what came back is not listed";
  std::size_t held = 0;
  for (const auto& [id, index] : by_id_) {
    const auto& e = executors_[index];
    ledger expected{e.info.capacity};
    std::uint32_t in_flight = 0;
    for (const auto lease : e.leases) {
      const auto* known = leases_.find(lease);
      if (!known) return "executor " + std::to_string(id.value) + " names an unknown lease";
      if (known->executor != index) return "a lease stands under two executors";
      if (auto taken = expected.acquire(known->holding); !taken) return taken.error().message;
      std::uint32_t counted = 0;
      for (const auto& run : known->runs) counted += run.count;
      if (counted != known->in_flight) return "lease " + std::to_string(lease.value) + " counts its tasks wrongly";
      in_flight += counted;
      ++held;
    }
    if (in_flight != e.in_flight) return "executor " + std::to_string(id.value) + " counts its tasks wrongly";
    bool same = expected.free_cpus() == e.book.free_cpus() &&
                expected.free_of(resource_names::memory, {}) == e.book.free_of(resource_names::memory, {});
    for (const auto& [name, pool] : e.info.capacity.custom) {
      same = same && expected.free_of(name, {}) == e.book.free_of(name, {});
      for (const auto& a : pool.addresses) same = same && expected.free_of(name, a) == e.book.free_of(name, a);
    }
    if (!same) return "executor " + std::to_string(id.value) + " has a wrong book";
    for (demand_index d = 0; d < demands_.size(); ++d) {
      const auto& record = demands_[d];
      const bool excluded = e.excluded.contains(record.what.profile);
      if (record.satisfied_by.contains(index) != (!excluded && fits(e, d)) ||
          satisfies(index, d) != record.satisfied_by.contains(index))
        return "executor " + std::to_string(id.value) + " is wrongly counted among those that satisfy a demand";
      if (record.excluded.contains(index) != (excluded && fits(e, d)))
        return "executor " + std::to_string(id.value) + " is wrongly counted among those that are excluded";
      const auto* room = find_service(e, d);
      if (free_on(index, d) != (room ? room->free : 0)) return "the room index of a demand is wrong";
      if (!room || room->free == 0) continue;
      if (!record.room.contains(key_of(index, *room)) || room->load != load_of(e) ||
          room->excess != excess_of(e, record.what))
        return "the room index of a demand has a wrong key";
      if (room->held != e.held) return "the room index of a demand does not know what is held";
    }
    if (refusing_.contains(index) == e.refused.empty()) return "the refusals are indexed wrongly";
    if (e.held && !e.reserved) return "an executor is held for nobody";
  }
  if (held != leases_.size()) return "a lease belongs to no executor";
  for (demand_index d = 0; d < demands_.size(); ++d) {
    const auto& record = demands_[d];
    std::int64_t slots = 0;
    std::int64_t free = 0;
    std::int64_t kept = 0;
    std::size_t rooms = 0;
    std::uint32_t plain = 0;
    for (const auto e : record.satisfied_by) {
      slots += slots_on(e, d);
      plain += excess_of(executors_[e], record.what) == 0 ? 1 : 0;
      const auto& room = *find_service(executors_[e], d);
      free += room.free;
      if (room.held) kept += room.free;
      rooms += room.free > 0 ? 1 : 0;
    }
    if (rooms != record.room.size()) return "the room index of a demand has entries twice";
    if (plain != record.plain) return "a demand counts those wrongly that have nothing else";
    if (slots != record.slots || free != record.free || kept != record.held) return "a demand counts its slots wrongly";
  }
  return std::nullopt;
}

} // namespace troupe
