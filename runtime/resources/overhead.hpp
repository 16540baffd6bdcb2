#pragma once

/// The memory overhead of executors for which neither their profile nor the configuration gives one. Pure; any thread.
/// Spec: DF-11, DF-12.

#include <cstdint>

#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>

namespace troupe {

/// `troupe.executor.memory-overhead-factor` and `troupe.executor.min-memory-overhead`. An explicit overhead beats both:
/// where the configuration gives one, the rule is the empty one.
struct overhead_rule {
  share factor;             ///< of the heap, which is an executor's `memory`
  std::int64_t minimum = 0; ///< bytes
  profile_matching matching = profile_matching::compatible;

  bool operator==(const overhead_rule&) const = default;
  /// False: nothing is added.
  bool is_active() const noexcept { return !factor.is_zero() || minimum > 0; }
};

/// Bytes of overhead: the factor's part of the heap, rounded down to a whole MiB, but at least the minimum. Under
/// `compatible` the heap is the profile's own, under `exact` the default profile's. What is more than a number can say
/// is 2^63 - 1, which no profile passes. @pre factor, minimum and heaps are not negative
std::int64_t overhead_of(const overhead_rule& rule, std::int64_t own_heap, std::int64_t default_heap) noexcept;

} // namespace troupe
