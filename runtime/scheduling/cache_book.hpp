#pragma once

/// Partitions of datasets that programs keep for later jobs, and the executors that have them.
/// Owner: the dag scheduler. Not thread-safe; no clock, no I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <troupe/runtime/ids.hpp>

namespace troupe {

class cache_book {
public:
  /// What this dataset is kept as, from now on if it was not yet.
  cache_id open(const broadcast_id& dataset);
  /// The program needs it no longer; number 0: none of its datasets. @returns what it was kept as
  std::vector<cache_id> withdraw(const broadcast_id& dataset);
  bool is_open(cache_id cache) const { return caches_.contains(cache); }

  /// The executor keeps the partition. @returns false where nobody wants it: withdrawn, or kept elsewhere
  bool add(cache_id cache, partition_index partition, executor_id on);
  /// It does not, any more. @returns whether it was known to
  bool remove(cache_id cache, partition_index partition, executor_id on);
  /// The executor is gone.
  void forget(executor_id executor);

  /// Who keeps it.
  std::optional<executor_id> find(cache_id cache, partition_index partition) const;
  /// All that are kept of it, with their executors.
  const std::map<partition_index, executor_id>& partitions(cache_id cache) const;
  /// Whether the executor keeps anything.
  bool has_any(executor_id executor) const { return held_.contains(executor); }
  /// Partitions that it keeps.
  std::size_t count(executor_id executor) const {
    const auto it = held_.find(executor);
    return it == held_.end() ? 0 : it->second.size();
  }
  /// Those who keep anything.
  std::vector<executor_id> keepers() const;

private:
  struct entry {
    broadcast_id dataset;
    std::map<partition_index, executor_id> partitions;
  };
  void drop(executor_id executor, cache_id cache, partition_index partition);

  std::map<cache_id, entry> caches_;
  std::map<broadcast_id, cache_id> numbers_;
  std::map<executor_id, std::set<std::pair<cache_id, partition_index>>> held_; ///< none is empty
  std::uint64_t next_ = 1;
};

} // namespace troupe
