#include <troupe/runtime/storage/block_store.hpp>

#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <troupe/runtime/storage/block_set.hpp>

namespace troupe {

namespace {

std::string file_name(const block_key& key) {
  return (key.kind == block_kind::output ? "" : "cached-") + std::to_string(key.source) + "." +
         std::to_string(key.partition) + "." + std::to_string(key.attempt);
}

} // namespace

std::string to_string(const block_key& key) {
  if (key.kind == block_kind::cached)
    return "dataset " + std::to_string(key.source) + " partition " + std::to_string(key.partition);
  return "stage " + std::to_string(key.source) + " partition " + std::to_string(key.partition) + " attempt " +
         std::to_string(key.attempt);
}

struct block_store::impl {
  using set_pointer = block_set::pointer;
  struct entry {
    set_pointer set; ///< null: being stored
    storage_level level = storage_level::memory_and_disk;
    std::optional<std::list<block_key>::iterator> use; ///< of cached ones in memory: place in `by_use`
  };
  using entries = std::map<block_key, entry>;

  explicit impl(options opts)
    : shared_from(opts.shared_from), budget(opts.memory_limit), directories(std::move(opts.directories)) {}

  const std::uint64_t shared_from;

  memory_budget budget;
  block_directories directories;
  mutable std::mutex mutex;
  mutable std::list<block_key> by_use; ///< cached ones in memory, the one used longest ago first
  entries sets;
  std::uint64_t total = 0;
  std::vector<block_key> evicted;

  void forget_use(entry& e) {
    if (e.use) by_use.erase(*e.use);
    e.use.reset();
  }

  /// Forgets [first, last). The sets themselves go after the lock, with their files.
  std::vector<set_pointer> take(entries::iterator first, entries::iterator last) {
    std::vector<set_pointer> taken;
    while (first != last) {
      forget_use(first->second);
      if (first->second.set) {
        total -= first->second.set->size();
        taken.push_back(std::move(first->second.set));
      }
      first = sets.erase(first);
    }
    return taken;
  }

  /// The cached block that goes next, to make room for this one: none of the same dataset, which would only chase each
  /// other.
  std::optional<block_key> victim_for(const block_key& key) const {
    for (const auto& candidate : by_use)
      if (key.kind != block_kind::cached || candidate.source != key.source) return candidate;
    return std::nullopt;
  }

  std::optional<memory_budget::share> make_room(const block_key& key, std::uint64_t bytes) {
    if (bytes > budget.limit()) return std::nullopt;
    for (;;) {
      if (auto share = budget.take(bytes)) return share;
      std::unique_lock lock{mutex};
      const auto victim = victim_for(key);
      if (!victim) return std::nullopt;
      auto& e = sets.at(*victim);
      forget_use(e);
      const auto set = e.set;
      if (e.level == storage_level::memory) {
        evicted.push_back(*victim);
        const auto gone = take(sets.find(*victim), std::next(sets.find(*victim)));
        lock.unlock();
        continue;
      }
      lock.unlock();
      auto moved = set->copy_to_file(directories, file_name(*victim));
      lock.lock();
      const auto place = sets.find(*victim);
      if (place == sets.end() || place->second.set != set) continue; // removed meanwhile
      if (moved) {
        place->second.set = std::move(*moved);
      } else {
        evicted.push_back(*victim);
        const auto gone = take(place, std::next(place));
        lock.unlock();
      }
    }
  }

  /// What is to be kept of the content under the key.
  result<set_pointer> keep(const block_key& key, block_content content, storage_level level) {
    if (level != storage_level::disk && content.spills.empty())
      if (auto share = make_room(key, content.size())) {
        if (content.size() < shared_from)
          return std::make_shared<const block_set>(std::move(content), std::move(*share));
        auto shared = block_set::make_shared_memory(content, file_name(key), std::move(*share));
        if (shared || level == storage_level::memory) return shared;
      }
    if (level == storage_level::memory)
      return make_error(ec::overloaded, "there is no room in memory for " + to_string(key));
    return block_set::write(directories, file_name(key), content);
  }
};

block_store::block_store(options opts) : impl_(std::make_unique<impl>(std::move(opts))) {}

block_store::~block_store() = default;

result<std::vector<std::uint64_t>> block_store::put(const block_key& key, block_content content, storage_level level) {
  auto& d = *impl_;
  {
    const std::lock_guard lock{d.mutex};
    const auto [place, added] = d.sets.try_emplace(key);
    if (!added) return make_error(ec::invalid_argument, "a block set of " + to_string(key) + " is stored already");
    place->second.level = level;
  }
  auto kept = d.keep(key, std::move(content), level);
  const std::lock_guard lock{d.mutex};
  const auto place = d.sets.find(key);
  const bool wanted = place != d.sets.end() && !place->second.set;
  if (!kept) {
    if (wanted) d.sets.erase(place);
    return kept.error();
  }
  auto sizes = (*kept)->sizes();
  if (!wanted) return sizes; // it was removed while it was being stored
  auto& e = place->second;
  e.set = std::move(*kept);
  if (key.kind == block_kind::cached && e.set->in_memory()) e.use = d.by_use.insert(d.by_use.end(), key);
  d.total += e.set->size();
  return sizes;
}

result<block_view> block_store::get(const block_key& key, std::uint32_t bucket) const {
  impl::set_pointer set;
  {
    const std::lock_guard lock{impl_->mutex};
    const auto i = impl_->sets.find(key);
    if (i != impl_->sets.end()) {
      set = i->second.set;
      if (i->second.use) impl_->by_use.splice(impl_->by_use.end(), impl_->by_use, *i->second.use);
    }
  }
  if (!set) return make_error(ec::not_found, "no block of " + to_string(key) + " is kept here");
  if (bucket >= set->buckets())
    return make_error(ec::not_found, "the block set of " + to_string(key) + " has " + std::to_string(set->buckets()) +
                                         " buckets; bucket " + std::to_string(bucket) + " was asked for");
  return set->view(bucket, set);
}

void block_store::remove(stage_id stage) {
  std::vector<impl::set_pointer> taken; // destroyed without the lock: files take their time
  const std::lock_guard lock{impl_->mutex};
  const auto first = impl_->sets.lower_bound(output_key(stage, 0, 0));
  const auto last = impl_->sets.lower_bound(output_key(stage_id{stage.value + 1}, 0, 0));
  taken = impl_->take(first, last);
}

void block_store::remove(const block_key& key) {
  std::vector<impl::set_pointer> taken;
  const std::lock_guard lock{impl_->mutex};
  const auto i = impl_->sets.find(key);
  if (i != impl_->sets.end()) taken = impl_->take(i, std::next(i));
}

std::uint64_t block_store::bytes() const {
  const std::lock_guard lock{impl_->mutex};
  return impl_->total;
}

std::uint64_t block_store::bytes_in_memory() const noexcept { return impl_->budget.used(); }

std::vector<held_block> block_store::held() const {
  const std::lock_guard lock{impl_->mutex};
  std::vector<held_block> list;
  for (const auto& [key, e] : impl_->sets)
    if (e.set && key.kind == block_kind::output)
      list.push_back({stage_id{key.source}, key.partition, key.attempt, e.set->size()});
  return list;
}

std::vector<block_key> block_store::take_evicted() {
  const std::lock_guard lock{impl_->mutex};
  return std::exchange(impl_->evicted, {});
}

block_directories& block_store::directories() noexcept { return impl_->directories; }

} // namespace troupe
