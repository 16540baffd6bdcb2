#pragma once

/// The ends of result stages: what an action leaves of each partition and sends to the driver.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/operation_entry.hpp>
#include <troupe/runtime/api/serialize.hpp>
#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

/// The order of `top` where none is given: the largest first; pairs by their value, equal values by the smaller key.
struct largest_first {
  template <class T>
  bool operator()(const T& a, const T& b) const {
    return b < a;
  }
  template <class K, class V>
  bool operator()(const std::pair<K, V>& a, const std::pair<K, V>& b) const {
    if (b.second < a.second) return true;
    if (a.second < b.second) return false;
    return a.first < b.first;
  }
};

namespace detail {

/// The first `limit` records of a partition, encoded one after another behind nothing: the reader reads to the end.
template <class T>
class collect_terminal final : public terminal<T> {
public:
  explicit collect_terminal(std::uint64_t limit) : left_(limit) {}
  static std::unique_ptr<terminal_sink> make(task_context&, std::string_view encoded) {
    return std::make_unique<collect_terminal>(decode_value<std::uint64_t>(encoded));
  }

  void push(T&& record) override {
    if (left_ == 0) return;
    --left_;
    encoder{result_}(record);
  }
  void finish() override {}
  std::string take_result() override { return std::move(result_); }

private:
  std::uint64_t left_;
  std::string result_;
};

template <class T>
class count_terminal final : public terminal<T> {
public:
  static std::unique_ptr<terminal_sink> make(task_context&, std::string_view) {
    return std::make_unique<count_terminal>();
  }
  void push(T&&) override { ++count_; }
  void finish() override {}
  std::string take_result() override { return encode_value(count_); }

private:
  std::uint64_t count_ = 0;
};

/// All records of a partition folded into one; nothing for an empty partition.
template <class T, class F, class Captures>
class reduce_terminal final : public terminal<T> {
public:
  explicit reduce_terminal(std::string_view encoded) : function_(encoded) {}
  static std::unique_ptr<terminal_sink> make(task_context&, std::string_view encoded) {
    return std::make_unique<reduce_terminal>(encoded);
  }

  void push(T&& record) override {
    if (value_)
      value_ = function_(std::move(*value_), std::move(record));
    else
      value_ = std::move(record);
  }
  void finish() override {}
  std::string take_result() override { return encode_value(value_); }

private:
  closure<F, Captures> function_;
  std::optional<T> value_;
};

/// Keeps the `limit` records that come first in an order; among equal ones the earlier.
template <class T, class Before>
class best_records {
public:
  explicit best_records(std::size_t limit, Before before) : limit_(limit), before_(std::move(before)) {}

  void add(T record) {
    if (limit_ == 0) return;
    records_.push_back(std::move(record));
    // Cutting back from twice the limit costs a constant number of comparisons a record, times log(limit).
    if (records_.size() / 2 >= limit_ && records_.size() >= 64) cut();
  }
  std::vector<T> take() {
    cut();
    return std::move(records_);
  }

private:
  void cut() {
    std::stable_sort(records_.begin(), records_.end(), [this](const T& a, const T& b) { return before_(a, b); });
    if (records_.size() > limit_)
      records_.erase(records_.begin() + static_cast<std::ptrdiff_t>(limit_), records_.end());
  }

  std::size_t limit_;
  Before before_;
  std::vector<T> records_;
};

template <class T, class F, class Captures>
class top_terminal final : public terminal<T> {
public:
  top_terminal(std::uint64_t limit, std::string_view encoded)
    : best_(static_cast<std::size_t>(limit), closure<F, Captures>{encoded}) {}
  static std::unique_ptr<terminal_sink> make(task_context&, std::string_view encoded) {
    decoder in{encoded};
    const auto limit = in.number<std::uint64_t>();
    return std::make_unique<top_terminal>(limit, in.bytes(in.left()));
  }

  void push(T&& record) override { best_.add(std::move(record)); }
  void finish() override {}
  std::string take_result() override { return encode_value(best_.take()); }

private:
  best_records<T, closure<F, Captures>> best_;
};

/// Calls the function for its effects; leaves nothing.
template <class T, class F, class Captures>
class foreach_terminal final : public terminal<T> {
public:
  explicit foreach_terminal(std::string_view encoded) : function_(encoded) {}
  static std::unique_ptr<terminal_sink> make(task_context&, std::string_view encoded) {
    return std::make_unique<foreach_terminal>(encoded);
  }
  void push(T&& record) override { function_(std::move(record)); }
  void finish() override {}
  std::string take_result() override { return {}; }

private:
  closure<F, Captures> function_;
};

} // namespace detail

} // namespace troupe
