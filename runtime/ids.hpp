#pragma once

/// Strong identifiers. Each id is issued by the owner of the state that it names (the comment says who) and is unique
/// within one session; 0 means "none" unless stated otherwise. Plain values: copy freely, any thread.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace troupe {

/// A 64-bit number that cannot be mixed up with a number of another kind.
template <class Tag>
struct strong_id {
  std::uint64_t value = 0;

  constexpr auto operator<=>(const strong_id&) const = default;
  /// False for the id that names nothing.
  constexpr explicit operator bool() const noexcept { return value != 0; }
};

using job_id = strong_id<struct job_tag>;           ///< issued by the dag scheduler, from 1
using stage_id = strong_id<struct stage_tag>;       ///< issued by the dag scheduler, from 1, across jobs
using executor_id = strong_id<struct executor_tag>; ///< issued by the driver at the hello, from 1, never reused
using lease_id = strong_id<struct lease_tag>;       ///< issued by the dag scheduler, from 1, never reused
using shape_id = strong_id<struct shape_tag>;       ///< issued by the profile registry, from 1
using request_id = strong_id<struct request_tag>;   ///< names one requested executor; issued by the allocator, from 1

using cache_id = strong_id<struct cache_tag>; ///< of kept partitions; issued by the dag scheduler, from 1

/// Issued by the profile registry. Here 0 is a name: the default profile.
using profile_id = strong_id<struct profile_tag>;
inline constexpr profile_id default_profile_id{0};

/// Index of one task within its stage, from 0.
using partition_index = std::uint32_t;
/// Number of an attempt of one partition (or of one stage), from 0; a larger one supersedes a smaller one.
using attempt_number = std::uint32_t;
/// A number that an executor draws at random when it starts; it tells a restarted executor from its predecessor.
using incarnation = std::uint64_t;

/// A value that a program has made available to its tasks.
struct broadcast_id {
  incarnation program = 0;  ///< drawn by each program for itself
  std::uint64_t number = 0; ///< given by it, from 1; 0: all of the program's

  constexpr auto operator<=>(const broadcast_id&) const = default;
};

} // namespace troupe

template <class Tag>
struct std::hash<troupe::strong_id<Tag>> {
  std::size_t operator()(troupe::strong_id<Tag> id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
