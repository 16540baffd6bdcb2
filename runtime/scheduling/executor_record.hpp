#pragma once

/// One executor as the dag scheduler sees it. Owner: the executor pool. Not thread-safe.
/// Executor: active -> draining -> gone; any -> gone.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/scheduling/kept_partitions.hpp>
#include <troupe/runtime/scheduling/lease_record.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/scheduling/slab.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// The attempts of stages that an executor knows: few at a time, looked up for every batch.
class installed_stages {
public:
  bool empty() const noexcept { return known_.empty(); }
  bool has(stage_id stage, attempt_number attempt) const {
    const auto at = std::ranges::lower_bound(known_, stage, {}, &entry::first);
    return at != known_.end() && *at == entry{stage, attempt};
  }
  void set(stage_id stage, attempt_number attempt) {
    const auto at = std::ranges::lower_bound(known_, stage, {}, &entry::first);
    if (at != known_.end() && at->first == stage)
      at->second = attempt;
    else
      known_.insert(at, {stage, attempt});
  }
  /// Forgets these, and tells of those that were known. @pre `stages` ascending
  template <class Known>
  void erase(const std::vector<stage_id>& stages, Known known) {
    std::erase_if(known_, [&](const entry& e) {
      if (!std::ranges::binary_search(stages, e.first)) return false;
      known(e.first);
      return true;
    });
  }

  void prefetch() const noexcept { troupe::prefetch(known_.data(), 1); }

private:
  using entry = std::pair<stage_id, attempt_number>;
  std::vector<entry> known_; ///< ascending
};

/// What every batch and report looks at stands first, in few cache lines: there are many executors.
struct alignas(64) executor_record {
  static constexpr std::size_t hot_bytes = 256;
  enum class state : std::uint8_t { active, draining };
  state status = state::active;
  bool held = false; ///< for a gang that gathers: whatever else runs there gets no more tasks under its lease
  std::optional<demand_index> reserved; ///< what its free slots are kept for
  std::uint32_t in_flight = 0;
  /// Of this event's orders, which of them are for it; `no_orders`: none yet.
  std::uint32_t orders = no_orders;
  static constexpr std::uint32_t no_orders = 0xffff'ffff;
  std::uint64_t sequence = 0; ///< of the last orders sent
  std::uint64_t reports = 0;  ///< received
  std::uint64_t tasks_done = 0;
  installed_stages installed;   ///< stage attempts that it knows
  std::vector<lease_id> leases; ///< ascending
  /// What it is for a demand that it satisfies: kept here, since all of it is looked at when its slots change.
  struct service {
    demand_index demand = 0;
    bool held = false;       ///< its slots count as held
    std::int64_t free = 0;   ///< slots; 0: it is not among those with room
    std::int64_t excess = 0; ///< see room_key
    std::int64_t load = 0;   ///< under which it stands among those with room
  };
  std::vector<service> services; ///< ascending demand
  /// Its slots, and what it knows of stages, will be looked at soon.
  void prefetch_lists() const noexcept {
    installed.prefetch();
    prefetch(leases.data(), 1);
    prefetch(services.data(), services.size() * sizeof(service));
  }
  struct refused_demand {
    time_point until; ///< not tried before then
    std::string reason;
  };
  std::map<demand_index, refused_demand> refused;
  std::set<profile_id> excluded; ///< gets no tasks of these for now (see `exclusion_book`)
  executor_info info;
  ledger book;
  std::uint64_t expected = 0; ///< the last orders that had been sent when its heartbeat before the last one came
  std::optional<time_point> last_beat;
  std::optional<time_point> behind_since; ///< its heartbeats lack those orders
  std::optional<time_point> owing_since;  ///< they count reports that have not come, or know of no task in flight
  std::unordered_map<stage_id, kept_partitions> kept; ///< outputs and results that unfinished jobs need
  std::set<demand_index> barred;                      ///< not tried there again
  /// Attempts that are to blame for its end, although it is not lost.
  std::set<std::tuple<stage_id, partition_index, attempt_number>> guilty;
  /// A draining one on its way to a shuffle service.
  struct handover {
    executor_id to;           ///< the service; 0: none was asked yet
    bool asked = false;       ///< and has not answered
    bool any = false;         ///< something is the service's by now
    bool sockets = false;     ///< that was asked for the sockets, the last thing
    std::uint8_t in_vain = 0; ///< answers in a row without anything
  } handed;
  /// Somebody may come for what it has.
  bool is_serving() const noexcept { return !kept.empty() || (handed.asked && handed.sockets); }
  time_point idle_since{};
};

} // namespace troupe
