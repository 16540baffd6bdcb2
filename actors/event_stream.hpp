#pragma once

/// The session's history: numbers facts, keeps the last ones, and hands them to subscribers that have credit. A
/// subscriber without credit costs nothing. Not thread-safe; owned by the driver.

#include <cstdint>
#include <deque>
#include <vector>

#include <troupe/runtime/events/event.hpp>

namespace troupe {

class event_stream {
public:
  explicit event_stream(std::size_t retained) : retained_(retained) {}

  /// Gives the fact its number and place.
  void append(events::any content, std::int64_t unix_nanoseconds);

  /// Number of the last event, 0 before the first.
  std::uint64_t last() const noexcept { return next_ - 1; }

  /// At most `most` events from number `from` on; those that are no longer kept are skipped.
  std::vector<events::record> read(std::uint64_t from, std::size_t most) const;

private:
  std::size_t retained_;
  std::uint64_t next_ = 1;
  std::deque<events::record> kept_;
};

} // namespace troupe
