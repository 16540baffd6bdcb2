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
    const auto slot = slots_[slot_of(key, hash)];
    return slot == 0 ? nullptr : &entries_[slot - 1];
  }

  /// Adds a key that is not there yet.
  entry& insert(std::string_view key, std::uint64_t hash, V value) {
    if (entries_.size() >= std::numeric_limits<std::uint32_t>::max())
      throw std::length_error("more than 2^32 different keys in one partition; use more partitions");
    if (slots_.size() * 3 <= entries_.size() * 4) grow();
    entries_.push_back({hash, keys_.size(), key.size(), std::move(value)});
    keys_.append(key);
    slots_[slot_of(key, hash)] = static_cast<std::uint32_t>(entries_.size());
    return entries_.back();
  }

  std::string_view key_of(const entry& e) const noexcept {
    return std::string_view{keys_}.substr(e.key_begin, e.key_size);
  }

  /// In the order of insertion.
  std::vector<entry>& entries() noexcept { return entries_; }

private:
  /// Position of the key's slot, or of the free one where it belongs.
  std::size_t slot_of(std::string_view key, std::uint64_t hash) const noexcept {
    const auto mask = slots_.size() - 1;
    auto at = static_cast<std::size_t>(hash) & mask;
    for (;; at = (at + 1) & mask) {
      if (slots_[at] == 0) return at;
      const auto& e = entries_[slots_[at] - 1];
      if (e.hash == hash && key_of(e) == key) return at;
    }
  }

  void grow() {
    slots_.assign(slots_.empty() ? 16 : slots_.size() * 2, 0);
    const auto mask = slots_.size() - 1;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto at = static_cast<std::size_t>(entries_[i].hash) & mask;
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::string keys_;
  std::vector<entry> entries_;
  std::vector<std::uint32_t> slots_; ///< entry + 1, 0 for free; a power of two of them, at most 3/4 taken
};

} // namespace troupe::detail
