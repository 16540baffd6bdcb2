#pragma once

/// Durations, counted in classes that are at most a sixteenth wide; a fixed few KiB however many there are.
/// Not thread-safe.

#include <array>
#include <cstdint>

#include <troupe/runtime/time.hpp>

namespace troupe {

class duration_histogram {
public:
  /// Negative ones count as 0.
  void add(duration d, std::uint32_t times = 1) noexcept;
  std::uint64_t count() const noexcept { return count_; }
  /// The lower bound of the class in which the median lies; of two the larger one. 0 where there are none.
  duration median() const noexcept;

private:
  static constexpr std::uint32_t per_octave = 16;
  std::array<std::uint32_t, per_octave * 60> classes_{};
  std::uint64_t count_ = 0;
};

} // namespace troupe
