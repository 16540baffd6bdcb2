#include <troupe/runtime/scheduling/duration_histogram.hpp>

#include <algorithm>
#include <bit>

namespace troupe {
namespace {

constexpr std::uint32_t bits = 4; // of a sixteenth

/// Numbers below 16 have a class each; every further octave has sixteen.
constexpr std::uint32_t class_of(std::uint64_t nanoseconds) noexcept {
  if (nanoseconds < (1u << bits)) return static_cast<std::uint32_t>(nanoseconds);
  const auto octave = static_cast<std::uint32_t>(std::bit_width(nanoseconds)) - bits - 1;
  return (octave << bits) + static_cast<std::uint32_t>(nanoseconds >> octave);
}

constexpr std::int64_t lower_bound_of(std::uint32_t index) noexcept {
  if (index < (1u << bits)) return index;
  const auto octave = (index >> bits) - 1;
  return static_cast<std::int64_t>((index & ((1u << bits) - 1)) + (1u << bits)) << octave;
}

static_assert(class_of(15) == 15 && class_of(16) == 16 && class_of(31) == 31 && class_of(32) == 32);
static_assert(lower_bound_of(class_of(1'000'000)) <= 1'000'000 && lower_bound_of(class_of(1'000'000) + 1) > 1'000'000);

} // namespace

void duration_histogram::add(duration d, std::uint32_t times) noexcept {
  const auto index = class_of(static_cast<std::uint64_t>(std::max<std::int64_t>(0, d.count())));
  classes_[std::min<std::size_t>(index, classes_.size() - 1)] += times;
  count_ += times;
}

duration duration_histogram::median() const noexcept {
  std::uint64_t seen = 0;
  for (std::uint32_t i = 0; i < classes_.size(); ++i) {
    seen += classes_[i];
    if (seen > count_ / 2) return duration{lower_bound_of(i)};
  }
  return duration::zero();
}

} // namespace troupe
