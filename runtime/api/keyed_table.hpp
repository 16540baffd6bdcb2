#pragma once

/// A hash table whose keys are encoded values and which is walked in the order in which keys were first seen, so that
/// what is computed from it does not depend on a library's hash. Looking up a known key allocates nothing; the bytes
/// of all keys lie in one string. One owner; not thread-safe.

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/stable_hash.hpp>

namespace troupe::detail {

/// Whether they are equal; without a call where they are short.
inline bool same_bytes(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  if (a.size() > 64) return a == b;
  if (a.size() < 8) return a.empty() || little_endian(a.data(), a.size()) == little_endian(b.data(), b.size());
  const auto differ = [&](std::size_t at) {
    return little_endian<std::uint64_t>(a.data() + at) != little_endian<std::uint64_t>(b.data() + at);
  };
  for (std::size_t at = 0; at + 8 < a.size(); at += 8)
    if (differ(at)) return false;
  return !differ(a.size() - 8);
}

template <class V>
class keyed_table {
public:
  struct entry {
    std::uint64_t hash;
    std::size_t key_begin;
    std::size_t key_size;
    V value;
  };

  /// The entry of `key`, or null. @pre hash == stable_hash(key)
  entry* find(std::string_view key, std::uint64_t hash) noexcept {
    if (slots_.empty()) return nullptr;
    const auto number = slots_[slot_of(key, hash)].number;
    return number == 0 ? nullptr : &entries_[number - 1];
  }

  /// What `find` will look at, step by step, each step when the one before may have arrived: whoever has many keys at
  /// hand does not wait for memory with every one of them.
  void prefetch_slot(std::uint64_t hash) const noexcept {
    if (!slots_.empty()) __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
  }
  void prefetch_entry(std::uint64_t hash) const noexcept {
    if (const auto* const e = likely_entry(hash)) __builtin_prefetch(e);
  }
  void prefetch_key(std::uint64_t hash) const noexcept {
    if (const auto* const e = likely_entry(hash)) __builtin_prefetch(keys_.data() + e->key_begin);
  }

  /// Adds a key that is not there yet.
  entry& insert(std::string_view key, std::uint64_t hash, V value) {
    if (entries_.size() >= std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("more than 2^32 different keys in one partition; use more partitions");
    if (slots_.size() <= entries_.size() * 2) grow();
    entries_.push_back({hash, keys_.size(), key.size(), std::move(value)});
    keys_.append(key);
    slots_[slot_of(key, hash)] = {static_cast<std::uint32_t>(entries_.size()), upper_half(hash)};
    return entries_.back();
  }

  std::string_view key_of(const entry& e) const noexcept {
    return std::string_view{keys_}.substr(e.key_begin, e.key_size);
  }

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
  const entry* likely_entry(std::uint64_t hash) const noexcept {
    if (slots_.empty()) return nullptr;
    const auto mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(hash) & mask;
    while (slots_[at].number != 0 && slots_[at].half != upper_half(hash)) at = (at + 1) & mask;
    return slots_[at].number == 0 ? nullptr : &entries_[slots_[at].number - 1];
  }

  /// Position of the key's slot, or of the free one where it belongs.
  std::size_t slot_of(std::string_view key, std::uint64_t hash) const noexcept {
    const auto mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(hash) & mask;
    for (;; at = (at + 1) & mask) {
      if (slots_[at].number == 0) return at;
      if (slots_[at].half != upper_half(hash)) continue;
      const auto& e = entries_[slots_[at].number - 1];
      if (same_bytes(key_of(e), key)) return at;
    }
  }

  void grow() {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, {});
    const auto mask = slots_.size() - 1;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto at = static_cast<std::size_t>(entries_[i].hash) & mask;
      while (slots_[at].number != 0) at = (at + 1) & mask;
      slots_[at] = {static_cast<std::uint32_t>(i + 1), upper_half(entries_[i].hash)};
    }
  }

  std::string keys_;
  std::vector<entry> entries_;
  std::vector<slot> slots_; ///< a power of two of them, at most half taken
};

} // namespace troupe::detail
