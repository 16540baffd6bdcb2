#pragma once

/// Operations that look at where a record lies and not at what it is: they move partitions, spread records over new
/// ones, number them, and draw some by lot. All give the same for the same partitions.

#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/captured.hpp>
#include <troupe/runtime/api/number_row.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/api/stable_hash.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::detail {

/// Which new partition an old one goes to as a whole: `first + partition * to / from`.
struct partition_move {
  std::uint32_t first = 0;
  std::uint32_t to = 1;
  std::uint32_t from = 1;
};

/// Map side of what keeps the order of records: all of them go to one new partition.
template <class T>
class move_write final : public terminal<T> {
public:
  move_write(task_context& context, const partition_move& move)
    : output_(context.map_output()),
      bucket_(move.first + static_cast<std::uint32_t>(std::uint64_t{context.partition} * move.to / move.from)) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view encoded) {
    const auto move = decode_value<partition_move>(encoded);
    if (move.from == 0) throw std::logic_error("a partition is moved among none");
    return std::make_unique<move_write>(context, move);
  }

  void push(T&& record) override {
    encoder{output_.page(bucket_)}(record);
    output_.wrote(bucket_);
  }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  bucket_writer& output_;
  const std::uint32_t bucket_;
};

/// Map side of what makes partitions equally large: each record goes to the one after that of the record before, or,
/// where that is captured, to one by its content.
template <class T>
class spread_write final : public terminal<T> {
public:
  spread_write(task_context& context, bool by_content)
    : output_(context.map_output()), by_content_(by_content), next_(context.partition % output_.buckets()) {}
  static std::unique_ptr<terminal_sink> make(task_context& context, std::string_view encoded) {
    return std::make_unique<spread_write>(context, decode_value<bool>(encoded));
  }

  void push(T&& record) override {
    if (by_content_) {
      scratch_.clear();
      encoder{scratch_}(record);
      next_ = bucket_of(stable_hash(scratch_), output_.buckets());
    }
    encoder{output_.page(next_)}(record);
    output_.wrote(next_);
    if (++next_ == output_.buckets()) next_ = 0;
  }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  bucket_writer& output_;
  const bool by_content_;
  std::uint32_t next_;
  std::string scratch_;
};

/// Reduce side of both: what came from one shuffle after what came from the one before, each in the order of the old
/// partitions.
/// @tparam Shuffles how many there are
template <class T, std::uint8_t Shuffles>
struct moved_read {
  static void make(task_context& context, std::string_view, std::string_view, erased_sink& erased) {
    auto& out = typed_sink<T>(erased);
    for (std::uint8_t i = 0; i < Shuffles; ++i)
      context.read_shuffle(i, [&](std::string_view bytes) {
        decoder in{bytes};
        while (!in.at_end()) {
          stop_if_cancelled(context);
          out.push(serializer<T>::read(in));
        }
      });
  }
};

/// Each record with its number among all; captured is the number of the first one of each partition, and of one more.
template <class T>
class number_operation final : public sink<T> {
public:
  number_operation(std::uint64_t first, std::uint64_t end, erased_sink& out)
    : next_(first), end_(end), out_(typed_sink<std::pair<T, std::uint64_t>>(out)) {}
  static std::unique_ptr<erased_sink> make(task_context& context, std::string_view encoded, erased_sink& out) {
    const auto firsts = captures_of<std::vector<std::uint64_t>>(encoded);
    const std::size_t next = std::size_t{context.partition} + 1;
    if (next >= (*firsts).size()) throw std::logic_error("a partition that was not counted is numbered");
    return std::make_unique<number_operation>((*firsts)[context.partition], (*firsts)[next], out);
  }
  void push(T&& record) override {
    if (next_ == end_) fail();
    out_.push({std::move(record), next_++});
  }
  void finish() override {
    if (next_ != end_) fail();
    out_.finish();
  }

private:
  [[noreturn]] static void fail() {
    throw std::runtime_error("zip_with_index: this partition has not the records that were counted: what has made them "
                             "gives others each time");
  }

  std::uint64_t next_;
  const std::uint64_t end_;
  sink<std::pair<T, std::uint64_t>>& out_;
};

/// Each record with the same chance, drawn from a row of numbers of the partition.
template <class T>
class sample_operation final : public sink<T> {
public:
  sample_operation(double fraction, std::uint64_t seed, erased_sink& out)
    : fraction_(fraction), numbers_(seed), out_(typed_sink<T>(out)) {}
  static std::unique_ptr<erased_sink> make(task_context& context, std::string_view encoded, erased_sink& out) {
    const auto [fraction, seed] = decode_value<std::pair<double, std::uint64_t>>(encoded);
    return std::make_unique<sample_operation>(fraction, stable_hash_end(seed ^ stable_hash_end(context.partition)),
                                              out);
  }
  void push(T&& record) override {
    // The upper 53 bits are a number from 0 to below 1.
    if (std::ldexp(static_cast<double>(numbers_.next() >> 11), -53) < fraction_) out_.push(std::move(record));
  }
  void finish() override { out_.finish(); }

private:
  const double fraction_;
  number_row numbers_;
  sink<T>& out_;
};

} // namespace troupe::detail
