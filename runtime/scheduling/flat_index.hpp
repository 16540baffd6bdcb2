#pragma once

/// Where the things with these ids stand: a hash table in one piece of memory, since a look-up of one among ten
/// thousands should cost one cache line, not a bucket and a node. Ids that were issued one after the other lie beside
/// each other. Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe {

template <class Id>
class flat_index {
public:
  static constexpr std::uint32_t none = 0xffff'ffff;

  /// @returns `none` for an unknown id
  std::uint32_t find(Id id) const noexcept {
    if (entries_.empty()) return none;
    for (auto at = home(id);; at = next(at))
      if (entries_[at].position == none || entries_[at].id == id) return entries_[at].position;
  }
  /// It will be looked for soon.
  void prefetch(Id id) const noexcept {
    if (!entries_.empty()) __builtin_prefetch(&entries_[home(id)]);
  }
  /// @pre the id is unknown, `position` is not `none`
  void insert(Id id, std::uint32_t position) {
    if (2 * (size_ + 1) > entries_.size()) grow();
    place({id, position});
    ++size_;
  }
  /// @pre the id is known, `position` is not `none`
  void move(Id id, std::uint32_t position) noexcept {
    auto at = home(id);
    while (entries_[at].id != id || entries_[at].position == none) at = next(at);
    entries_[at].position = position;
  }
  /// An unknown one is ignored.
  void erase(Id id) noexcept {
    if (find(id) == none) return;
    auto hole = home(id);
    while (entries_[hole].id != id) hole = next(hole);
    // Whatever stands behind the hole and would be looked for before it moves up.
    for (auto at = next(hole); entries_[at].position != none; at = next(at)) {
      if (((at - home(entries_[at].id)) & mask()) < ((at - hole) & mask())) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = {};
    --size_;
  }
  std::size_t size() const noexcept { return size_; }

private:
  struct entry {
    Id id{};
    std::uint32_t position = none; ///< `none`: the entry is empty
  };

  std::size_t mask() const noexcept { return entries_.size() - 1; }
  std::size_t next(std::size_t at) const noexcept { return (at + 1) & mask(); }
  std::size_t home(Id id) const noexcept {
    constexpr std::uint64_t together = 8;
    const auto group = (id.value / together) * 0x9e37'79b9'7f4a'7c15u;
    return ((group >> 32) * together + id.value % together) & mask();
  }
  void place(entry e) {
    auto at = home(e.id);
    while (entries_[at].position != none) at = next(at);
    entries_[at] = e;
  }
  void grow() {
    const auto old = std::exchange(entries_, std::vector<entry>(entries_.empty() ? 16 : 2 * entries_.size()));
    for (const auto& e : old)
      if (e.position != none) place(e);
  }

  std::vector<entry> entries_; ///< a power of two of them, at most half of them in use
  std::size_t size_ = 0;
};

} // namespace troupe
