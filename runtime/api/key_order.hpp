#pragma once

/// How encoded keys are put in order without decoding them where that can be avoided: by a number that stands for the
/// begin of the key, and beyond that by `operator<` of the key's type.

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <troupe/runtime/api/serialize.hpp>

namespace troupe::detail {

/// For keys of any type: `prefix(a) < prefix(b)` implies a < b, and where prefixes are equal and not `is_whole`, the
/// sign of `compare` decides.
template <class K>
struct key_order {
  static constexpr bool is_whole = false;
  static std::uint64_t prefix(std::string_view) noexcept { return 0; }
  static int compare(std::string_view a, std::string_view b) {
    const auto x = decode_value<K>(a);
    const auto y = decode_value<K>(b);
    return x < y ? -1 : y < x ? 1 : 0;
  }
};

/// Whole numbers, in the order of their values.
template <class K>
requires(std::is_integral_v<K> || std::is_enum_v<K>) struct key_order<K> {
  static constexpr bool is_whole = true;
  static std::uint64_t prefix(std::string_view encoded) {
    decoder in{encoded};
    return prefix_of(serializer<K>::read(in));
  }
  static std::uint64_t prefix_of(K key) noexcept {
    constexpr auto sign = std::uint64_t{1} << 63;
    if constexpr (std::is_enum_v<K>)
      return key_order<std::underlying_type_t<K>>::prefix_of(static_cast<std::underlying_type_t<K>>(key));
    else if constexpr (std::is_signed_v<K>)
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(key)) ^ sign;
    else
      return static_cast<std::uint64_t>(key);
  }
  static int compare(std::string_view, std::string_view) noexcept { return 0; }
};

/// Floating-point numbers: both zeros are equal, and what is no number comes last.
template <std::floating_point K>
requires(sizeof(K) <= 8) struct key_order<K> {
  static constexpr bool is_whole = true;
  static std::uint64_t prefix(std::string_view encoded) {
    decoder in{encoded};
    const double value = serializer<K>::read(in);
    if (std::isnan(value)) return std::numeric_limits<std::uint64_t>::max();
    constexpr auto sign = std::uint64_t{1} << 63;
    const auto bits = std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
  static int compare(std::string_view, std::string_view) noexcept { return 0; }
};

/// Texts, byte by byte.
template <>
struct key_order<std::string> {
  static constexpr bool is_whole = false;
  static std::string_view text_of(std::string_view encoded) {
    decoder in{encoded};
    return in.bytes(in.count());
  }
  static std::uint64_t prefix(std::string_view encoded) {
    const auto text = text_of(encoded);
    unsigned char first[8]{};
    std::memcpy(first, text.data(), text.size() < 8 ? text.size() : 8);
    std::uint64_t number = 0;
    for (const auto byte : first) number = number << 8 | byte;
    return number;
  }
  static int compare(std::string_view a, std::string_view b) { return text_of(a).compare(text_of(b)); }
};

/// Pairs begin with their first half.
template <class A, class B>
struct key_order<std::pair<A, B>> {
  static constexpr bool is_whole = false;
  static std::uint64_t prefix(std::string_view encoded) { return key_order<A>::prefix(encoded); }
  static int compare(std::string_view a, std::string_view b) {
    const auto x = decode_value<std::pair<A, B>>(a);
    const auto y = decode_value<std::pair<A, B>>(b);
    return x < y ? -1 : y < x ? 1 : 0;
  }
};

/// The same, or the other way round.
template <class K, bool Down>
struct directed_order {
  static constexpr bool is_whole = key_order<K>::is_whole;
  static std::uint64_t prefix(std::string_view encoded) {
    const auto up = key_order<K>::prefix(encoded);
    return Down ? ~up : up;
  }
  static int compare(std::string_view a, std::string_view b) {
    return Down ? key_order<K>::compare(b, a) : key_order<K>::compare(a, b);
  }
};

} // namespace troupe::detail
