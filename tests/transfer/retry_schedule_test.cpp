#include <gtest/gtest.h>

#include <troupe/runtime/transfer/retry_schedule.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(retry_schedule, pauses_grow_up_to_a_limit_and_end_with_the_attempts) {
  retry_schedule s{9};
  for (const duration pause : {duration{50ms}, duration{100ms}, duration{200ms}, duration{400ms}, duration{800ms},
                               duration{1600ms}, duration{2s}, duration{2s}})
    EXPECT_EQ(s.failed(false), pause);
  EXPECT_EQ(s.failed(false), std::nullopt);
  EXPECT_EQ(retry_schedule{0}.failed(false), std::nullopt);
  EXPECT_EQ(retry_schedule{1}.failed(false), std::nullopt);
}

TEST(retry_schedule, begins_anew_when_something_new_has_come) {
  retry_schedule s{2};
  EXPECT_EQ(s.failed(false), duration{50ms});
  EXPECT_EQ(s.failed(true), duration{50ms});
  EXPECT_EQ(s.failed(false), duration{100ms});
  EXPECT_EQ(s.failed(false), std::nullopt);
}

} // namespace
} // namespace troupe
