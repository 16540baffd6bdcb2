#pragma once

/// Collects what belongs to equal keys, also where that is more than the task's memory holds.
///
/// Keys are ordered by the hash of their encoding (equal hashes by the encoding itself). As long as there is room, all
/// are in one table. Then the upper half of the hashes that are there moves to a file, and whatever comes later for
/// them follows it there, record by record; again and again, where that is not enough. At the end the table is given
/// out, and then each file is dealt with in the same way, the lowest hashes first. So what is kept for a key sees its
/// records in the order in which they came, and keys come in the order of their hashes, however little memory there is:
/// results do not depend on it. Only what is kept for a single key has to fit into memory.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/keyed_table.hpp>
#include <troupe/runtime/api/memory_of.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/api/stable_hash.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/storage/record_spill.hpp>

namespace troupe::detail {

/// Bytes that a key takes in a table whose entries are of this size, with what growing leaves unused.
constexpr std::uint64_t table_bytes_of(std::size_t key, std::size_t entry) noexcept { return 2 * (key + entry) + 16; }

/// What is kept for a key is a fold of its values.
template <class V, class Function>
class folded {
public:
  using kept = V;
  static constexpr bool has_sides = false;
  explicit folded(Function& function) : function_(&function) {}

  static kept first(std::uint8_t, decoder& in, std::uint64_t& bytes) {
    auto value = serializer<V>::read(in);
    bytes += memory_outside(value);
    return value;
  }
  /// @param bytes gets what more is kept for the key now, at most
  void add(kept& to, std::uint8_t, decoder& in, std::uint64_t& bytes) {
    auto value = serializer<V>::read(in);
    bytes += memory_outside(value);
    to = (*function_)(std::move(to), std::move(value));
  }
  static void skip(std::uint8_t, decoder& in) { static_cast<void>(serializer<V>::read(in)); }
  /// A fold need not be as large as all that went into it: then what is counted for it is too much.
  static constexpr bool may_shrink = !std::is_trivially_copyable_v<V>;
  static std::uint64_t bytes_now(const kept& what) { return memory_outside(what); }
  /// Calls `record(side, value)` for what has to be read to have it again.
  template <class Record>
  static void write(const kept& what, Record record) {
    record(std::uint8_t{0}, what);
  }

private:
  Function* function_;
};

/// All values.
template <class V>
struct listed {
  using kept = std::vector<V>;
  static constexpr bool has_sides = false;
  static constexpr bool may_shrink = false;

  static kept first(std::uint8_t side, decoder& in, std::uint64_t& bytes) {
    kept values;
    add(values, side, in, bytes);
    return values;
  }
  static void add(kept& to, std::uint8_t, decoder& in, std::uint64_t& bytes) {
    to.push_back(serializer<V>::read(in));
    bytes += 2 * sizeof(V) + memory_outside<V>(to.back());
  }
  static void skip(std::uint8_t, decoder& in) { static_cast<void>(serializer<V>::read(in)); }
  template <class Record>
  static void write(const kept& what, Record record) {
    for (const auto& value : what) record(std::uint8_t{0}, value);
  }
};

/// All values of side 0, and all of side 1.
template <class V, class W>
struct paired {
  using kept = std::pair<std::vector<V>, std::vector<W>>;
  static constexpr bool has_sides = true;
  static constexpr bool may_shrink = false;

  static kept first(std::uint8_t side, decoder& in, std::uint64_t& bytes) {
    kept values;
    add(values, side, in, bytes);
    return values;
  }
  static void add(kept& to, std::uint8_t side, decoder& in, std::uint64_t& bytes) {
    if (side == 0)
      listed<V>::add(to.first, side, in, bytes);
    else
      listed<W>::add(to.second, side, in, bytes);
  }
  static void skip(std::uint8_t side, decoder& in) {
    side == 0 ? listed<V>::skip(side, in) : listed<W>::skip(side, in);
  }
  template <class Record>
  static void write(const kept& what, Record record) {
    for (const auto& value : what.first) record(std::uint8_t{0}, value);
    for (const auto& value : what.second) record(std::uint8_t{1}, value);
  }
};

/// @tparam Policy what is kept for a key: one of the above
template <class Policy>
class grouping {
public:
  using kept = typename Policy::kept;

  grouping(task_context& context, Policy policy)
    : context_(context), policy_(std::move(policy)), memory_(context.memory_per_buffer()) {}

  /// Takes the value that `in` is at.
  void add(std::string_view key, std::uint8_t side, decoder& in) { add(key, stable_hash(key), side, in); }

  /// Calls `each(encoded key, kept&&)` for every key, in the order of their hashes. Once.
  template <class Each>
  void for_each(Each each) {
    for (;;) {
      give_out(each);
      if (aside_.empty()) return;
      auto next = std::move(aside_.back());
      aside_.pop_back();
      last_ = next.last;
      next.records.finish();
      record_spill::cursor pages{next.records};
      for (auto page = pages.next(); !page.empty(); page = pages.next()) {
        decoder in{page};
        while (!in.at_end()) {
          stop_if_cancelled(context_);
          const auto key = in.bytes(in.count());
          const auto side = Policy::has_sides ? in.number<std::uint8_t>() : std::uint8_t{0};
          add(key, stable_hash(key), side, in);
        }
      }
    }
  }

private:
  struct weighed {
    kept what;
    std::uint64_t bytes = 0; ///< that are counted for it
  };
  using table = keyed_table<weighed>;
  /// The records of all keys with hashes above what was in the table then, up to `last`.
  struct put_aside {
    std::uint64_t last = 0;
    record_spill records;
  };

