#pragma once

/// About how much memory decoded values take, so that what collects them stays within a task's share.

#include <cstdint>
#include <string>
#include <type_traits>

#include <troupe/runtime/api/serialize.hpp>

namespace troupe::detail {

/// What an allocation takes beside what was asked for.
inline constexpr std::uint64_t allocation_overhead = 16;
/// What a node of a tree or a hash table takes beside its element.
inline constexpr std::uint64_t node_overhead = 48;

template <class T>
std::uint64_t memory_outside(const T& value);

/// Sees the members that a type's `troupe_serialize` names.
struct memory_archive {
  std::uint64_t bytes = 0;
  template <class... Ts>
  memory_archive& operator()(const Ts&... members) {
    ((bytes += memory_outside(members)), ...);
    return *this;
  }
};

template <class T>
concept is_text = requires(const T& t) {
  { t.capacity() } -> std::convertible_to<std::size_t>;
  { t.c_str() } -> std::convertible_to<const char*>;
};
template <class T>
concept is_list = requires(const T& t) {
  t.capacity();
  t.begin();
  t.end();
};
template <class T>
concept is_tree_or_table = requires(const T& t) {
  typename T::key_type;
  t.begin();
  t.end();
};
template <class T>
concept is_sequence = requires(const T& t) {
  typename T::value_type;
  t.begin();
  t.end();
};
template <class T>
concept shows_its_members = has_serialize_hook<T> && requires(memory_archive& archive, T& value) {
  troupe_serialize(archive, value);
};

/// Bytes that the value takes beside its own size.
template <class T>
std::uint64_t memory_outside(const T& value) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    return 0;
  } else if constexpr (is_text<T>) {
    return value.capacity() < sizeof(T) / 2 ? 0 : value.capacity() + allocation_overhead;
  } else if constexpr (is_list<T>) {
    using element = typename T::value_type;
    std::uint64_t bytes = value.capacity() == 0 ? 0 : value.capacity() * sizeof(element) + allocation_overhead;
    if constexpr (!std::is_trivially_copyable_v<element> && !std::is_same_v<element, bool>)
      for (const auto& each : value) bytes += memory_outside(each);
    return bytes;
  } else if constexpr (is_tree_or_table<T>) {
    using element = typename T::value_type;
    std::uint64_t bytes = value.size() * (sizeof(element) + node_overhead);
    if constexpr (!std::is_trivially_copyable_v<element>)
      for (const auto& each : value) bytes += memory_outside(each);
    return bytes;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    return std::apply([](const auto&... parts) { return (std::uint64_t{0} + ... + memory_outside(parts)); }, value);
  } else if constexpr (is_sequence<T>) {
    using element = typename T::value_type;
    std::uint64_t bytes = 0;
    for (const auto& each : value) bytes += sizeof(element) + allocation_overhead + memory_outside(each);
    return bytes;
  } else if constexpr (requires { value.has_value(), *value; }) {
    return value ? memory_outside(*value) : 0;
  } else if constexpr (requires { value.valueless_by_exception(); }) {
    return value.valueless_by_exception()
               ? 0
               : std::visit([](const auto& content) { return memory_outside(content); }, value);
  } else if constexpr (shows_its_members<T>) {
    memory_archive archive;
    troupe_serialize(archive, const_cast<T&>(value)); // which only looks
    return archive.bytes;
  } else {
    std::string encoded; // what else it is made of nobody knows
    encoder{encoded}(value);
    return 2 * encoded.size() + allocation_overhead;
  }
}

} // namespace troupe::detail
