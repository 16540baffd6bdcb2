#pragma once

/// How encoded keys are put in order without decoding them where that can be avoided: by a number that stands for the
/// begin of the key, and beyond that by `operator<` of the key's type.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <troupe/runtime/api/serialize.hpp>

namespace troupe::detail {

/// For keys of any type: `prefix(a) < prefix(b)` implies a < b, and where prefixes are equal and not `is_whole`, the
/// sign of `compare` decides. `step` takes one value from each side, whole where they are equal.
template <class K>
struct key_order {
  static constexpr bool is_whole = false;
  static std::uint64_t prefix(std::string_view) noexcept { return 0; }
  static int step(decoder& a, decoder& b) {
    const auto x = serializer<K>::read(a);
    const auto y = serializer<K>::read(b);
    return x < y ? -1 : y < x ? 1 : 0;
  }
  static int compare(std::string_view a, std::string_view b) {
    decoder x{a};
    decoder y{b};
    return step(x, y);
  }
};

/// What is ordered by a number that stands for all of it.
template <class K, class Order>
struct numbered_order {
  static constexpr bool is_whole = true;
  static std::uint64_t prefix(std::string_view encoded) {
    decoder in{encoded};
    return Order::prefix_of(serializer<K>::read(in));
  }
  static int step(decoder& a, decoder& b) {
    const auto x = Order::prefix_of(serializer<K>::read(a));
    const auto y = Order::prefix_of(serializer<K>::read(b));
    return x < y ? -1 : y < x ? 1 : 0;
  }
  static int compare(std::string_view, std::string_view) noexcept { return 0; }
};

/// Whole numbers and enums, in the order of their values.
template <class K>
requires(std::is_integral_v<K> || std::is_enum_v<K>) struct key_order<K> : numbered_order<K, key_order<K>> {
  static std::uint64_t prefix_of(K key) noexcept {
    constexpr auto sign = std::uint64_t{1} << 63;
    if constexpr (std::is_enum_v<K>)
      return key_order<std::underlying_type_t<K>>::prefix_of(static_cast<std::underlying_type_t<K>>(key));
    else if constexpr (std::is_signed_v<K>)
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(key)) ^ sign;
    else
      return static_cast<std::uint64_t>(key);
  }
};

