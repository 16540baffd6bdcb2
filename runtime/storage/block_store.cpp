#include <troupe/runtime/storage/block_store.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include <troupe/runtime/storage/block_set.hpp>

namespace troupe {

namespace {

/// For people who look into the directory; what makes it unique is added there.
std::string file_name(const block_key& key) {
  const auto partition = std::to_string(key.source) + "." + std::to_string(key.partition);
  return key.kind == block_kind::output ? partition + "." + std::to_string(key.attempt) : "cached-" + partition;
}

} // namespace

std::string to_string(const block_key& key) {
  if (key.kind == block_kind::cached)
    return "kept dataset " + std::to_string(key.source) + " partition " + std::to_string(key.partition);
  if (key.kind == block_kind::broadcast) return "broadcast " + std::to_string(key.source);
  return "stage " + std::to_string(key.source) + " partition " + std::to_string(key.partition) + " attempt " +
         std::to_string(key.attempt);
}

struct block_store::impl {
  using set_pointer = block_set::pointer;
  struct entry {
    set_pointer set; ///< null: being stored
    storage_level level = storage_level::memory_and_disk;
    std::uint64_t put = 0; ///< number of the call that stores it: another one may have the key by the time it is done
    bool moving = false;   ///< to a file
    bool counted = true;   ///< in `total`: not where another entry has the same set
    std::optional<std::list<block_key>::iterator> use; ///< of cached ones in memory: place in `by_use`
  };
  using entries = std::map<block_key, entry>;

  explicit impl(options opts)
    : shared_from(opts.shared_from), budget(opts.memory_limit), descriptors(opts.max_descriptors),
      directories(std::move(opts.directories)) {}

  const std::uint64_t shared_from;

