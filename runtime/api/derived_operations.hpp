#pragma once

/// Operations and actions that are made of others: of map, reduce_by_key, sort_by_key, reduce, take and collect. What
/// they need travels as these do; a function of the author's is called by one of the small functions below, which holds
/// nothing itself.

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/runtime/api/checks.hpp>
#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/key_order.hpp>
#include <troupe/runtime/api/refused.hpp>
#include <troupe/runtime/api/sort_operations.hpp>

namespace troupe {

namespace detail {

/// `F` on the second half of a pair.
template <class F, class K, class V, class... C>
struct on_value {
  using result = std::decay_t<std::invoke_result_t<F&, const C&..., V>>;
  std::pair<K, result> operator()(const C&... captures, std::pair<K, V> record) const {
    F function{};
    return {std::move(record.first), function(captures..., std::move(record.second))};
  }
};

/// What `F` makes of a record, before the record.
template <class F, class T, class... C>
struct before_record {
  using result = std::decay_t<std::invoke_result_t<F&, const C&..., const T&>>;
  std::pair<result, T> operator()(const C&... captures, T record) const {
    F function{};
    result key = function(captures..., std::as_const(record));
    return {std::move(key), std::move(record)};
  }
};

struct first_half {
  template <class K, class V>
  K operator()(std::pair<K, V> record) const {
    return std::move(record.first);
  }
};
struct second_half {
  template <class K, class V>
  V operator()(std::pair<K, V> record) const {
    return std::move(record.second);
  }
};

struct one_for_each {
  template <class V>
  std::uint64_t operator()(const V&) const {
    return 1;
  }
};
struct no_value {
  template <class T>
  std::pair<T, std::monostate> operator()(T record) const {
    return {std::move(record), std::monostate{}};
  }
};
struct the_former {
  template <class V>
  V operator()(V former, const V&) const {
    return former;
  }
};
/// The order of values in which sorting puts them: what is no number comes behind all others, and enums go by their
/// numbers.
template <class T>
bool is_less(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>)
    return a < b || (std::isnan(b) && !std::isnan(a));
  else if constexpr (std::is_enum_v<T>)
    return static_cast<std::underlying_type_t<T>>(a) < static_cast<std::underlying_type_t<T>>(b);
  else
    return a < b;
}
struct the_lesser {
  template <class T>
  T operator()(T a, T b) const {
    return is_less(b, a) ? std::move(b) : std::move(a);
  }
};
struct the_greater {
  template <class T>
  T operator()(T a, T b) const {
    return is_less(a, b) ? std::move(b) : std::move(a);
  }
};

/// The map side of aggregate_by_key: its zero comes first among the captures.
template <class Fold, class A, class V, class... C>
struct fold_from_zero {
  A operator()(const A& zero, const C&... captures, V value) const {
    Fold fold{};
    return fold(captures..., A(zero), std::move(value));
  }
  A operator()(const A&, const C&... captures, A folded, V value) const {
    Fold fold{};
    return fold(captures..., std::move(folded), std::move(value));
  }
};

/// The type in which numbers of type `T` are added up.
template <class T>
struct sum_of : std::type_identity<T> {};
template <std::floating_point T>
struct sum_of<T> : std::type_identity<double> {};
template <std::signed_integral T>
struct sum_of<T> : std::type_identity<std::int64_t> {};
template <std::unsigned_integral T>
struct sum_of<T> : std::type_identity<std::uint64_t> {};

template <class Sum>
struct widened {
  template <class T>
  Sum operator()(const T& value) const {
    return static_cast<Sum>(value);
  }
};

template <class T>
concept can_be_added = std::is_default_constructible_v<T> && requires(T a, T b) {
  { a + b } -> std::convertible_to<T>;
};

/// What a dataset has of these; a base class of it.
template <class T>
class derived_operations {
public:
  /// The same keys with `f(value)`.
  /// Spark: mapValues. `pairs.map_values([](std::int64_t n) { return n * n; })`
  template <class F>
  auto map_values(F f) const {
    return map_values(with(), f);
  }
  template <class... C, class F>
  auto map_values(const captures<C...>& c, F) const {
    check_pair<T>();
    if constexpr (pair_types<T>::is_pair) {
      using key = typename pair_types<T>::key;
      using value = typename pair_types<T>::value;
      check_value<F, captures<C...>, value>();
      if constexpr (gives_value<F, captures<C...>, value>)
        return self().map(c, on_value<F, key, value, C...>{}).called("map_values");
      else
        return dataset<refused>{};
    } else {
      return dataset<refused>{};
    }
  }