/// Floating-point numbers: both zeros are equal, and what is no number comes last (in a descending sort first).
template <std::floating_point K>
requires(sizeof(K) <= 8) struct key_order<K> : numbered_order<K, key_order<K>> {
  static std::uint64_t prefix_of(double value) noexcept {
    if (std::isnan(value)) return std::numeric_limits<std::uint64_t>::max();
    constexpr auto sign = std::uint64_t{1} << 63;
    const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
};

/// Texts, byte by byte.
template <>
struct key_order<std::string> {
  static constexpr bool is_whole = false;
  static std::string_view text_of(decoder& in) { return in.bytes(in.count()); }
  static std::uint64_t prefix(std::string_view encoded) {
    decoder in{encoded};
    const auto text = text_of(in);
    unsigned char first[8]{};
    std::memcpy(first, text.data(), text.size() < 8 ? text.size() : 8);
    std::uint64_t number = 0;
    for (const auto byte : first) number = number << 8 | byte;
    return number;
  }
  /// Seven bytes, and how many of those and of the eight before are there: what ends comes before what goes on, though
  /// with zeros.
  static std::uint64_t piece(std::string_view encoded, unsigned level, bool& ended) {
    decoder in{encoded};
    const auto text = text_of(in);
    const std::size_t begin = 8 + 7 * std::size_t{level - 1};
    const auto there = std::min<std::size_t>(text.size() + 8 - begin, 16);
    ended = there < 16;
    std::uint64_t number = 0;
    if (text.size() >= begin + 8) {
      for (std::size_t i = 0; i < 7; ++i) number = number << 8 | static_cast<unsigned char>(text[begin + i]);
    } else {
      for (std::size_t i = 0; i < 7; ++i)
        number = number << 8 | (begin + i < text.size() ? static_cast<unsigned char>(text[begin + i]) : 0u);
    }
    return number << 8 | there;
  }
  static int step(decoder& a, decoder& b) { return text_of(a).compare(text_of(b)); }
  static int compare(std::string_view a, std::string_view b) {
    decoder x{a};
    decoder y{b};
    return step(x, y);
  }
};

/// What consists of others is compared element by element, so that each is ordered as it would be alone.
template <class Order>
struct stepwise_order {
  static constexpr bool is_whole = false;
  static std::uint64_t prefix(std::string_view) noexcept { return 0; }
  static int compare(std::string_view a, std::string_view b) {
    decoder x{a};
    decoder y{b};
    return Order::step(x, y);
  }
};

template <class A, class B>
struct key_order<std::pair<A, B>> : stepwise_order<key_order<std::pair<A, B>>> {
  /// Pairs begin with their first half.
  static std::uint64_t prefix(std::string_view encoded) { return key_order<A>::prefix(encoded); }
  static int step(decoder& a, decoder& b) {
    const int first = key_order<A>::step(a, b);
    return first != 0 ? first : key_order<B>::step(a, b);
  }
};

template <class... Ts>
requires(sizeof...(Ts) > 0) struct key_order<std::tuple<Ts...>> : stepwise_order<key_order<std::tuple<Ts...>>> {
  static int step(decoder& a, decoder& b) {
    int order = 0;
    static_cast<void>((((order = key_order<Ts>::step(a, b)) != 0) || ...));
    return order;
  }
};

template <class T, std::size_t N>
struct key_order<std::array<T, N>> : stepwise_order<key_order<std::array<T, N>>> {
  static int step(decoder& a, decoder& b) {
    for (std::size_t i = 0; i < N; ++i)
      if (const int order = key_order<T>::step(a, b); order != 0) return order;
    return 0;
  }
};

/// A vector that the other one begins with comes first.
template <class T, class A>
struct key_order<std::vector<T, A>> : stepwise_order<key_order<std::vector<T, A>>> {
  static int step(decoder& a, decoder& b) {
    const auto x = a.count();
    const auto y = b.count();
    for (std::size_t i = 0; i < std::min(x, y); ++i)
      if (const int order = key_order<T>::step(a, b); order != 0) return order;
    return x < y ? -1 : y < x ? 1 : 0;
  }
};

/// Nothing comes first.
template <class T>
struct key_order<std::optional<T>> : stepwise_order<key_order<std::optional<T>>> {
  static int step(decoder& a, decoder& b) {
    const bool x = serializer<bool>::read(a);
    const bool y = serializer<bool>::read(b);
    if (x && y) return key_order<T>::step(a, b);
    return x < y ? -1 : y < x ? 1 : 0;
  }
};

template <class K>
concept has_less = requires(const K& a, const K& b) {
  { a < b } -> std::convertible_to<bool>;
};
/// Whether keys of type `K` can be ordered. Enums always can, and a standard container has an `operator<` only where
/// what it holds has one.
template <class K>
struct is_ordered : std::bool_constant<std::is_enum_v<K> || has_less<K>> {};

/// The same, or the other way round.
template <class K, bool Down>
struct directed_order {
  static constexpr bool is_whole = key_order<K>::is_whole;
  static constexpr bool has_pieces = requires(std::string_view key, bool ended) { key_order<K>::piece(key, 1, ended); };
  static std::uint64_t piece(std::string_view encoded, unsigned level, bool& ended) requires has_pieces {
    const auto up = key_order<K>::piece(encoded, level, ended);
    return Down ? ~up : up;
  }
  static std::uint64_t prefix(std::string_view encoded) {
    const auto up = key_order<K>::prefix(encoded);
    return Down ? ~up : up;
  }
  static int compare(std::string_view a, std::string_view b) {
    return Down ? key_order<K>::compare(b, a) : key_order<K>::compare(a, b);
  }
};

} // namespace troupe::detail