  void add(std::string_view key, std::uint64_t hash, std::uint8_t side, decoder& in) {
    if (hash > last_) return follow(key, hash, side, in);
    std::uint64_t bytes = 0;
    if (auto* const known = table_.find(key, hash)) {
      policy_.add(known->value.what, side, in, bytes);
      known->value.bytes += bytes;
    } else {
      bytes = table_bytes_of(key.size(), sizeof(typename table::entry));
      auto first = policy_.first(side, in, bytes);
      table_.insert(key, hash, {std::move(first), bytes});
    }
    used_ += bytes;
    if (used_ > memory_ && used_ > stuck_) make_room();
  }

  /// Files are in descending order of their hashes: the last one is for those that follow the table's.
  void follow(std::string_view key, std::uint64_t hash, std::uint8_t side, decoder& in) {
    auto at = aside_.end() - 1;
    while (hash > at->last) --at;
    const auto rest = in.rest();
    policy_.skip(side, in);
    write(at->records, key, side, [&](encoder& out) { out.bytes(rest.substr(0, rest.size() - in.left())); });
  }

  template <class Value>
  static void write(record_spill& to, std::string_view key, std::uint8_t side, Value value) {
    encoder out{to.page()};
    out.size(key.size());
    out.bytes(key);
    if constexpr (Policy::has_sides) out.number(side);
    value(out);
    to.wrote();
  }

  void make_room() {
    if constexpr (Policy::may_shrink) {
      used_ = 0;
      for (auto& entry : table_.entries())
        used_ += entry.value.bytes =
            table_bytes_of(entry.key.size(), sizeof entry) + Policy::bytes_now(entry.value.what);
      if (used_ <= memory_ - memory_ / 4) { // else it would soon be looked at again
        stuck_ = 0;
        return;
      }
    }
    while (used_ > memory_ - memory_ / 4 && halve()) {}
    stuck_ = used_ > memory_ ? used_ + used_ / 8 : 0; // in vain: not with every record
  }

  /// Puts the upper half of the hashes aside. @returns false where there is but one, or nowhere to put them
  bool halve() {
    auto& entries = table_.entries();
    const auto spill = context_.spill_options(page_content());
    if (!spill || entries.size() < 2) return false;
    std::vector<std::uint64_t> hashes;
    hashes.reserve(entries.size());
    for (const auto& entry : entries) hashes.push_back(entry.hash);
    const auto middle = hashes.begin() + static_cast<std::ptrdiff_t>(hashes.size() / 2);
    std::nth_element(hashes.begin(), middle, hashes.end());
    const auto lowest = *std::min_element(hashes.begin(), middle);
    auto first = *middle;
    if (first == lowest) {
      const auto above = std::find_if(middle, hashes.end(), [&](std::uint64_t hash) { return hash > lowest; });
      if (above == hashes.end()) return false;
      first = *std::min_element(above, hashes.end(), [&](std::uint64_t a, std::uint64_t b) {
        return (a > lowest) != (b > lowest) ? a > lowest : a < b;
      });
    }
    put_aside upper{last_, record_spill{*spill}};
    table lower;
    std::uint64_t used = 0;
    for (auto& entry : entries) {
      const auto key = table_.key_of(entry);
      if (entry.hash < first) {
        used += entry.value.bytes;
        lower.insert(key, entry.hash, std::move(entry.value));
      } else {
        Policy::write(entry.value.what, [&](std::uint8_t side, const auto& value) {
          write(upper.records, key, side, [&](encoder& out) { out(value); });
        });
        [[maybe_unused]] const auto gone = std::move(entry.value.what); // so that both are never there as a whole
      }
    }
    aside_.push_back(std::move(upper));
    last_ = first - 1;
    table_ = std::move(lower);
    used_ = used;
    return true;
  }

  /// Small where there is little memory: each file has one open.
  std::size_t page_content() const noexcept {
    return static_cast<std::size_t>(std::clamp<std::uint64_t>(memory_ / 64, 4 << 10, 64 << 10));
  }

  template <class Each>
  void give_out(Each& each) {
    auto& entries = table_.entries();
    std::vector<std::uint32_t> order(entries.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (entries[a].hash != entries[b].hash) return entries[a].hash < entries[b].hash;
      return table_.key_of(entries[a]) < table_.key_of(entries[b]);
    });
    for (const auto i : order) {
      stop_if_cancelled(context_);
      each(table_.key_of(entries[i]), std::move(entries[i].value.what));
    }
    table_ = {};
    used_ = stuck_ = 0;
  }

  task_context& context_;
  Policy policy_;
  const std::uint64_t memory_;
  std::uint64_t used_ = 0;
  std::uint64_t stuck_ = 0;                                        ///< not tried again below
  std::uint64_t last_ = std::numeric_limits<std::uint64_t>::max(); ///< hash that belongs to the table
  table table_;
  std::vector<put_aside> aside_;
};

} // namespace troupe::detail
