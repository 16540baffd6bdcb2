#pragma once

/// The dataset that an operation gives which is refused at compile time. It takes every operation, so that the message
/// about the mistake is the only one. No program runs with it: the one that has it does not compile.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

template <class T>
class dataset;

namespace detail {

/// A record of an unknown type: it converts to all of them, can be printed, and comes apart like a pair.
struct refused {
  static const refused first;
  static const refused second;
  template <class T>
  operator T() const; // NOLINT: implicit on purpose
  template <class Stream>
  friend Stream& operator<<(Stream& out, const refused&) {
    return out;
  }
  template <std::size_t>
  const refused& get() const {
    return *this;
  }
};

/// Records of an unknown type: a vector of whatever is asked for.
struct refused_records : std::vector<refused> {
  template <class T>
  operator std::vector<T>() const; // NOLINT: implicit on purpose
};

template <class R>
using results_of = std::conditional_t<std::is_same_v<R, refused>, refused_records, std::vector<R>>;

} // namespace detail

template <>
class dataset<detail::refused> {
public:
  using record_type = detail::refused;

  template <class T>
  operator dataset<T>() const; // NOLINT: implicit on purpose
  template <class... From>
  dataset called(const char*, const From&...) const {
    return {};
  }

  template <class... A>
  dataset map(const A&...) const {
    return {};
  }
  template <class... A>
  dataset filter(const A&...) const {
    return {};
  }
  template <class... A>
  dataset flat_map(const A&...) const {
    return {};
  }
  template <class... A>
  dataset map_partitions(const A&...) const {
    return {};
  }
  template <class... A>
  dataset reduce_by_key(const A&...) const {
    return {};
  }
  template <class... A>
  dataset group_by_key(const A&...) const {
    return {};
  }
  template <class... A>
  dataset join(const A&...) const {
    return {};
  }
  template <class... A>
  dataset sort_by_key(const A&...) const {
    return {};
  }
  template <class... A>
  dataset sorted(const A&...) const {
    return {};
  }
  dataset with_resources(const resource_profile&) const { return {}; }
  template <class... A>
  dataset persist(const A&...) const {
    return {};
  }
  template <class... A>
  dataset named(const A&...) const {
    return {};
  }
  template <class... A>
  dataset map_values(const A&...) const {
    return {};
  }
  template <class... A>
  dataset key_by(const A&...) const {
    return {};
  }
  template <class... A>
  dataset keys(const A&...) const {
    return {};
  }
  template <class... A>
  dataset values(const A&...) const {
    return {};
  }
  template <class... A>
  dataset distinct(const A&...) const {
    return {};
  }
  template <class... A>
  dataset sort_by(const A&...) const {
    return {};
  }
  template <class... A>
  dataset aggregate_by_key(const A&...) const {
    return {};
  }
  template <class... A>
  dataset left_join(const A&...) const {
    return {};
  }
  template <class... A>
  dataset full_join(const A&...) const {
    return {};
  }
  template <class... A>
  dataset cogroup(const A&...) const {
    return {};
  }
  template <class... A>
  dataset union_with(const A&...) const {
    return {};
  }
  template <class... A>
  dataset repartition(const A&...) const {
    return {};
  }
  template <class... A>
  dataset coalesce(const A&...) const {
    return {};
  }
  template <class... A>
  dataset zip_with_index(const A&...) const {
    return {};
  }
  template <class... A>
  dataset sample(const A&...) const {
    return {};
  }
  dataset barrier() const { return {}; }
  dataset indeterminate() const { return {}; }
  dataset cache() const { return {}; }
  void unpersist() const {}
  std::uint32_t partitions() const { return {}; }
  std::string name() const { return {}; }

  detail::refused_records collect() const { return {}; }
  template <class... A>
  detail::refused_records take(const A&...) const {
    return {};
  }
  template <class... A>
  detail::refused_records top(const A&...) const {
    return {};
  }
  template <class... A>
  std::optional<detail::refused> reduce(const A&...) const {
    return {};
  }
  template <class... A>
  void foreach (const A&...) const {}
  template <class... A>
  void save_as_text(const A&...) const {}
  std::optional<detail::refused> first() const { return {}; }
  std::optional<detail::refused> min() const { return {}; }
  std::optional<detail::refused> max() const { return {}; }
  detail::refused sum() const { return {}; }
  detail::refused_records count_by_key() const { return {}; }
  std::uint64_t count() const { return {}; }
};

} // namespace troupe

template <>
struct std::tuple_size<troupe::detail::refused> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, troupe::detail::refused> {
  using type = troupe::detail::refused;
};
