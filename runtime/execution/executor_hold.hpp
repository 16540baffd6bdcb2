#pragma once

/// Until when an executor may begin tasks and publications of which it does not know whether they are still its own.
///
/// A driver that does not hear of an executor declares it lost, and has others do its work. By then the executor must
/// begin nothing more. So it may only for its hold time after it has sent a heartbeat which the driver has said to have
/// heard. Words of the driver alone prove nothing: they may have lain on the way.

#include <cstdint>
#include <deque>
#include <utility>

#include <troupe/runtime/time.hpp>

namespace troupe {

/// Owner: the executor actor, or a test. Not thread-safe; no clock of its own.
class executor_hold {
public:
  /// From its admission on.
  /// @param asked when it asked to be admitted: the driver has heard of it then or later
  /// @param driver_timeout as the executor is set; at least two intervals count, so that one that is heard of goes on
  /// @param heartbeat_timeout after which the driver declares it lost; three quarters of it count at most, the rest is
  /// for what passes between the looks of both
  void begin(time_point asked, duration driver_timeout, duration heartbeat_interval, duration heartbeat_timeout);

  /// It sends its heartbeat of this number, which is larger than all before.
  void beat_sent(std::uint64_t number, time_point now);
  /// The driver says to have heard that one. @returns whether this is news
  bool heard(std::uint64_t number);
  /// It may begin nothing more, whatever is heard.
  void end() noexcept;

  time_point until() const noexcept { return until_; }
  duration time() const noexcept { return time_; }

private:
  std::deque<std::pair<std::uint64_t, time_point>> unheard_; ///< heartbeats, the oldest first
  duration time_{};
  time_point until_{};
  bool ended_ = false;
};

} // namespace troupe
