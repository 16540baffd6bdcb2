#include <random>
#include <set>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/kept_partitions.hpp>

namespace troupe {
namespace {

TEST(kept_partitions, agree_with_a_set) {
  std::mt19937 random{5};
  for (const std::uint32_t most : {10u, 40u, 5'000u}) {
    kept_partitions kept;
    std::set<partition_index> expected;
    for (int step = 0; step < 20'000; ++step) {
      const partition_index p = random() % most;
      // Grows and shrinks by turns, also to nothing.
      if (step / 4'000 % 2 == 0 ? random() % 3 > 0 : random() % 3 == 0) {
        if (expected.insert(p).second) kept.add(p);
      } else {
        ASSERT_EQ(kept.remove(p), expected.erase(p) == 1) << p;
      }
      ASSERT_EQ(kept.size(), expected.size());
    }
    EXPECT_THAT(std::vector<partition_index>(kept.begin(), kept.end()), ::testing::UnorderedElementsAreArray(expected));
    for (const auto p : expected) ASSERT_TRUE(kept.remove(p));
    EXPECT_TRUE(kept.empty());
    EXPECT_FALSE(kept.remove(0));
    kept.add(0);
    EXPECT_TRUE(kept.remove(0));
  }
}

} // namespace
} // namespace troupe
