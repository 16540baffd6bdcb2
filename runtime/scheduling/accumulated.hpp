#pragma once

/// What tasks count in accumulators, on its way from one attempt to the total of its job.

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe {

/// Different accumulators that the tasks of one job may count in.
inline constexpr std::size_t max_accumulators = 100;
/// Bytes of the name of one; it has at least one.
inline constexpr std::size_t max_accumulator_name = 200;

/// Part of the outcomes of a batch: what one of its attempts, which succeeded, has added to one accumulator.
struct counted_amount {
  std::uint32_t index = 0;       ///< position of its task in the batch
  std::uint32_t accumulator = 0; ///< position of the name among those of the batch
  std::int64_t amount = 0;       ///< all calls of the attempt together

  bool operator==(const counted_amount&) const = default;
};

/// An accumulator and what was added to it.
struct accumulated {
  std::string accumulator;
  std::int64_t amount = 0;

  bool operator==(const accumulated&) const = default;
};

/// The sum of 64 bits; beyond the largest number it goes on from the smallest.
constexpr std::int64_t add_wrapping(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
/// The difference of 64 bits; below the smallest number it goes on from the largest.
constexpr std::int64_t subtract_wrapping(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

} // namespace troupe
