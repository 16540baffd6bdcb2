#pragma once

/// How many members an aggregate has, as far as a compiler can be made to tell; included by serialize.hpp.

#include <cstddef>
#include <type_traits>

namespace troupe::detail {

/// Whether a `T` can be made from so many pairs of empty braces, one for each member. Empty braces make one whole
/// member each, also an array or a struct.
template <class T, std::size_t Count>
inline constexpr bool takes = false;

// Nothing but repeated text makes a list of empty braces.
#define TROUPE_BRACES_1                                                                                                \
  {}
#define TROUPE_BRACES_2                                                                                                \
  TROUPE_BRACES_1, {}
#define TROUPE_BRACES_3                                                                                                \
  TROUPE_BRACES_2, {}
#define TROUPE_BRACES_4                                                                                                \
  TROUPE_BRACES_3, {}
#define TROUPE_BRACES_5                                                                                                \
  TROUPE_BRACES_4, {}
#define TROUPE_BRACES_6                                                                                                \
  TROUPE_BRACES_5, {}
#define TROUPE_BRACES_7                                                                                                \
  TROUPE_BRACES_6, {}
#define TROUPE_BRACES_8                                                                                                \
  TROUPE_BRACES_7, {}
#define TROUPE_BRACES_9                                                                                                \
  TROUPE_BRACES_8, {}
#define TROUPE_BRACES_10                                                                                               \
  TROUPE_BRACES_9, {}
#define TROUPE_BRACES_11                                                                                               \
  TROUPE_BRACES_10, {}
#define TROUPE_BRACES_12                                                                                               \
  TROUPE_BRACES_11, {}
#define TROUPE_BRACES_13                                                                                               \
  TROUPE_BRACES_12, {}
#define TROUPE_BRACES_14                                                                                               \
  TROUPE_BRACES_13, {}
#define TROUPE_BRACES_15                                                                                               \
  TROUPE_BRACES_14, {}
#define TROUPE_BRACES_16                                                                                               \
  TROUPE_BRACES_15, {}
#define TROUPE_BRACES_17                                                                                               \
  TROUPE_BRACES_16, {}
#define TROUPE_BRACES_18                                                                                               \
  TROUPE_BRACES_17, {}
#define TROUPE_BRACES_19                                                                                               \
  TROUPE_BRACES_18, {}
#define TROUPE_BRACES_20                                                                                               \
  TROUPE_BRACES_19, {}
// So many, and 20 and 40 more.
#define TROUPE_TAKES(count)                                                                                            \
  template <class T>                                                                                                   \
  inline constexpr bool takes<T, count> = requires {                                                                   \
    T{TROUPE_BRACES_##count};                                                                                          \
  };                                                                                                                   \
  template <class T>                                                                                                   \
  inline constexpr bool takes<T, 20 + count> = requires {                                                              \
    T{TROUPE_BRACES_20, TROUPE_BRACES_##count};                                                                        \
  };                                                                                                                   \
  template <class T>                                                                                                   \
  inline constexpr bool takes<T, 40 + count> = requires {                                                              \
    T{TROUPE_BRACES_20, TROUPE_BRACES_20, TROUPE_BRACES_##count};                                                      \
  };
TROUPE_TAKES(1)
TROUPE_TAKES(2)
TROUPE_TAKES(3)
TROUPE_TAKES(4)
TROUPE_TAKES(5)
TROUPE_TAKES(6)
TROUPE_TAKES(7)
TROUPE_TAKES(8)
TROUPE_TAKES(9)
TROUPE_TAKES(10)
TROUPE_TAKES(11)
TROUPE_TAKES(12)
TROUPE_TAKES(13)
TROUPE_TAKES(14)
TROUPE_TAKES(15)
TROUPE_TAKES(16)
TROUPE_TAKES(17)
TROUPE_TAKES(18)
TROUPE_TAKES(19)
TROUPE_TAKES(20)
#undef TROUPE_TAKES

/// Becomes the first base class of an aggregate.
template <class T>
struct any_base_of {
  template <class Base>
  requires(std::is_base_of_v<Base, T> && !std::is_same_v<Base, T>) operator Base() const noexcept;
};

template <class T, std::size_t Count = 0>
constexpr std::size_t count_members() {
  if constexpr (takes<T, Count + 1>)
    return count_members<T, Count + 1>();
  else
    return Count;
}

/// 0: not known, for a class that is no aggregate, has a base class, or has a member that must be given a value. At
/// most 60.
template <class T>
constexpr std::size_t find_member_count() {
  if constexpr (std::is_class_v<T> && std::is_aggregate_v<T>) {
    if constexpr (!requires { T{any_base_of<T>{}}; }) return count_members<T>();
  }
  return 0;
}
template <class T>
inline constexpr std::size_t member_count = find_member_count<T>();

} // namespace troupe::detail
