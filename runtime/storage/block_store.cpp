#include <troupe/runtime/storage/block_store.hpp>

#include <map>
#include <mutex>

#include <xxhash.h>

#include <troupe/runtime/storage/block_file.hpp>

namespace troupe {

namespace {

std::string join(std::vector<std::string> buckets, std::uint64_t total) {
  if (buckets.size() == 1) return std::move(buckets.front());
  std::string all;
  all.reserve(total);
  for (auto& bucket : buckets) {
    all.append(bucket);
    std::string{}.swap(bucket); // so that a large set is never there twice
  }
  return all;
}

} // namespace

std::uint64_t block_checksum(std::string_view bytes) noexcept { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string to_string(const block_key& key) {
  return "stage " + std::to_string(key.stage.value) + " partition " + std::to_string(key.partition) + " attempt " +
         std::to_string(key.attempt);
}

struct block_store::impl {
  /// One set. Its buckets lie one after another, in memory or in a file.
  struct block_set {
    struct bucket {
      std::uint64_t end;
      std::uint64_t checksum;
    };
    std::vector<bucket> index;
    std::string memory; ///< used where there is no file
    std::unique_ptr<block_file> file;

    std::uint64_t size() const noexcept { return index.empty() ? 0 : index.back().end; }
  };

  options opts;
  mutable std::mutex mutex;
  std::map<block_key, std::shared_ptr<const block_set>> sets; ///< null: being stored
  std::uint64_t in_memory = 0;                                ///< bytes kept or about to be kept in memory
  std::uint64_t total = 0;
  std::uint64_t files = 0; ///< files begun; makes names unique

  /// Forgets [first, last). The sets themselves go after the lock, with their files.
  std::vector<std::shared_ptr<const block_set>>
  take(std::map<block_key, std::shared_ptr<const block_set>>::iterator first,
       std::map<block_key, std::shared_ptr<const block_set>>::iterator last) {
    std::vector<std::shared_ptr<const block_set>> taken;
    while (first != last) {
      if (first->second) {
        total -= first->second->size();
        if (!first->second->file) in_memory -= first->second->size();
        taken.push_back(std::move(first->second));
      }
      first = sets.erase(first);
    }
    return taken;
  }
};

block_store::block_store(options opts) : impl_(std::make_unique<impl>()) { impl_->opts = std::move(opts); }

block_store::~block_store() = default;

result<std::uint64_t> block_store::put(const block_key& key, std::vector<std::string> buckets) {
  auto& d = *impl_;
  auto set = std::make_shared<impl::block_set>();
  set->index.reserve(buckets.size());
  std::uint64_t size = 0;
  for (const auto& bucket : buckets) {
    size += bucket.size();
    set->index.push_back({size, block_checksum(bucket)});
  }
  std::string path;
  {
    const std::lock_guard lock{d.mutex};
    if (!d.sets.emplace(key, nullptr).second)
      return make_error(ec::invalid_argument, "a block set of " + to_string(key) + " is stored already");
    if (size > d.opts.memory_limit - d.in_memory)
      path = d.opts.directory + "/" + std::to_string(key.stage.value) + "." + std::to_string(key.partition) + "." +
             std::to_string(key.attempt) + "." + std::to_string(++d.files) + ".blocks";
    else
      d.in_memory += size;
  }
  error failed;
  if (path.empty()) {
    set->memory = join(std::move(buckets), size);
  } else {
    auto file = block_file::write(std::move(path), buckets);
    if (file)
      set->file = std::move(*file);
    else
      failed = file.error();
  }
  const bool filed = set->file != nullptr;
  const std::lock_guard lock{d.mutex};
  const auto place = d.sets.find(key);
  if (failed) {
    if (place != d.sets.end() && !place->second) d.sets.erase(place);
    return failed;
  }
  if (place == d.sets.end() || place->second) {
    // Removed while it was being stored: nobody wants it any more.
    if (!filed) d.in_memory -= size;
    return size;
  }
  place->second = std::move(set);
  d.total += size;
  return size;
}

result<block_view> block_store::get(const block_key& key, std::uint32_t bucket) const {
  std::shared_ptr<const impl::block_set> set;
  {
    const std::lock_guard lock{impl_->mutex};
    const auto i = impl_->sets.find(key);
    if (i != impl_->sets.end()) set = i->second;
  }
  if (!set) return make_error(ec::not_found, "no block of " + to_string(key) + " is kept here");
  if (bucket >= set->index.size())
    return make_error(ec::not_found, "the block set of " + to_string(key) + " has " +
                                         std::to_string(set->index.size()) + " buckets; bucket " +
                                         std::to_string(bucket) + " was asked for");
  const auto begin = bucket == 0 ? 0 : set->index[bucket - 1].end;
  const auto [end, checksum] = set->index[bucket];
  if (!set->file) {
    const auto bytes = std::string_view{set->memory}.substr(begin, end - begin);
    return block_view{std::move(set), bytes, checksum};
  }
  auto mapped = set->file->map();
  if (!mapped) return mapped.error();
  return block_view{std::move(mapped->owner), mapped->bytes.substr(begin, end - begin), checksum};
}

void block_store::remove(stage_id stage) {
  std::vector<std::shared_ptr<const impl::block_set>> taken; // destroyed without the lock: files take their time
  const std::lock_guard lock{impl_->mutex};
  const auto first = impl_->sets.lower_bound({stage, 0, 0});
  const auto last = impl_->sets.lower_bound({stage_id{stage.value + 1}, 0, 0});
  taken = impl_->take(first, last);
}

void block_store::remove(const block_key& key) {
  std::vector<std::shared_ptr<const impl::block_set>> taken;
  const std::lock_guard lock{impl_->mutex};
  const auto i = impl_->sets.find(key);
  if (i != impl_->sets.end()) taken = impl_->take(i, std::next(i));
}

std::uint64_t block_store::bytes() const {
  const std::lock_guard lock{impl_->mutex};
  return impl_->total;
}

std::vector<held_block> block_store::held() const {
  const std::lock_guard lock{impl_->mutex};
  std::vector<held_block> list;
  list.reserve(impl_->sets.size());
  for (const auto& [key, set] : impl_->sets) {
    if (set) list.push_back({key.stage, key.partition, key.attempt, set->size()});
  }
  return list;
}

} // namespace troupe
