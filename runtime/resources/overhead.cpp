#include <troupe/runtime/resources/overhead.hpp>

#include <algorithm>

namespace troupe {

std::int64_t overhead_of(const overhead_rule& rule, std::int64_t own_heap, std::int64_t default_heap) noexcept {
  constexpr std::int64_t mib = 1 << 20;
  const auto heap = rule.matching == profile_matching::exact ? default_heap : own_heap;
  int128 product = 0;
  if (__builtin_mul_overflow(rule.factor.units, int128{heap}, &product)) return share::max_whole;
  const int128 part = product / share::units_per_whole / mib * mib;
  return std::max(rule.minimum, part < share::max_whole ? static_cast<std::int64_t>(part) : share::max_whole);
}

} // namespace troupe
