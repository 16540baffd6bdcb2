#pragma once

/// The two halves of a shuffle. A map task's last sink sorts its records into one bucket per reduce task by a hash of
/// the encoded key; a reduce task's source reads its bucket of every map output in partition order, so the result
/// depends on neither timing nor placement. Two keys are one key when their encodings are equal.
///
/// A bucket is a sequence of: size of the encoded key, encoded key, encoded value.

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/closure.hpp>
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

  void push(std::pair<K, V> record) override {
    const auto key = encode_key_(record.first);
    buckets_.append(key, stable_hash(key), record.second);
  }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  shuffle_buckets buckets_;
  key_encoder encode_key_;
};

/// Folds `value` into the table's value for `key`.
template <class V, class Function>
void combine(keyed_table<V>& table, std::string_view key, std::type_identity_t<V>&& value, Function& function) {
  const auto hash = stable_hash(key);
  if (auto* entry = table.find(key, hash))
    entry->value = function(std::move(entry->value), std::move(value));
  else
    table.insert(key, hash, std::move(value));
}

/// Map side of reduce_by_key: values of one key are combined before they leave the task.
template <class K, class V, class F, class Captures>
class combining_write final : public terminal<std::pair<K, V>> {
public:
  combining_write(task_context& context, std::string_view encoded) : buckets_(context), function_(encoded) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view encoded) {
    return std::make_unique<combining_write>(context, encoded);
  }

  void push(std::pair<K, V> record) override {
    combine(table_, encode_key_(record.first), std::move(record.second), function_);
  }
  void finish() override {
    for (const auto& entry : table_.entries()) buckets_.append(table_.key_of(entry), entry.hash, entry.value);
    table_ = {};
  }
  std::string take_result() override { return {}; }

private:
  shuffle_buckets buckets_;
  key_encoder encode_key_;
  closure<F, Captures> function_;
  keyed_table<V> table_;
};

/// Calls `each(encoded key, value)` for every record of this task's bucket of shuffle `index`.
template <class V, class Each>
void read_records(task_context& context, std::size_t index, Each each) {
  context.read_shuffle(index, [&](std::string_view bytes) {
    decoder in{bytes};
    while (!in.at_end()) {
      stop_if_cancelled(context);
      const auto key = in.bytes(in.count());
      each(key, serializer<V>::read(in));
    }
  });
}

/// All values per key of one shuffle.
template <class V>
keyed_table<std::vector<V>> read_groups(task_context& context, std::size_t index) {
  keyed_table<std::vector<V>> table;
  read_records<V>(context, index, [&](std::string_view key, V&& value) {
    const auto hash = stable_hash(key);
    auto* entry = table.find(key, hash);
    if (!entry) entry = &table.insert(key, hash, {});
    entry->value.push_back(std::move(value));
  });
  return table;
}

/// Reduce side of reduce_by_key.
template <class K, class V, class F, class Captures>
struct reduce_read {
  static void make(task_context& context, std::string_view encoded, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<std::pair<K, V>>(erased);
    closure<F, Captures> function{encoded};
    keyed_table<V> table;
    read_records<V>(context, 0,
                    [&](std::string_view key, V&& value) { combine(table, key, std::move(value), function); });
    for (auto& entry : table.entries()) {
      stop_if_cancelled(context);
      out.push({decode_value<K>(table.key_of(entry)), std::move(entry.value)});
    }
  }
};

/// Reduce side of group_by_key.
template <class K, class V>
struct group_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<std::pair<K, std::vector<V>>>(erased);
    auto table = read_groups<V>(context, 0);
    for (auto& entry : table.entries()) {
      stop_if_cancelled(context);
      out.push({decode_value<K>(table.key_of(entry)), std::move(entry.value)});
    }
  }
};

/// Reduce side of join: shuffle 0 is the left side, shuffle 1 the right one.
template <class K, class V, class W>
struct join_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<std::pair<K, std::pair<V, W>>>(erased);
    auto left = read_groups<V>(context, 0);
    auto right = read_groups<W>(context, 1);
    for (const auto& entry : left.entries()) {
      const auto key = left.key_of(entry);
      const auto* match = right.find(key, entry.hash);
      if (!match) continue;
      stop_if_cancelled(context);
      for (const auto& v : entry.value)
        for (const auto& w : match->value) out.push({decode_value<K>(key), {v, w}});
    }
  }
};

} // namespace troupe::detail
