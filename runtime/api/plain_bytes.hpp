#pragma once

/// Which classes travel as the bytes that they are in memory; included by serialize.hpp.

#include <cstddef>
#include <type_traits>
#include <utility>

namespace troupe {

/// Set it to true for a trivially copyable class of your own that has constructors or private members, and holds no
/// pointer, reference or view, to let it travel as its bytes. Structs whose members are numbers and enums, arrays of
/// such and structs of such need no word.
template <class T>
inline constexpr bool travels_as_bytes = false;

namespace detail {

/// Stand for members of a struct in a list that initialises it. None converts to what has members itself, so that the
/// list goes on into nested structs and arrays.
struct any_plain_member {
  template <class M>
  requires(std::is_arithmetic_v<M> || std::is_enum_v<M>) operator M() const noexcept;
};
struct any_other_member {
  template <class M>
  requires(!std::is_arithmetic_v<M> && !std::is_enum_v<M> && !std::is_aggregate_v<M>) operator M() const noexcept;
};

template <std::size_t>
using plain_member_at = any_plain_member;

template <class T, class... Next, std::size_t... I>
constexpr bool begins_with(std::index_sequence<I...>) {
  return requires { T{plain_member_at<I>{}..., Next{}...}; };
}

inline constexpr std::size_t most_plain_members = 64;

/// How many members that are numbers or enums `T` begins with.
template <class T, std::size_t N = 0>
constexpr std::size_t plain_members() {
  if constexpr (N > most_plain_members || !begins_with<T, any_plain_member>(std::make_index_sequence<N>{}))
    return N;
  else
    return plain_members<T, N + 1>();
}

/// Structs of numbers and enums. Those with more than `most_plain_members` are not looked through, and of a union only
/// the first member shows.
template <class T>
constexpr bool has_plain_members_only() {
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && std::is_trivially_copyable_v<T> &&
                std::is_default_constructible_v<T> && !std::is_empty_v<T>) {
    constexpr auto members = plain_members<T>();
    if constexpr (members == 0 || members > most_plain_members)
      return false;
    else
      return !begins_with<T, any_other_member>(std::make_index_sequence<members>{});
  } else {
    return false;
  }
}

template <class T>
constexpr bool find_plain_bytes() {
  if constexpr (travels_as_bytes<T>) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                  "troupe: travels_as_bytes is for classes that are trivially copyable and default constructible");
    return true;
  } else {
    return has_plain_members_only<T>();
  }
}

/// Whether `T` travels as the bytes that it is in memory.
template <class T>
inline constexpr bool is_plain_bytes = find_plain_bytes<T>();

/// Makes what lies between members 0, so that equal values have equal bytes.
template <class T>
void clear_padding([[maybe_unused]] T& value) noexcept {
#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&value);
#endif
#endif
}

} // namespace detail

} // namespace troupe
