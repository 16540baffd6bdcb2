#pragma once

/// What standard types are made of, for rules that look into them.

#include <array>
#include <deque>
#include <forward_list>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

namespace troupe::detail {

template <class... Ts>
struct type_list {
  /// Whether `Rule<T>::value` holds for one of them, or for all.
  template <template <class> class Rule>
  static constexpr bool any = (Rule<std::remove_cv_t<Ts>>::value || ...);
  template <template <class> class Rule>
  static constexpr bool all = (Rule<std::remove_cv_t<Ts>>::value && ...);
};

/// None, for all other types.
template <class T>
struct parts_of : type_list<> {
  static constexpr bool known = false;
};
template <class... Ts>
struct known_parts : type_list<Ts...> {
  static constexpr bool known = true;
};
template <class A, class B>
struct parts_of<std::pair<A, B>> : known_parts<A, B> {};
template <class... Ts>
struct parts_of<std::tuple<Ts...>> : known_parts<Ts...> {};
template <class... Ts>
struct parts_of<std::variant<Ts...>> : known_parts<Ts...> {};
template <class T>
struct parts_of<std::optional<T>> : known_parts<T> {};
template <class T, std::size_t N>
struct parts_of<std::array<T, N>> : known_parts<T> {};
template <class T, class A>
struct parts_of<std::vector<T, A>> : known_parts<T> {};
template <class T, class A>
struct parts_of<std::deque<T, A>> : known_parts<T> {};
template <class T, class A>
struct parts_of<std::list<T, A>> : known_parts<T> {};
template <class T, class A>
struct parts_of<std::forward_list<T, A>> : known_parts<T> {};
template <class T, class C, class A>
struct parts_of<std::set<T, C, A>> : known_parts<T> {};
template <class T, class H, class E, class A>
struct parts_of<std::unordered_set<T, H, E, A>> : known_parts<T> {};
template <class K, class V, class C, class A>
struct parts_of<std::map<K, V, C, A>> : known_parts<K, V> {};
template <class K, class V, class H, class E, class A>
struct parts_of<std::unordered_map<K, V, H, E, A>> : known_parts<K, V> {};
template <class T, class C, class A>
struct parts_of<std::multiset<T, C, A>> : known_parts<T> {};
template <class T, class H, class E, class A>
struct parts_of<std::unordered_multiset<T, H, E, A>> : known_parts<T> {};
template <class K, class V, class C, class A>
struct parts_of<std::multimap<K, V, C, A>> : known_parts<K, V> {};
template <class K, class V, class H, class E, class A>
struct parts_of<std::unordered_multimap<K, V, H, E, A>> : known_parts<K, V> {};

} // namespace troupe::detail
