#pragma once

/// Which classes travel as the bytes that they are in memory; included by serialize.hpp.

#include <array>
#include <bit>
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

/// True for an enum of bool values. Its byte cannot be told from a gap while clang 16 compiles, so it travels with
/// neither compiler.
template <class M>
constexpr bool is_enum_of_bool() {
  if constexpr (std::is_enum_v<M>)
    return std::is_same_v<std::underlying_type_t<M>, bool>;
  else
    return false;
}

/// Stand for members of a struct in a list that initialises it. None converts to what has members itself, so that the
/// list goes on into nested structs and arrays.
struct any_plain_member {
  template <class M>
  requires((std::is_arithmetic_v<M> || std::is_enum_v<M>) &&!is_enum_of_bool<M>()) operator M() const noexcept;
};
struct any_other_member {
  template <class M>
  requires(!std::is_arithmetic_v<M> && !std::is_enum_v<M> && !std::is_aggregate_v<M>) operator M() const noexcept;
};
/// Nothing is made of it but what takes anything.
struct foreign_type {};

template <std::size_t>
using plain_member_at = any_plain_member;

template <class T, class... Next, std::size_t... I>
constexpr bool begins_with(std::index_sequence<I...>) {
  return requires { T{plain_member_at<I>{}..., Next{}...}; };
}
/// Whether there is another member, of a kind that does not matter, behind those.
template <class T, std::size_t... I>
constexpr bool goes_on(std::index_sequence<I...>) {
  return requires { T{plain_member_at<I>{}..., {}}; };
}

inline constexpr std::size_t most_plain_members = 256;

/// Whether, from member `N` on, there are numbers and enums alone. A class with constructors may take a number as well,
/// and is none.
template <class T, std::size_t N = 0>
constexpr bool goes_on_plainly() {
  using before = std::make_index_sequence<N>;
  if constexpr (N > most_plain_members || begins_with<T, any_other_member>(before{}) ||
                begins_with<T, foreign_type>(before{}))
    return false;
  else if constexpr (begins_with<T, any_plain_member>(before{}))
    return goes_on_plainly<T, N + 1>();
  else
    return N > 0 && !goes_on<T>(before{});
}

/// Reads the bytes [From, To) of a `T` whose members are 0. Constant if all of them belong to members: a byte between
/// members has no value once it was part of a `T`, and reading it is no constant expression.
template <class T, std::size_t From, std::size_t To>
constexpr bool read_member_bytes() {
  using bytes = std::array<unsigned char, sizeof(T)>;
  const auto of_members = std::bit_cast<bytes>(std::bit_cast<T>(bytes{}));
  bool zero = true;
  for (auto i = From; i < To; ++i) zero = zero && of_members[i] == 0;
  return zero;
}
template <class T, std::size_t From, std::size_t To>
concept are_member_bytes = requires {
  typename std::bool_constant<(read_member_bytes<T, From, To>(), true)>;
};

/// True if a member is found among the bytes [From, To). None is in classes that the compiler cannot look into while it
/// compiles: clang 16 cannot where there are bit-fields or unions.
template <class T, std::size_t From = 0, std::size_t To = sizeof(T)>
constexpr bool has_member_bytes() {
  if constexpr (are_member_bytes<T, From, To>)
    return true;
  else if constexpr (To - From > 1)
    return has_member_bytes<T, From, (From + To) / 2>() || has_member_bytes<T, (From + To) / 2, To>();
  else
    return false;
}

/// Sets the bytes of [From, To) that belong to no member to 0. `bytes` are those of a `T`.
template <class T, std::size_t From = 0, std::size_t To = sizeof(T)>
void clear_between_members([[maybe_unused]] unsigned char* bytes) noexcept {
  if constexpr (are_member_bytes<T, From, To>) {
    // no byte to clear
  } else if constexpr (To - From > 1) {
    clear_between_members<T, From, (From + To) / 2>(bytes);
    clear_between_members<T, (From + To) / 2, To>(bytes);
  } else {
    bytes[From] = 0;
  }
}

#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
#define TROUPE_CLEARS_PADDING 1
#endif
#endif

/// Structs of numbers and enums. Those with more than `most_plain_members` are not looked through, and of a union only
/// the first member shows.
template <class T>
constexpr bool has_plain_members_only() {
  // What cannot be assigned has a reference, or is constant.
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T> && std::is_trivially_copyable_v<T> &&
                std::is_trivially_copy_assignable_v<T> && std::is_default_constructible_v<T> && !std::is_empty_v<T>)
    return goes_on_plainly<T>();
  else
    return false;
}

template <class T>
constexpr bool find_plain_bytes() {
  if constexpr (travels_as_bytes<T>) {
    static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                  "troupe: travels_as_bytes is for classes that are trivially copyable and default constructible");
    return true;
  } else {
#ifdef TROUPE_CLEARS_PADDING
    return has_plain_members_only<T>();
#else
    if constexpr (has_plain_members_only<T>())
      return has_member_bytes<T>();
    else
      return false;
#endif
  }
}

/// Whether `T` travels as the bytes that it is in memory.
template <class T>
inline constexpr bool is_plain_bytes = find_plain_bytes<T>();

/// Makes what lies between members 0, so that equal values have equal bytes.
template <class T>
void clear_padding([[maybe_unused]] T& value) noexcept {
#ifdef TROUPE_CLEARS_PADDING
  __builtin_clear_padding(&value);
#else
  if constexpr (has_member_bytes<T>()) clear_between_members<T>(reinterpret_cast<unsigned char*>(&value));
#endif
}

} // namespace detail

} // namespace troupe
