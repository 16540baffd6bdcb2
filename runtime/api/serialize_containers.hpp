#pragma once

/// How the standard containers travel; included by serialize.hpp. Elements follow their count; unordered containers
/// are written in the order of their encoded keys, so that equal values have equal bytes.

#include <algorithm>
#include <array>
#include <deque>
#include <forward_list>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <troupe/runtime/api/serialize.hpp>

namespace troupe {

/// The bytes of one value.
template <class T>
std::string encode_value(const T& value) {
  std::string out;
  encoder{out}(value);
  return out;
}

/// The value that takes up all of `bytes`. Throws decode_error.
template <class T>
T decode_value(std::string_view bytes) {
  decoder in{bytes};
  T value = serializer<T>::read(in);
  in.expect_end();
  return value;
}

template <class A>
struct serializer<std::basic_string<char, std::char_traits<char>, A>> {
  using string = std::basic_string<char, std::char_traits<char>, A>;
  static void write(encoder& out, const string& value) {
    out.size(value.size());
    out.bytes(value);
  }
  static string read(decoder& in) { return string{in.bytes(in.count())}; }
};

namespace detail {

/// Numbers whose bytes in memory are their bytes on the wire, so that many are copied at once.
template <class T>
inline constexpr bool is_bulk_number =
    is_number<T> && !std::is_same_v<T, bool> && (sizeof(T) == 1 || std::endian::native == std::endian::little);

/// Sequences whose elements do not lie side by side.
template <class Sequence>
struct sequence_serializer {
  using element = typename Sequence::value_type;
  static void write(encoder& out, const Sequence& value) {
    out.size(static_cast<std::uint64_t>(std::distance(value.begin(), value.end())));
    for (const auto& each : value) serializer<element>::write(out, each);
  }
  static Sequence read(decoder& in) {
    Sequence value;
    if constexpr (requires { value.push_back(serializer<element>::read(in)); }) {
      for (auto left = in.count(); left > 0; --left) value.push_back(serializer<element>::read(in));
    } else {
      auto last = value.before_begin();
      for (auto left = in.count(); left > 0; --left) last = value.insert_after(last, serializer<element>::read(in));
    }
    return value;
  }
};

/// Sets and maps, ordered or not.
template <class Container, class Element, bool Ordered>
struct associative_serializer {
  static void write(encoder& out, const Container& value) {
    out.size(value.size());
    if constexpr (Ordered) {
      for (const auto& element : value) serializer<Element>::write(out, element);
    } else {
      std::vector<std::string> encoded;
      encoded.reserve(value.size());
      for (const auto& element : value) encoded.push_back(encode_value<Element>(element));
      std::sort(encoded.begin(), encoded.end());
      for (const auto& element : encoded) out.bytes(element);
    }
  }
  static Container read(decoder& in) {
    Container value;
    for (auto left = in.count(); left > 0; --left) {
      if constexpr (requires { value.insert(serializer<Element>::read(in)).second; }) {
        if (!value.insert(serializer<Element>::read(in)).second)
          throw decode_error("a key of a set or map comes twice");
      } else {
        value.insert(value.end(), serializer<Element>::read(in)); // equal ones keep their order
      }
    }
    return value;
  }
};

} // namespace detail

template <class T, class A>
struct serializer<std::vector<T, A>> {
  static void write(encoder& out, const std::vector<T, A>& value) {
    out.size(value.size());
    if constexpr (detail::is_bulk_number<T>)
      out.bytes({reinterpret_cast<const char*>(value.data()), value.size() * sizeof(T)});
    else
      for (const auto& element : value) serializer<T>::write(out, element);
  }
  static std::vector<T, A> read(decoder& in) {
    const auto count = in.count();
    std::vector<T, A> value;
    if constexpr (detail::is_bulk_number<T>) {
      if (count > in.left() / sizeof(T)) throw decode_error("cut short: a vector of numbers");
      value.resize(count);
      if (count > 0) std::memcpy(value.data(), in.bytes(count * sizeof(T)).data(), count * sizeof(T));
    } else {
      // Small elements may be large in memory: trust the count only so far.
      value.reserve(std::min<std::size_t>(count, 1024));
      for (std::size_t i = 0; i < count; ++i) value.push_back(serializer<T>::read(in));
    }
    return value;
  }
};

template <class T, class A>
struct serializer<std::deque<T, A>> : detail::sequence_serializer<std::deque<T, A>> {};
template <class T, class A>
struct serializer<std::list<T, A>> : detail::sequence_serializer<std::list<T, A>> {};
template <class T, class A>
struct serializer<std::forward_list<T, A>> : detail::sequence_serializer<std::forward_list<T, A>> {};

template <class T, std::size_t N>
struct serializer<std::array<T, N>> {
  static_assert(N > 0, "troupe: an empty std::array has no bytes and cannot travel");
  static void write(encoder& out, const std::array<T, N>& value) {
    for (const auto& element : value) serializer<T>::write(out, element);
  }
  static std::array<T, N> read(decoder& in) {
    std::array<T, N> value{};
    for (auto& element : value) element = serializer<T>::read(in);
    return value;
  }
};

template <class A, class B>
struct serializer<std::pair<A, B>> {
  using first_type = std::remove_const_t<A>;
  static void write(encoder& out, const std::pair<A, B>& value) {
    serializer<first_type>::write(out, value.first);
    serializer<B>::write(out, value.second);
  }
  static std::pair<A, B> read(decoder& in) {
    // Two statements: the order of evaluation within a call is not fixed.
    first_type first = serializer<first_type>::read(in);
    return {std::move(first), serializer<B>::read(in)};
  }
};

template <class... Ts>
struct serializer<std::tuple<Ts...>> {
  static void write(encoder& out, const std::tuple<Ts...>& value) {
    if constexpr (sizeof...(Ts) == 0) out.number(std::uint8_t{0});
    std::apply([&](const Ts&... elements) { (serializer<Ts>::write(out, elements), ...); }, value);
  }
  static std::tuple<Ts...> read(decoder& in) {
    if constexpr (sizeof...(Ts) == 0) {
      if (in.number<std::uint8_t>() != 0) throw decode_error("an empty tuple has content");
      return {};
    } else {
      return std::tuple<Ts...>{serializer<Ts>::read(in)...}; // braces: left to right
    }
  }
};

template <class T>
struct serializer<std::optional<T>> {
  static void write(encoder& out, const std::optional<T>& value) {
    serializer<bool>::write(out, value.has_value());
    if (value) serializer<T>::write(out, *value);
  }
  static std::optional<T> read(decoder& in) {
    if (!serializer<bool>::read(in)) return std::nullopt;
    return serializer<T>::read(in);
  }
};

template <>
struct serializer<std::monostate> {
  static void write(encoder& out, std::monostate) { out.number(std::uint8_t{0}); }
  static std::monostate read(decoder& in) {
    if (in.number<std::uint8_t>() != 0) throw decode_error("an empty alternative has content");
    return {};
  }
};

template <class... Ts>
struct serializer<std::variant<Ts...>> {
  static void write(encoder& out, const std::variant<Ts...>& value) {
    if (value.valueless_by_exception()) throw std::logic_error("a std::variant without a value cannot travel");
    out.size(value.index());
    std::visit([&]<class T>(const T& content) { serializer<T>::write(out, content); }, value);
  }
  static std::variant<Ts...> read(decoder& in) {
    const auto index = in.size();
    if (index >= sizeof...(Ts))
      throw decode_error("alternative " + std::to_string(index) + " of a variant of " + std::to_string(sizeof...(Ts)));
    return read_alternative<0>(in, index);
  }

private:
  template <std::size_t I>
  static std::variant<Ts...> read_alternative(decoder& in, std::uint64_t index) {
    if constexpr (I + 1 < sizeof...(Ts))
      if (index != I) return read_alternative<I + 1>(in, index);
    using type = std::variant_alternative_t<I, std::variant<Ts...>>;
    return std::variant<Ts...>{std::in_place_index<I>, serializer<type>::read(in)};
  }
};

template <class K, class C, class A>
struct serializer<std::set<K, C, A>> : detail::associative_serializer<std::set<K, C, A>, K, true> {};
template <class K, class H, class E, class A>
struct serializer<std::unordered_set<K, H, E, A>>
  : detail::associative_serializer<std::unordered_set<K, H, E, A>, K, false> {};
template <class K, class V, class C, class A>
struct serializer<std::map<K, V, C, A>>
  : detail::associative_serializer<std::map<K, V, C, A>, std::pair<const K, V>, true> {};
template <class K, class V, class H, class E, class A>
struct serializer<std::unordered_map<K, V, H, E, A>>
  : detail::associative_serializer<std::unordered_map<K, V, H, E, A>, std::pair<const K, V>, false> {};
template <class K, class C, class A>
struct serializer<std::multiset<K, C, A>> : detail::associative_serializer<std::multiset<K, C, A>, K, true> {};
template <class K, class H, class E, class A>
struct serializer<std::unordered_multiset<K, H, E, A>>
  : detail::associative_serializer<std::unordered_multiset<K, H, E, A>, K, false> {};
template <class K, class V, class C, class A>
struct serializer<std::multimap<K, V, C, A>>
  : detail::associative_serializer<std::multimap<K, V, C, A>, std::pair<const K, V>, true> {};
template <class K, class V, class H, class E, class A>
struct serializer<std::unordered_multimap<K, V, H, E, A>>
  : detail::associative_serializer<std::unordered_multimap<K, V, H, E, A>, std::pair<const K, V>, false> {};

} // namespace troupe
