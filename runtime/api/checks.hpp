#pragma once

/// What operations demand of records and functions. Each check says what is wrong and what cures it, once: where one
/// fails, the operation does nothing else, and gives a dataset that takes everything (refused.hpp).

#include <type_traits>
#include <utility>

#include <troupe/runtime/api/closure.hpp>
#include <troupe/runtime/api/refused.hpp>
#include <troupe/runtime/api/serialize.hpp>

namespace troupe {

namespace detail {

template <class T>
struct pair_types {
  static constexpr bool is_pair = false;
  using key = T; // so that the one message about pairs is not followed by others
  using value = T;
};
template <class K, class V>
struct pair_types<std::pair<K, V>> {
  static constexpr bool is_pair = !std::is_const_v<K>;
  using key = K;
  using value = V;
};

/// Fails to compile, with the cure, where no dataset can have records of type `T`.
template <class T>
constexpr void check_record() {
  static_assert(!holds_view<T>::value,
                "troupe: records may not be pointers, references, C strings or views, nor hold any, which mean nothing "
                "in another process. Cure: return the value itself, e.g. std::string in place of std::string_view.");
}
template <class T>
using dataset_of = std::conditional_t<holds_view<T>::value, dataset<refused>, dataset<T>>;

/// Whether an operation may call `F` with captures and arguments and use what it returns as a `Result` (void: as it
/// is). Where it may not, check_call says why, and the operation does nothing else.
template <class F, class Captures, class Result, class... A>
inline constexpr bool is_callable = can_be_made_anew<F>&& call<F, Captures, A...>::possible &&
                                    (std::is_void_v<Result> ||
                                     std::is_convertible_v<typename call<F, Captures, A...>::result, Result>);

/// @returns anything: as a constant, which a compiler looks at before it goes on
template <class F, class Captures, class Result, class... A>
constexpr bool check_call() {
  check_closure<F>();
  constexpr bool possible = call<F, Captures, A...>::possible;
  static_assert(!can_be_made_anew<F> || possible,
                "troupe: this function cannot be called with the captures given by troupe::with, in their order, and "
                "then the operation's own arguments (the record; for reduce and top: two of them; for "
                "map_partitions: a std::vector of records). Cure: take the record by value or as a const reference; "
                "auto& and T& take none, for records are passed on, not changed in place.");
  static_assert(!can_be_made_anew<F> || !possible || is_callable<F, Captures, Result, A...>,
                "troupe: this function returns another type than the operation needs (reduce: the record's type; "
                "reduce_by_key: the value's; aggregate_by_key: zero's; filter and top: bool)");
  return true;
}

/// The same where what the function returns becomes a part of a record.
template <class F, class Captures, class... A>
inline constexpr bool gives_value =
    is_callable<F, Captures, void, A...> && !std::is_void_v<typename call<F, Captures, A...>::result>;
template <class F, class Captures, class... A>
constexpr bool check_value() {
  static_assert(!is_callable<F, Captures, void, A...> || gives_value<F, Captures, A...>,
                "troupe: this function returns nothing where a part of a record is expected");
  return check_call<F, Captures, void, A...>();
}

/// Fails to compile, with the cure, where `T` is no pair.
template <class T>
constexpr void check_pair() {
  static_assert(pair_types<T>::is_pair || std::is_const_v<typename pair_types<T>::key>,
                "troupe: operations by key need records of type std::pair<key, value>. Cure: .map([](record r) { "
                "return std::pair{key, value}; }) before it.");
  static_assert(!std::is_const_v<typename pair_types<T>::key>,
                "troupe: the keys of these pairs are constant, as those of a map are. Cure: .map([](const auto& p) { "
                "return std::pair{p.first, p.second}; }) before it.");
}

/// Whether a number of type `From` is more than a `To` may hold.
template <class From, class To>
inline constexpr bool is_cut = std::is_arithmetic_v<From>&& std::is_arithmetic_v<To> &&
                               ((std::is_floating_point_v<From> && std::is_integral_v<To>) ||
                                (std::is_integral_v<From> && std::is_integral_v<To> && sizeof(From) > sizeof(To) &&
                                 sizeof(From) > sizeof(int)));

} // namespace detail

} // namespace troupe