  /// Pairs of `f(record)` and the record.
  /// Spark: keyBy. `words.key_by([](const std::string& word) { return word.size(); })`
  template <class F>
  auto key_by(F f) const {
    return key_by(with(), f);
  }
  template <class... C, class F>
  auto key_by(const captures<C...>& c, F) const {
    check_value<F, captures<C...>, const T&>();
    if constexpr (gives_value<F, captures<C...>, const T&>)
      return self().map(c, before_record<F, T, C...>{}).called("key_by");
    else
      return dataset<refused>{};
  }

  /// The first halves of pairs.
  /// Spark: keys. `pairs.keys()`
  auto keys() const {
    check_pair<T>();
    if constexpr (pair_types<T>::is_pair)
      return self().map(first_half{}).called("keys");
    else
      return dataset<refused>{};
  }
  /// The second halves of pairs.
  /// Spark: values. `pairs.values()`
  auto values() const {
    check_pair<T>();
    if constexpr (pair_types<T>::is_pair)
      return self().map(second_half{}).called("values");
    else
      return dataset<refused>{};
  }

  /// Each record once, in no order; two are one where their bytes are. A shuffle.
  /// Spark: distinct. `words.distinct()`
  dataset<T> distinct(std::uint32_t partitions = 0) const {
    check_travels<stuck_part<T>>();
    if constexpr (can_travel<T>::value)
      return self().map(no_value{}).reduce_by_key(the_former{}, partitions).keys().called("distinct");
    else
      return self();
  }

  /// The records in the order of `f(record)`; see sort_by_key.
  /// Spark: sortBy. `words.sort_by([](const std::string& word) { return word.size(); })`
  template <class F>
  dataset<T> sort_by(F f, sort_order order = sort_order::ascending, std::uint32_t partitions = 0) const {
    return sort_by(with(), f, order, partitions);
  }
  template <class... C, class F>
  dataset<T> sort_by(const captures<C...>& c, F f, sort_order order = sort_order::ascending,
                     std::uint32_t partitions = 0) const {
    if constexpr (gives_value<F, captures<C...>, const T&>) {
      const auto sorted = key_by(c, f).sort_by_key(order, partitions);
      return sorted.values().called("sort_by", sorted);
    } else {
      check_value<F, captures<C...>, const T&>();
      return self();
    }
  }

  /// --- actions ---

  /// The first record in partition order; nothing where there is none. Every partition is computed.
  /// Spark: first. `words.first()`
  std::optional<T> first() const {
    auto records = self().take(1);
    if (records.empty()) return std::nullopt;
    return std::optional<T>{std::in_place, std::move(records.front())};
  }

  /// All records added up with `+`: whole numbers as 64 bits, floating-point numbers as double, others as they are.
  /// What a default constructor makes where there is none.
  /// Spark: sum. `numbers.sum()`
  auto sum() const {
    using total = typename sum_of<T>::type;
    static_assert(can_be_added<total>, "troupe: sum needs an operator+ of two records that gives a record. Cure: "
                                       ".map(...) the records to numbers before it, or reduce(f).");
    if constexpr (can_be_added<total>)
      return self().map(widened<total>{}).reduce(std::plus<>{}).value_or(total{});
    else
      return refused{};
  }

  /// The least record, of equal ones the first; nothing where there is none. Numbers and enums go by their values; what
  /// is no number is greater than all numbers.
  /// Spark: min. `numbers.min()`
  std::optional<T> min() const {
    check_ordered();
    if constexpr (is_ordered<T>::value) return self().reduce(the_lesser{});
    return std::nullopt;
  }
  /// The greatest record, of equal ones the first; nothing where there is none.
  /// Spark: max. `numbers.max()`
  std::optional<T> max() const {
    check_ordered();
    if constexpr (is_ordered<T>::value) return self().reduce(the_greater{});
    return std::nullopt;
  }

  /// How many pairs each key has, in no order.
  /// Spark: countByKey. `pairs.count_by_key()`
  auto count_by_key() const {
    check_pair<T>();
    if constexpr (pair_types<T>::is_pair)
      return map_values(one_for_each{}).reduce_by_key(std::plus<>{}).collect();
    else
      return refused_records{};
  }

private:
  static constexpr void check_ordered() {
    static_assert(is_ordered<T>::value, "troupe: min and max need an operator< for the type of the records, and of all "
                                        "that they are made of. Cure: write one, or reduce(f).");
  }
  const dataset<T>& self() const { return static_cast<const dataset<T>&>(*this); }
};

} // namespace detail

} // namespace troupe