  memory_budget budget;
  memory_budget descriptors; ///< counted one by one
  block_directories directories;
  mutable std::mutex mutex;
  mutable std::list<block_key> by_use; ///< cached ones in memory, the one used longest ago first
  entries sets;
  std::uint64_t total = 0;
  std::uint64_t puts = 0;
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
        if (first->second.counted) total -= first->second.set->size();
        taken.push_back(std::move(first->second.set));
      }
      first = sets.erase(first);
    }
    return taken;
  }

  /// The cached block that goes next to make room of so many bytes for this one: none of the same dataset, which would
  /// only chase each other, none that somebody reads, whose memory stays taken, and none at all where that makes too
  /// little room.
  std::optional<block_key> victim_for(const block_key& key, std::uint64_t bytes) const {
    std::optional<block_key> first;
    std::uint64_t room = budget.limit() - std::min(budget.limit(), budget.used());
    for (const auto& candidate : by_use) {
      const auto& e = sets.at(candidate);
      if (e.moving || e.set.use_count() > 1) continue;
      if (key.kind == block_kind::cached && candidate.source == key.source) continue;
      if (!first) first = candidate;
      room += e.set->memory();
      if (room >= bytes) return first;
    }
    return std::nullopt;
  }

  std::optional<memory_budget::share> make_room(const block_key& key, std::uint64_t bytes) {
    for (;;) {
      if (auto share = budget.take(bytes)) return share;
      std::vector<set_pointer> gone; // without the lock: memory takes its time, too
      set_pointer moving;
      std::optional<block_key> victim;
      {
        const std::lock_guard lock{mutex};
        victim = victim_for(key, bytes);
        if (!victim) return std::nullopt;
        const auto place = sets.find(*victim);
        if (place->second.level == storage_level::memory) {
          evicted.push_back(*victim);
          gone = take(place, std::next(place));
        } else {
          place->second.moving = true;
          moving = place->second.set;
        }
      }
      if (moving) move_to_file(*victim, moving);
    }
  }

  /// Where it cannot be written it is dropped.
  void move_to_file(const block_key& key, set_pointer& set) {
    result<set_pointer> moved = make_error(ec::io, "it was not moved");
    try {
      moved = set->copy_to_file(directories, file_name(key));
    } catch (const std::bad_alloc&) { // then it goes, which makes room
    }
    std::vector<set_pointer> gone;
    const std::lock_guard lock{mutex};
    const auto place = sets.find(key);
    if (place == sets.end() || place->second.set != set) return; // removed meanwhile
    if (moved) {
      forget_use(place->second);
      place->second.moving = false;
      place->second.set = std::move(*moved);
    } else {
      evicted.push_back(key);
      gone = take(place, std::next(place));
    }
  }

  /// Drops the set of the key, unless it is just being stored. @returns whether there was one
  bool forget_stored(const block_key& key) {
    std::vector<set_pointer> taken; // goes after the lock
    const std::lock_guard lock{mutex};
    if (const auto place = sets.find(key); place != sets.end() && place->second.set && !place->second.moving)
      taken = take(place, std::next(place));
    return !taken.empty();
  }

  /// A key that is one call's until it is done, however that ends.
  class reservation {
  public:
    reservation(impl& store, const block_key& key, storage_level level) : store_(store), key_(key) {
      const std::lock_guard lock{store.mutex};
      const auto [place, added] = store.sets.try_emplace(key);
      if (!added) return;
      place->second.level = level;
      number_ = place->second.put = ++store.puts;
    }
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;
    ~reservation() {
      if (number_ == 0) return;
      const std::lock_guard lock{store_.mutex};
      const auto place = store_.sets.find(key_);
      if (place != store_.sets.end() && place->second.put == number_ && !place->second.set) store_.sets.erase(place);
    }
    /// False: somebody else has the key.
    explicit operator bool() const noexcept { return number_ != 0; }
    /// @returns whether it is there now: it may have been removed while it was being stored. Under the lock.
    bool fill(const set_pointer& set, bool counted) {
      const auto place = store_.sets.find(key_);
      if (place == store_.sets.end() || place->second.put != number_) return false;
      auto& e = place->second;
      if (key_.kind == block_kind::cached && set->in_memory()) e.use = store_.by_use.insert(store_.by_use.end(), key_);
      e.set = set;
      e.counted = counted;
      if (counted) store_.total += set->size();
      return true;
    }

  private:
    impl& store_;
    const block_key key_;
    std::uint64_t number_ = 0;
  };

  /// What is to be kept of the content under the key. The content is as it was where there is no room for it.
  result<set_pointer> keep(const block_key& key, block_content& content, storage_level level) {
    if (level != storage_level::disk && content.spills.empty())
      if (auto share = make_room(key, block_set::memory_for(content))) {
        if (content.size() >= shared_from)
          if (auto place = descriptors.take(1))
            if (auto shared = block_set::make_shared_memory(content, file_name(key), *share, std::move(*place)))
              return shared;
        return std::make_shared<const block_set>(std::move(content), std::move(*share));
      }
    if (level == storage_level::memory)
      return make_error(ec::overloaded, "there is no room in memory for " + to_string(key));
    return block_set::write(directories, file_name(key), content);
  }
};

block_store::block_store(options opts) : impl_(std::make_unique<impl>(std::move(opts))) {}

block_store::~block_store() = default;

result<void> block_store::put(const block_key& key, block_content content, storage_level level) {
  auto& d = *impl_;
  impl::reservation mine{d, key, level};
  if (!mine) return make_error(ec::invalid_argument, "a block set of " + to_string(key) + " is stored already");
  const auto set = d.keep(key, content, level);
  if (!set) return set.error();
  const std::lock_guard lock{d.mutex};
  mine.fill(*set, true);
  return {};
}

