#include <troupe/runtime/execution/executor_hold.hpp>

#include <algorithm>
#include <cstddef>

namespace troupe {

namespace {

constexpr std::size_t most_unheard = 1000; // of a driver that hears nothing

} // namespace

void executor_hold::begin(time_point asked, duration driver_timeout, duration heartbeat_interval,
                          duration heartbeat_timeout) {
  time_ = std::min(std::max(driver_timeout, 2 * heartbeat_interval), heartbeat_timeout / 4 * 3);
  if (!ended_) until_ = asked + time_;
}

void executor_hold::beat_sent(std::uint64_t number, time_point now) {
  unheard_.emplace_back(number, now);
  if (unheard_.size() > most_unheard) unheard_.pop_front();
}

bool executor_hold::heard(std::uint64_t number) {
  while (!unheard_.empty() && unheard_.front().first < number) unheard_.pop_front();
  if (ended_ || unheard_.empty() || unheard_.front().first != number) return false;
  until_ = unheard_.front().second + time_;
  unheard_.pop_front();
  return true;
}

void executor_hold::end() noexcept {
  ended_ = true;
  until_ = {};
}

} // namespace troupe
