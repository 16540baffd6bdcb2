#pragma once

/// The partitions of a stage whose outputs one executor keeps, in no order that matters. Taking one out costs the same
/// however many there are; few are looked through, so that those of a shuffle, which mostly go all at once, take no
/// more than their numbers. Not thread-safe.

#include <algorithm>
#include <cstddef>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/flat_index.hpp>

namespace troupe {

class kept_partitions {
public:
  /// @pre it is not there
  void add(partition_index p) {
    if (where_.size() > 0) where_.insert({p}, static_cast<std::uint32_t>(all_.size()));
    all_.push_back(p);
  }

  /// @returns whether it was there
  bool remove(partition_index p) {
    const auto at = position_of(p);
    if (at == flat_index<number>::none) return false;
    const auto last = all_.back();
    all_[at] = last;
    all_.pop_back();
    if (where_.size() > 0) {
      where_.erase({p});
      if (last != p) where_.move({last}, at);
    }
    return true;
  }

  bool empty() const noexcept { return all_.empty(); }
  std::size_t size() const noexcept { return all_.size(); }
  auto begin() const noexcept { return all_.begin(); }
  auto end() const noexcept { return all_.end(); }

private:
  static constexpr std::size_t few = 32;
  struct number {
    partition_index value = 0;
    bool operator==(const number&) const = default;
  };

  std::uint32_t position_of(partition_index p) {
    if (where_.size() == 0) {
      if (all_.size() <= few) {
        const auto at = std::find(all_.begin(), all_.end(), p);
        return at == all_.end() ? flat_index<number>::none : static_cast<std::uint32_t>(at - all_.begin());
      }
      for (std::uint32_t at = 0; at < all_.size(); ++at) where_.insert({all_[at]}, at);
    }
    return where_.find({p});
  }

  std::vector<partition_index> all_;
  flat_index<number> where_; ///< in `all_`; empty: not known yet
};

} // namespace troupe