result<bool> block_store::put_cached(const block_key& cached, const block_key& output, block_content content,
                                     storage_level level) {
  auto& d = *impl_;
  impl::reservation mine{d, output, storage_level::memory_and_disk};
  if (!mine) return make_error(ec::invalid_argument, "a block set of " + to_string(output) + " is stored already");
  const bool replaces = d.forget_stored(cached);
  impl::reservation kept{d, cached, level};
  bool keeps = static_cast<bool>(kept);
  auto set = d.keep(keeps ? cached : output, content, keeps ? level : storage_level::memory_and_disk);
  if (!set && keeps && set.error().code == ec::overloaded) {
    keeps = false;
    set = d.keep(output, content, storage_level::memory_and_disk);
  }
  const std::lock_guard lock{d.mutex};
  keeps = keeps && set && kept.fill(*set, true);
  if (replaces && !keeps) d.evicted.push_back(cached);
  if (!set) return set.error();
  mine.fill(*set, !keeps);
  return keeps;
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

result<block_view> block_store::get_whole(const block_key& key) {
  auto& d = *impl_;
  const auto find = [&]() -> impl::set_pointer {
    const std::lock_guard lock{d.mutex};
    const auto i = d.sets.find(key);
    return i == d.sets.end() ? nullptr : i->second.set;
  };
  auto set = find();
  if (set && set->in_memory()) {
    auto moved = set->copy_to_file(d.directories, file_name(key));
    if (!moved) return moved.error();
    const std::lock_guard lock{d.mutex};
    const auto i = d.sets.find(key);
    if (i != d.sets.end() && i->second.set == set) {
      d.forget_use(i->second);
      i->second.set = *moved;
    }
    set = std::move(*moved);
  }
  if (!set) return make_error(ec::not_found, "no block of " + to_string(key) + " is kept here");
  auto piece = set->open_whole();
  if (!piece) return piece.error();
  const auto size = piece->size;
  return block_view{nullptr, {}, std::move(*piece), size};
}

result<void> block_store::adopt(const block_key& key, std::unique_ptr<block_file> file) {
  auto& d = *impl_;
  auto descriptor = d.descriptors.take(1);
  if (!descriptor) return make_error(ec::overloaded, "there are too many open block files already");
  auto set = std::make_shared<const block_set>(std::move(file), memory_budget::share{}, std::move(*descriptor));
  const std::lock_guard lock{d.mutex};
  const auto [place, added] = d.sets.try_emplace(key);
  if (!added) return make_error(ec::invalid_argument, "a block set of " + to_string(key) + " is stored already");
  place->second.level = storage_level::disk;
  d.total += set->size();
  place->second.set = std::move(set);
  return {};
}

void block_store::remove(stage_id stage) {
  std::vector<impl::set_pointer> taken; // destroyed without the lock: files take their time
  const std::lock_guard lock{impl_->mutex};
  const auto first = impl_->sets.lower_bound(output_key(stage, 0, 0));
  const auto last = impl_->sets.lower_bound(output_key(stage_id{stage.value + 1}, 0, 0));
  taken = impl_->take(first, last);
}

void block_store::remove(cache_id cache) {
  std::vector<impl::set_pointer> taken;
  const std::lock_guard lock{impl_->mutex};
  taken = impl_->take(impl_->sets.lower_bound(cached_key(cache, 0)),
                      impl_->sets.lower_bound(cached_key(cache_id{cache.value + 1}, 0)));
}

void block_store::remove(const block_key& key) {
  std::vector<impl::set_pointer> taken;
  const std::lock_guard lock{impl_->mutex};
  const auto i = impl_->sets.find(key);
  if (i != impl_->sets.end()) taken = impl_->take(i, std::next(i));
}

void block_store::evict(cache_id cache, partition_index partition) {
  std::vector<impl::set_pointer> taken;
  const std::lock_guard lock{impl_->mutex};
  const auto i = impl_->sets.find(cached_key(cache, partition));
  if (i == impl_->sets.end() || !i->second.set) return;
  impl_->evicted.push_back(i->first);
  taken = impl_->take(i, std::next(i));
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
