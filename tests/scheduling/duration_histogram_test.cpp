#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/duration_histogram.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(duration_histogram, has_a_median_within_a_sixteenth) {
  for (const duration d : {duration{0}, duration{1}, duration{15}, duration{16}, duration{1000}, duration{1s},
                           duration{1h}, duration{24h * 365}}) {
    duration_histogram h;
    h.add(d);
    EXPECT_LE(h.median(), d);
    EXPECT_GE(h.median().count(), d.count() - d.count() / 16) << d.count();
  }
}

TEST(duration_histogram, counts_what_is_in_the_middle) {
  duration_histogram h;
  EXPECT_EQ(h.median(), duration::zero());
  h.add(1ms, 100);
  h.add(1s, 100);
  EXPECT_GT(h.median(), 900ms) << "the larger one of two";
  h.add(1us);
  EXPECT_LE(h.median(), 1ms);
  EXPECT_EQ(h.count(), 201u);
  h.add(duration{-5});
  h.add(duration::max(), 1000);
  EXPECT_GT(h.median(), 24h * 365 * 30);
}

} // namespace
} // namespace troupe
