#pragma once

/// The session's history: numbers facts, keeps the last ones, and hands them to subscribers that have credit. A
/// subscriber without credit costs nothing, and is cut off when too many events come meanwhile. Not thread-safe; owned
/// by the driver.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include <troupe/runtime/events/event.hpp>

namespace troupe::events {

class event_stream {
public:
  /// @param max_lag how many events may come while a subscriber has no credit. Twice as many are kept, so that one that
  ///        is cut off has time to come back for all that it has missed.
  explicit event_stream(std::size_t max_lag) : max_lag_(max_lag) {}

  /// Gives the fact its number and place. @returns it, valid until the next call
  const record& append(any content, std::int64_t unix_nanoseconds);

  /// Number of the last event, 0 before the first.
  std::uint64_t last() const noexcept { return next_ - 1; }

  /// Opens a subscriber's window, or replaces the one that it has: `credit` events from number `from` on; 0: from where
  /// it was, which for a new one is from now on. `subscriber` is any number of the caller's.
  void subscribe(std::uint64_t subscriber, std::uint64_t from, std::uint32_t credit);
  void forget(std::uint64_t subscriber) { subscribers_.erase(subscriber); }

  /// What one subscriber is to be sent.
  struct delivery {
    std::uint64_t subscriber = 0;
    std::vector<record> records; ///< none: it is cut off, and forgotten
    std::uint64_t skipped = 0;   ///< events before the first record that are no longer kept
    std::uint64_t last = 0;      ///< number of the last event that it was sent, these included
  };
  /// All that can be sent now, and takes it from the credit.
  std::vector<delivery> deliver();

private:
  struct window {
    std::uint64_t next = 0;
    std::uint32_t credit = 0;
    std::uint64_t dry_since = 0; ///< number of the last event when its credit ran out
  };

  std::size_t max_lag_;
  std::uint64_t next_ = 1;
  std::deque<record> kept_;
  std::map<std::uint64_t, window> subscribers_;
};

} // namespace troupe::events
