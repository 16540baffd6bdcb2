#pragma once

/// The two halves of a shuffle. A map task's last sink sorts its records into one bucket per reduce task by a hash of
/// the encoded key; a reduce task's source reads its bucket of every map output in partition order, so the result
/// depends on neither timing nor placement. Two keys are one key when their encodings are equal.
///
/// A bucket is a sequence of: size of the encoded key, encoded key, encoded value.

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/grouping.hpp>
#include <troupe/runtime/api/keyed_table.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/api/stable_hash.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::detail {

/// Sorts the records of one map task into its buckets.
class shuffle_buckets {
public:
  explicit shuffle_buckets(task_context& context) : output_(context.map_output()) {}

  template <class V>
  void append(std::string_view key, std::uint64_t hash, const V& value) {
    const auto bucket = bucket_of(hash, output_.buckets());
    encoder out{output_.page(bucket)};
    out.size(key.size());
    out.bytes(key);
    out(value);
    output_.wrote(bucket);
  }

private:
  bucket_writer& output_;
};

/// The encoded key of the record at hand; keeps its memory.
class key_encoder {
public:
  template <class K>
  std::string_view operator()(const K& key) {
    scratch_.clear();
    encoder{scratch_}(key);
    return scratch_;
  }

private:
  std::string scratch_;
};

/// Map side of group_by_key and join: every record goes out.
template <class K, class V>
class shuffle_write final : public terminal<std::pair<K, V>> {
public:
  explicit shuffle_write(task_context& context) : buckets_(context) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view) {
    return std::make_unique<shuffle_write>(context);
  }

  void push(std::pair<K, V>&& record) override {
    const auto key = encode_key_(record.first);
    buckets_.append(key, stable_hash(key), record.second);
  }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  shuffle_buckets buckets_;
  key_encoder encode_key_;
};

/// What a map task combines at once, in bytes: always the same, so that the parts which reducers fold, and with them
/// results whose order of folding matters (sums of floating-point numbers), do not depend on where a task runs.
inline constexpr std::uint64_t most_combined = 8 << 20;

/// A terminal of pairs whose keys, where they are texts, need not be strings: `Write::add_text` takes them.
template <class Write, class K, class V>
class keyed_terminal : public terminal<std::pair<K, V>> {};
template <class Write, class V>
class keyed_terminal<Write, std::string, V> : public terminal<std::pair<std::string, V>> {
public:
  void push_text(std::string_view key, V&& value) final { static_cast<Write*>(this)->add_text(key, std::move(value)); }
};

/// Map side of reduce_by_key and aggregate_by_key: values of one key are combined before they leave the task.
/// @tparam Kept what a key's values are combined to by `F`, which makes one of a first value, or of one and a further
/// value; void: they are combined to a value by `F(value, value)`
template <class K, class V, class F, class Captures, class Kept = void>
class combining_write final : public keyed_terminal<combining_write<K, V, F, Captures, Kept>, K, V> {
  using kept = std::conditional_t<std::is_void_v<Kept>, V, Kept>;

public:
  combining_write(task_context& context, std::string_view encoded) : buckets_(context), function_(encoded) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view encoded) {
    return std::make_unique<combining_write>(context, encoded);
  }

  void push(std::pair<K, V>&& record) override {
    if constexpr (std::is_same_v<K, std::string>) {
      add_text(record.first, std::move(record.second));
    } else {
      const auto begin = keys_.size();
      encoder{keys_}(record.first);
      const auto encoded = std::string_view{keys_}.substr(begin);
      if (encoded.size() > key_cell::most_inside) return wait_long(begin, std::move(record.second));
      const auto cell = key_cell::of(encoded);
      keys_.resize(begin);
      wait(cell.hash(), cell, std::move(record.second));
    }
  }
  [[gnu::always_inline]] void add_text(std::string_view key, V&& value) {
    if (key.size() < key_cell::most_inside) {
      const auto cell = key_cell::of_text(key);
      return wait(cell.hash(), cell, std::move(value));
    }
    const auto begin = keys_.size();
    encoder out{keys_};
    out.size(key.size());
    out.bytes(key);
    wait_long(begin, std::move(value));
  }
  void finish() override {
    combine();
    flush();
  }
  std::string take_result() override { return {}; }

