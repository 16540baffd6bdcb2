#include <troupe/runtime/scheduling/cache_book.hpp>

#include <utility>

namespace troupe {

cache_id cache_book::open(const broadcast_id& dataset) {
  const auto [it, is_new] = numbers_.try_emplace(dataset, cache_id{next_});
  if (is_new) {
    ++next_;
    caches_[it->second].dataset = dataset;
  }
  return it->second;
}

std::vector<cache_id> cache_book::withdraw(const broadcast_id& dataset) {
  std::vector<cache_id> gone;
  auto it = numbers_.lower_bound(dataset);
  while (it != numbers_.end() && it->first.program == dataset.program &&
         (dataset.number == 0 || it->first.number == dataset.number)) {
    gone.push_back(it->second);
    const auto place = caches_.find(it->second);
    for (const auto& [partition, executor] : place->second.partitions) drop(executor, it->second, partition);
    caches_.erase(place);
    it = numbers_.erase(it);
  }
  return gone;
}

bool cache_book::add(cache_id cache, partition_index partition, executor_id on) {
  const auto it = caches_.find(cache);
  if (it == caches_.end()) return false;
  const auto [place, is_new] = it->second.partitions.try_emplace(partition, on);
  if (!is_new) return place->second == on;
  held_[on].emplace(cache, partition);
  return true;
}

bool cache_book::remove(cache_id cache, partition_index partition, executor_id on) {
  const auto it = caches_.find(cache);
  if (it == caches_.end()) return false;
  const auto place = it->second.partitions.find(partition);
  if (place == it->second.partitions.end() || place->second != on) return false;
  it->second.partitions.erase(place);
  drop(on, cache, partition);
  return true;
}

void cache_book::forget(executor_id executor) {
  const auto it = held_.find(executor);
  if (it == held_.end()) return;
  for (const auto& [cache, partition] : it->second) caches_.at(cache).partitions.erase(partition);
  held_.erase(it);
}

std::optional<executor_id> cache_book::find(cache_id cache, partition_index partition) const {
  const auto& all = partitions(cache);
  const auto place = all.find(partition);
  return place == all.end() ? std::nullopt : std::optional{place->second};
}

const std::map<partition_index, executor_id>& cache_book::partitions(cache_id cache) const {
  static const std::map<partition_index, executor_id> none;
  const auto it = caches_.find(cache);
  return it == caches_.end() ? none : it->second.partitions;
}

std::vector<executor_id> cache_book::keepers() const {
  std::vector<executor_id> all;
  for (const auto& [executor, what] : held_) all.push_back(executor);
  return all;
}

void cache_book::drop(executor_id executor, cache_id cache, partition_index partition) {
  const auto it = held_.find(executor);
  it->second.erase({cache, partition});
  if (it->second.empty()) held_.erase(it);
}

} // namespace troupe
