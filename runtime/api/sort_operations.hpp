#pragma once

/// Sorting: a sample of the keys says which range of them each partition gets; map tasks write their records by range,
/// and each reduce task sorts its own (see record_sorter). Records of equal keys keep their order. All three go by the
/// keys' encodings and `directed_order`.
///
/// A record in a bucket: size of the encoded key, encoded key, size of the encoded rest, the rest.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/captured.hpp>
#include <troupe/runtime/api/key_order.hpp>
#include <troupe/runtime/api/number_row.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/record_sorter.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

enum class sort_order : std::uint8_t { ascending, descending };

namespace detail {

/// Pairs, by their first half.
template <class K, class V>
struct sorted_pairs {
  using record = std::pair<K, V>;
  using key = K;
  static void write_key(encoder& out, const record& r) { out(r.first); }
  static void write_rest(encoder& out, const record& r) { out(r.second); }
  static record read(std::string_view key, std::string_view rest) {
    return {decode_value<K>(key), decode_value<V>(rest)};
  }
};

/// Records that are keys as a whole.
template <class T>
struct sorted_wholes {
  using record = T;
  using key = T;
  static void write_key(encoder& out, const record& r) { out(r); }
  static void write_rest(encoder&, const record&) {}
  static record read(std::string_view key, std::string_view) { return decode_value<T>(key); }
};

/// Some of the keys of one partition, each as likely as any other, and always the same ones.
template <class Form>
class sample_terminal final : public terminal<typename Form::record> {
public:
  /// @param most keys, and bytes of them; large keys are fewer
  sample_terminal(std::uint64_t most, std::uint64_t most_bytes, partition_index partition)
    : most_(most), most_bytes_(most_bytes), numbers_(partition) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view encoded) {
    const auto [most, bytes] = decode_value<std::pair<std::uint64_t, std::uint64_t>>(encoded);
    return std::make_unique<sample_terminal>(most, bytes, context.partition);
  }

  void push(typename Form::record&& r) override {
    const auto place = seen_ < most_ ? seen_ : numbers_.next() % (seen_ + 1);
    ++seen_;
    if (place >= most_) return;
    if (place == keys_.size()) keys_.emplace_back();
    bytes_ -= keys_[place].size();
    keys_[place].clear();
    encoder out{keys_[place]};
    Form::write_key(out, r);
    bytes_ += keys_[place].size();
    // A part of a sample, drawn by lot, is a sample.
    while (bytes_ > most_bytes_ && keys_.size() > 1) {
      most_ = std::max<std::uint64_t>(1, keys_.size() / 2);
      for (; keys_.size() > most_; keys_.pop_back()) {
        std::swap(keys_[numbers_.next() % keys_.size()], keys_.back());
        bytes_ -= keys_.back().size();
      }
    }
  }
  void finish() override {}
  std::string take_result() override { return encode_value(std::pair{seen_, std::move(keys_)}); }

private:
  std::uint64_t most_;
  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  number_row numbers_;
  std::uint64_t seen_ = 0;
  std::vector<std::string> keys_;
};

/// Whether encoded key `a` comes before `b`.
template <class Order>
bool comes_before(std::string_view a, std::string_view b) {
  const auto x = Order::prefix(a);
  const auto y = Order::prefix(b);
  return x != y || Order::is_whole ? x < y : Order::compare(a, b) < 0;
}

/// The keys at which ranges of about equally many records begin, all but the first: at most `parts` - 1, rising.
/// @param samples of each partition: how many records it has, and some of their keys
template <class Order>
std::vector<std::string> range_bounds(const std::vector<std::pair<std::uint64_t, std::vector<std::string>>>& samples,
                                      std::uint32_t parts) {
  struct weighted {
    std::string key;
    double weight;
  };
  std::vector<weighted> all;
  double total = 0;
  for (const auto& [count, keys] : samples)
    for (const auto& key : keys) {
      all.push_back({key, static_cast<double>(count) / static_cast<double>(keys.size())});
      total += all.back().weight;
    }
  std::stable_sort(all.begin(), all.end(),
                   [](const weighted& a, const weighted& b) { return comes_before<Order>(a.key, b.key); });
  std::vector<std::string> bounds;
  double before = 0;
  for (const auto& [key, weight] : all) {
    if (bounds.size() + 1 == parts) break;
    const auto wanted = total * static_cast<double>(bounds.size() + 1) / parts;
    if (before >= wanted && comes_before<Order>(bounds.empty() ? all.front().key : bounds.back(), key))
      bounds.push_back(key);
    before += weight;
  }
  return bounds;
}

/// Map side: every record goes to the range of its key.
template <class Form, bool Down>
class range_write final : public terminal<typename Form::record> {
  using order = directed_order<typename Form::key, Down>;

public:
  range_write(task_context& context, std::string_view encoded)
    : output_(context.map_output()), shared_(captures_of<std::vector<std::string>>(encoded)), bounds_(*shared_) {
    for (const auto& bound : bounds_) prefixes_.push_back(order::prefix(bound));
  }
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view encoded) {
    return std::make_unique<range_write>(context, encoded);
  }

  void push(typename Form::record&& r) override {
    scratch_.clear();
    encoder parts{scratch_};
    Form::write_key(parts, r);
    const auto key = scratch_.size();
    Form::write_rest(parts, r);
    const std::string_view all{scratch_};
    const auto bucket = bucket_of(all.substr(0, key));
    encoder out{output_.page(bucket)};
    out.size(key);
    out.bytes(all.substr(0, key));
    out.size(all.size() - key);
    out.bytes(all.substr(key));
    output_.wrote(bucket);
  }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  /// That of the last bound which the key does not come before.
  std::uint32_t bucket_of(std::string_view key) const {
    const auto prefix = order::prefix(key);
    std::size_t low = 0;
    for (std::size_t high = bounds_.size(); low < high;) {
      const auto middle = low + (high - low) / 2;
      const bool before = prefix != prefixes_[middle] || order::is_whole ? prefix < prefixes_[middle]
                                                                         : order::compare(key, bounds_[middle]) < 0;
      before ? high = middle : low = middle + 1;
    }
    return static_cast<std::uint32_t>(low);
  }

  bucket_writer& output_;
  const captured<std::vector<std::string>> shared_;
  const std::vector<std::string>& bounds_;
  std::vector<std::uint64_t> prefixes_; ///< of them
  std::string scratch_;
};

/// Reduce side: sorts what has come.
template <class Form, bool Down>
struct sort_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    using order = directed_order<typename Form::key, Down>;
    auto& out = typed_sink<typename Form::record>(erased);
    record_sorter::options options;
    options.memory = context.memory_per_buffer();
    options.spill = [&](std::size_t page_content) { return context.spill_options(page_content); };
    options.check = [&] { stop_if_cancelled(context); };
    options.prefix = &order::prefix;
    if constexpr (!order::is_whole) options.compare = &order::compare;
    if constexpr (order::has_pieces) options.piece = &order::piece;
    record_sorter sorter{std::move(options)};
    context.read_shuffle(0, [&](std::string_view bytes) {
      decoder in{bytes};
      while (!in.at_end()) {
        stop_if_cancelled(context);
        const auto key = in.bytes(in.count());
        sorter.add(key, in.bytes(in.count()));
      }
    });
    sorter.for_each([&](const sorted_record& r) {
      stop_if_cancelled(context);
      out.push(Form::read(r.key, r.value));
    });
  }
};

} // namespace detail

} // namespace troupe
