#pragma once

/// How large the buckets of a map output are, in at most one byte each: the driver keeps it of every map task. Readers
/// are told which are empty, so that nobody asks for those. Pure values.
///
/// Up to 2,000 buckets: u8 0, then for each bucket a level: 0 for an empty one, else the number of the smallest step
/// that is not below its size; steps are about a tenth apart. Beyond (as Spark does there): u8 1, u64 average size of
/// the buckets that are neither empty nor named, u32 number of named ones, for each of these u32 bucket and u8 level,
/// ascending; then a bit per bucket, set where it is empty. All little-endian.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// Buckets up to which each has a level of its own.
inline constexpr std::uint32_t most_levels = 2000;

/// @returns "" where there are no buckets
std::string encode_bucket_sizes(std::span<const std::uint64_t> sizes);

/// What was encoded.
class bucket_sizes {
public:
  /// @param encoded outlives the object; "" where nothing is known
  /// @returns malformed where it is not of so many buckets
  static result<bucket_sizes> parse(std::string_view encoded, std::uint32_t buckets);

  /// False only where it is known to hold nothing. @pre bucket < buckets
  bool may_hold(std::uint32_t bucket) const noexcept;
  /// About how large it is: exact for an empty one, at most a tenth too large for one with a level, an average for the
  /// others; 0 where nothing is known. @pre bucket < buckets
  std::uint64_t of(std::uint32_t bucket) const noexcept;

private:
  explicit bucket_sizes(std::string_view encoded) : encoded_(encoded) {}
  std::string_view named() const noexcept;
  bool is_empty(std::uint32_t bucket) const noexcept;

  std::string_view encoded_;
};

/// What readers need of it: a bit for each bucket, set where it is known to be empty; "" where none is.
std::string empty_buckets(std::string_view encoded, std::uint32_t buckets);
/// Of such bits, whose sender may be wrong about their number.
bool is_empty_bucket(std::string_view bits, std::uint32_t bucket) noexcept;

} // namespace troupe
