#pragma once

/// Leases with tasks that wait behind another one, by demand; of each demand's the one comes first of which nothing was
/// heard for longest. Owner: the dag scheduler. Not thread-safe; no clock.

#include <list>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/executor_pool.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

class queued_leases {
public:
  /// There is news of the lease; it comes last from now on. @pre `now` is not before that of any other call
  void heard(lease_id lease, demand_index demand, time_point now) {
    const auto [it, added] = entries_.try_emplace(lease);
    auto& [known, position] = it->second;
    auto& line = lines_[demand];
    if (added) {
      known = demand;
      position = line.insert(line.end(), {lease, now});
    } else {
      position->second = now;
      line.splice(line.end(), line, position);
    }
  }
  /// An unknown one is ignored.
  void forget(lease_id lease) {
    const auto it = entries_.find(lease);
    if (it == entries_.end()) return;
    const auto line = lines_.find(it->second.first);
    line->second.erase(it->second.second);
    if (line->second.empty()) lines_.erase(line);
    entries_.erase(it);
  }
  /// Takes out those of which nothing was heard since `then`, as far as `wanted(demand)` holds. Costs nothing for the
  /// others.
  template <class Wanted>
  std::vector<lease_id> take_silent(time_point then, Wanted wanted) {
    std::vector<lease_id> silent;
    for (const auto& [demand, line] : lines_) {
      if (!wanted(demand)) continue;
      for (const auto& [lease, last] : line) {
        if (last >= then) break;
        silent.push_back(lease);
      }
    }
    for (const auto lease : silent) forget(lease);
    return silent;
  }
  bool contains(lease_id lease) const { return entries_.contains(lease); }
  bool empty() const noexcept { return entries_.empty(); }

private:
  using queue = std::list<std::pair<lease_id, time_point>>;
  std::map<demand_index, queue> lines_; ///< none is empty
  std::unordered_map<lease_id, std::pair<demand_index, queue::iterator>> entries_;
};

} // namespace troupe
