#pragma once

/// When a fetch that failed is tried again. No clock, no I/O; one owner.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include <troupe/runtime/time.hpp>

namespace troupe {

/// Each pause is twice as long as the one before, up to two seconds; whoever gets on begins anew.
class retry_schedule {
public:
  /// @param attempts to get on, the first one included; 0 counts as 1
  explicit retry_schedule(std::uint32_t attempts) noexcept : attempts_(std::max(1u, attempts)) {}

  /// An attempt has failed. @param got_on whether it brought something new
  /// @returns how long to wait before the next one; nothing when there is none
  std::optional<duration> failed(bool got_on) noexcept {
    if (got_on) {
      in_vain_ = 0;
      pause_ = first_pause;
    } else if (++in_vain_ >= attempts_) {
      return std::nullopt;
    }
    const auto pause = pause_;
    pause_ = std::min(2 * pause, longest_pause);
    return pause;
  }

private:
  static constexpr duration first_pause = std::chrono::milliseconds{50};
  static constexpr duration longest_pause = std::chrono::seconds{2};

  const std::uint32_t attempts_;
  std::uint32_t in_vain_ = 0;
  duration pause_ = first_pause;
};

} // namespace troupe
