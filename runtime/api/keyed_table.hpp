#pragma once

/// A hash table whose keys are encoded values and which is walked in the order in which keys were first seen, so that
/// what is computed from it does not depend on a library's hash. Looking up a known key allocates nothing; short keys
/// lie in the entries, the bytes of all others in one string. One owner; not thread-safe.

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/key_cell.hpp>
#include <troupe/runtime/api/stable_hash.hpp>

namespace troupe::detail {

template <class V>
class keyed_table {
public:
  struct entry {
    std::uint64_t hash;
    key_cell key;
    V value;
  };

  /// The entry of `key`, or null. @pre hash == stable_hash(key)
  entry* find(std::string_view key, std::uint64_t hash) noexcept {
    if (key.size() <= key_cell::most_inside) return find(key_cell::of(key), hash);
    return find_if(hash, [&](const key_cell& cell) {
      return !cell.is_inside() && cell.size() == key.size() && long_key(cell) == key;
    });
  }
  /// The same. @pre key.is_inside(), hash == key.hash()
  entry* find(const key_cell& key, std::uint64_t hash) noexcept {
    return find_if(hash, [&](const key_cell& cell) { return cell == key; });
  }

  /// What `find` will look at, step by step, each step when the one before may have arrived: whoever has many keys at
  /// hand does not wait for memory with every one of them.
  void prefetch_slot(std::uint64_t hash) const noexcept {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  /// @returns the number of the entry that may be the key's; 0: none is
  std::uint32_t prefetch_entry(std::uint64_t hash) const noexcept {
    const auto number = likely_entry(hash);
    if (number != 0) __builtin_prefetch(&entries_[number - 1]);
    return number;
  }
  void prefetch_long_key(std::uint32_t number) const noexcept {
    if (number == 0) return;
    if (const auto& key = entries_[number - 1].key; !key.is_inside()) __builtin_prefetch(keys_.data() + key.begin());
  }
  /// The same as `find`, for who has the number that `prefetch_entry` gave; it may have become wrong meanwhile.
  entry* find(const key_cell& key, std::uint64_t hash, std::uint32_t likely) noexcept {
    if (likely != 0 && likely <= entries_.size() && entries_[likely - 1].key == key) return &entries_[likely - 1];
    return find(key, hash);
  }

  /// Adds a key that is not there yet.
  entry& insert(std::string_view key, std::uint64_t hash, V value) {
    if (entries_.size() >= std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("more than 2^32 different keys in one partition; use more partitions");
    if (slots_.size() * 5 <= entries_.size() * 8) grow();
    if (key.size() <= key_cell::most_inside) {
      entries_.push_back({hash, key_cell::of(key), std::move(value)});
    } else {
      entries_.push_back({hash, key_cell::elsewhere(keys_.size(), key.size()), std::move(value)});
      keys_.append(key);
    }
    place(static_cast<std::uint32_t>(entries_.size()));
    return entries_.back();
  }

  /// Valid until the next one is inserted.
  std::string_view key_of(const entry& e) const noexcept { return e.key.is_inside() ? e.key.bytes() : long_key(e.key); }

  /// In the order of insertion.
  std::vector<entry>& entries() noexcept { return entries_; }

private:
  /// What is looked at first: most keys that are not the one are told by a part of their hashes.
  struct slot {
    std::uint32_t number = 0; ///< of the entry, from 1; 0: free
    std::uint32_t half = 0;   ///< upper half of the hash
  };
  static std::uint32_t upper_half(std::uint64_t hash) noexcept { return static_cast<std::uint32_t>(hash >> 32); }

  /// The first entry that may be the key's.
  std::uint32_t likely_entry(std::uint64_t hash) const noexcept {
    if (slots_.empty()) return 0;
    const auto mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(hash) & mask;
    while (slots_[at].number != 0 && slots_[at].half != upper_half(hash)) at = (at + 1) & mask;
    return slots_[at].number;
  }

  std::string_view long_key(const key_cell& cell) const noexcept {
    return std::string_view{keys_}.substr(static_cast<std::size_t>(cell.begin()), cell.size());
  }

  template <class IsKey>
  entry* find_if(std::uint64_t hash, IsKey is_key) noexcept {
    if (slots_.empty()) return nullptr;
    const auto mask = slots_.size() - 1;
    const auto half = upper_half(hash);
    for (auto at = static_cast<std::size_t>(hash) & mask;; at = (at + 1) & mask) {
      const auto [number, theirs] = slots_[at];
      if (number == 0) return nullptr;
      if (theirs == half && is_key(entries_[number - 1].key)) return &entries_[number - 1];
    }
  }

  /// Into the first free slot for it.
  void place(std::uint32_t number) {
    const auto hash = entries_[number - 1].hash;
    const auto mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(hash) & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = {number, upper_half(hash)};
  }

  void grow() {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, {});
    for (std::uint32_t number = 1; number <= entries_.size(); ++number) place(number);
  }

  std::string keys_; ///< the long ones
  std::vector<entry> entries_;
  std::vector<slot> slots_; ///< a power of two of them, of which five eighths are taken at most
};

} // namespace troupe::detail
