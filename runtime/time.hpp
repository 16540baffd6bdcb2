#pragma once

/// Time as the cores see it: a value that is handed in. Nothing in the deciding half of `runtime/` reads a clock.

#include <chrono>
#include <cstdint>

namespace troupe {

using duration = std::chrono::nanoseconds;

/// A moment on the owner's monotonic clock. Moments of different processes are not comparable. The clock type only
/// names the time line; tests make moments from numbers.
using time_point = std::chrono::time_point<std::chrono::steady_clock, duration>;

/// A wait that has no end.
inline constexpr duration never = duration::max();

} // namespace troupe