private:
  struct waiting_record {
    std::uint64_t hash;
    key_cell key; ///< a long one lies in `keys_`
    V value;
    std::uint32_t likely = 0; ///< number of its entry, probably
  };
  static constexpr std::size_t most_waiting = 64; ///< enough that memory need not be waited for
  static constexpr std::size_t most_waiting_bytes = 16 << 10;

  void wait(std::uint64_t hash, const key_cell& key, V&& value) {
    table_.prefetch_slot(hash);
    waiting_.push_back({hash, key, std::move(value)});
    if (waiting_.size() == most_waiting || keys_.size() > most_waiting_bytes) combine();
  }
  /// With the key that stands at the end of `keys_`.
  void wait_long(std::size_t begin, V&& value) {
    const auto key = std::string_view{keys_}.substr(begin);
    wait(stable_hash(key), key_cell::elsewhere(begin, key.size()), std::move(value));
  }

  /// Takes up what waits, in its order.
  void combine() {
    for (auto& w : waiting_) w.likely = table_.prefetch_entry(w.hash);
    for (const auto& w : waiting_)
      if (!w.key.is_inside()) table_.prefetch_long_key(w.likely);
    for (auto& w : waiting_) combine(w);
    waiting_.clear();
    keys_.clear();
  }
  void combine(waiting_record& w) {
    const auto bytes = [&] {
      return w.key.is_inside() ? w.key.bytes()
                               : std::string_view{keys_}.substr(static_cast<std::size_t>(w.key.begin()), w.key.size());
    };
    used_ += memory_outside(w.value);
    // What is kept may be a container that takes values up.
    if constexpr (!std::is_void_v<Kept>)
      if constexpr (!std::is_trivially_copyable_v<kept>) used_ += sizeof(V) + 4 * sizeof(void*);
    if (auto* const known = w.key.is_inside() ? table_.find(w.key, w.hash, w.likely) : table_.find(bytes(), w.hash)) {
      known->value = function_(std::move(known->value), std::move(w.value));
    } else {
      if constexpr (std::is_void_v<Kept>) {
        table_.insert(bytes(), w.hash, std::move(w.value));
      } else {
        kept first = function_(std::move(w.value));
        used_ += memory_outside(first);
        table_.insert(bytes(), w.hash, std::move(first));
      }
      used_ += table_bytes_of(w.key.size(), sizeof(typename keyed_table<kept>::entry));
    }
    if (used_ > most_combined) flush();
  }
  void flush() {
    for (const auto& entry : table_.entries()) buckets_.append(table_.key_of(entry), entry.hash, entry.value);
    table_ = {};
    used_ = 0;
  }

  shuffle_buckets buckets_;
  closure<F, Captures> function_;
  keyed_table<kept> table_;
  std::string keys_; ///< encoded, the long ones of those that wait
  std::vector<waiting_record> waiting_;
  std::uint64_t used_ = 0;
};

/// Groups the records of this task's bucket of shuffle `index`.
template <class Policy>
void read_into(grouping<Policy>& groups, task_context& context, std::uint8_t index) {
  context.read_shuffle(index, [&](std::string_view bytes) {
    decoder in{bytes};
    while (!in.at_end()) {
      stop_if_cancelled(context);
      const auto key = in.bytes(in.count());
      groups.add(key, index, in);
    }
  });
}

/// Reduce side of reduce_by_key.
template <class K, class V, class F, class Captures>
struct reduce_read {
  static void make(task_context& context, std::string_view encoded, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<std::pair<K, V>>(erased);
    closure<F, Captures> function{encoded};
    grouping groups{context, folded<V, closure<F, Captures>>{function}};
    read_into(groups, context, 0);
    groups.for_each([&](std::string_view key, V&& value) { out.push({decode_value<K>(key), std::move(value)}); });
  }
};

/// Reduce side of group_by_key.
template <class K, class V>
struct group_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<std::pair<K, std::vector<V>>>(erased);
    grouping groups{context, listed<V>{}};
    read_into(groups, context, 0);
    groups.for_each([&](std::string_view key, std::vector<V>&& values) {
      out.push({decode_value<K>(key), std::move(values)});
    });
  }
};

/// Reduce side of joins: shuffle 0 is the left side, shuffle 1 the right one. `Form::record` is made of a key and a
/// pair; `Form::each` calls `emit` with such a pair for the values of one key.
template <class K, class V, class W, template <class, class> class Form>
struct join_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    using form = Form<V, W>;
    auto& out = typed_sink<std::pair<K, typename form::record>>(erased);
    grouping groups{context, paired<V, W>{}};
    read_into(groups, context, 0);
    read_into(groups, context, 1);
    groups.for_each([&](std::string_view key, std::pair<std::vector<V>, std::vector<W>>&& sides) {
      form::each(std::move(sides.first), std::move(sides.second), [&](typename form::record&& record) {
        stop_if_cancelled(context);
        out.push({decode_value<K>(key), std::move(record)});
      });
    });
  }
};

/// Every two values.
template <class V, class W>
struct inner_form {
  using record = std::pair<V, W>;
  template <class Emit>
  static void each(std::vector<V>&& left, std::vector<W>&& right, Emit emit) {
    for (const auto& v : left)
      for (const auto& w : right) emit(record{v, w});
  }
};
/// And those of the left side that meet none.
template <class V, class W>
struct left_form {
  using record = std::pair<V, std::optional<W>>;
  template <class Emit>
  static void each(std::vector<V>&& left, std::vector<W>&& right, Emit emit) {
    for (auto&& v : left) {
      if (right.empty()) emit(record{V(std::move(v)), std::nullopt});
      for (const auto& w : right) emit(record{v, w});
    }
  }
};
/// And those of the right side that meet none.
template <class V, class W>
struct full_form {
  using record = std::pair<std::optional<V>, std::optional<W>>;
  template <class Emit>
  static void each(std::vector<V>&& left, std::vector<W>&& right, Emit emit) {
    for (auto&& v : left) {
      if (right.empty()) emit(record{V(std::move(v)), std::nullopt});
      for (const auto& w : right) emit(record{v, w});
    }
    if (left.empty())
      for (auto&& w : right) emit(record{std::nullopt, W(std::move(w))});
  }
};
/// All of the one side and all of the other.
template <class V, class W>
struct group_form {
  using record = std::pair<std::vector<V>, std::vector<W>>;
  template <class Emit>
  static void each(std::vector<V>&& left, std::vector<W>&& right, Emit emit) {
    emit(record{std::move(left), std::move(right)});
  }
};

} // namespace troupe::detail
