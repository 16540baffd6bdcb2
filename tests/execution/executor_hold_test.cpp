// Until when an executor may begin anything, under virtual time.

#include <gtest/gtest.h>

#include <troupe/runtime/execution/executor_hold.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr time_point start{std::chrono::hours{1}};

executor_hold begun(duration driver_timeout = 6s, duration interval = 1s, duration heartbeat_timeout = 10s) {
  executor_hold hold;
  hold.begin(start, driver_timeout, interval, heartbeat_timeout);
  return hold;
}

TEST(executor_hold, begins_with_the_question_to_be_admitted) {
  EXPECT_EQ(executor_hold{}.until(), time_point{}) << "it may begin nothing before";
  EXPECT_EQ(begun().until(), start + 6s);
}

TEST(executor_hold, is_shorter_than_what_the_driver_waits_and_longer_than_what_lies_between_heartbeats) {
  EXPECT_EQ(begun(1h).time(), 7500ms);
  EXPECT_EQ(begun(100ms).time(), 2s);
  EXPECT_EQ(begun(6s, 10s, 30s).time(), 20s);
  EXPECT_EQ(begun(6s, 100ms, 500ms).time(), 375ms);
}

TEST(executor_hold, counts_from_the_sending_of_what_was_heard) {
  auto hold = begun();
  hold.beat_sent(1, start + 1s);
  hold.beat_sent(2, start + 2s);
  hold.beat_sent(3, start + 3s);
  EXPECT_FALSE(hold.heard(0));
  EXPECT_TRUE(hold.heard(2));
  EXPECT_EQ(hold.until(), start + 8s);
  EXPECT_FALSE(hold.heard(1)) << "it has lain on the way";
  EXPECT_FALSE(hold.heard(2)) << "it was said before";
  EXPECT_FALSE(hold.heard(4)) << "it was never sent";
  EXPECT_EQ(hold.until(), start + 8s);
}

TEST(executor_hold, of_a_driver_that_stood_still_goes_on_with_what_it_hears_then) {
  auto hold = begun();
  for (std::uint64_t n = 1; n <= 5000; ++n) hold.beat_sent(n, start + n * 1s);
  EXPECT_TRUE(hold.heard(5000));
  EXPECT_EQ(hold.until(), start + 5006s);
}

TEST(executor_hold, that_has_ended_stays_so) {
  auto hold = begun();
  hold.beat_sent(1, start + 1s);
  hold.end();
  EXPECT_FALSE(hold.heard(1));
  EXPECT_EQ(hold.until(), time_point{});
}

} // namespace
} // namespace troupe
