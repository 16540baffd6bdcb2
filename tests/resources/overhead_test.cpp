#include <troupe/runtime/resources/overhead.hpp>

#include <limits>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/resources/profile_registry.hpp>

#include "profiles.hpp"

namespace troupe::overhead_tests {
namespace {

overhead_rule sparks(profile_matching matching = profile_matching::compatible) {
  return {parsed("0.1"), 384 * mib, matching};
}

// Spec DF-11 and the examples of DF-14.
TEST(overhead, is_a_part_of_the_heap_in_whole_mib_or_the_minimum) {
  EXPECT_EQ(overhead_of(sparks(), gib, 0), 384 * mib);
  EXPECT_EQ(overhead_of(sparks(), 64 * gib, 0), 6553 * mib) << "6553.6 without the fraction";
  EXPECT_EQ(overhead_of({{}, 500 * mib}, gib, 0), 500 * mib);
  EXPECT_EQ(overhead_of({parsed("0.1"), 0}, 9 * mib, 0), 0);
  EXPECT_EQ(overhead_of({parsed("0.1"), 0}, 10 * mib, 0), mib);
  EXPECT_EQ(overhead_of({parsed("2"), 0}, 3 * gib, 0), 6 * gib);
  EXPECT_FALSE(overhead_rule{}.is_active());
  EXPECT_TRUE((overhead_rule{parsed("0.1"), 0}).is_active());
  EXPECT_TRUE((overhead_rule{{}, 1}).is_active());
}

TEST(overhead, never_wraps) {
  EXPECT_EQ(overhead_of({parsed("1"), 0}, largest, 0), largest / mib * mib);
  EXPECT_EQ(overhead_of({parsed("2"), 0}, largest, 0), largest);
  EXPECT_EQ(overhead_of({share::whole(largest), 0}, largest, 0), largest);
}

TEST(overhead, is_of_the_profiles_own_heap_and_under_exact_of_the_defaults) {
  EXPECT_EQ(overhead_of(sparks(), 64 * gib, gib), 6553 * mib);
  EXPECT_EQ(overhead_of(sparks(profile_matching::exact), 64 * gib, gib), 384 * mib) << "spec DF-11 [Q]";
}

resource_profile defaults() {
  return profile_of({{"cores", 1}, {"memory", gib}, {"memoryOverhead", 384 * mib}}, {{"cpus", "1"}});
}
std::int64_t completed(const resource_profile& profile, const overhead_rule& rule) {
  return complete(profile, defaults(), rule).executor_amount("memoryOverhead");
}

TEST(overhead, completes_profiles_that_give_none) {
  const auto large = profile_of({{"memory", 64 * gib}}, {});
  EXPECT_EQ(completed(large, sparks()), 6553 * mib);
  EXPECT_EQ(completed(large, sparks(profile_matching::exact)), 384 * mib);
  EXPECT_EQ(completed(large, {}), 384 * mib) << "the configuration's explicit one is everybody's";
  EXPECT_EQ(completed(profile_of({{"cores", 2}}, {}), sparks()), 384 * mib) << "of the heap that it takes over";
  EXPECT_EQ(completed(profile_of({}, {{"cpus", "1"}}), sparks()), 384 * mib);
  EXPECT_EQ(completed({}, sparks()), 384 * mib);
  EXPECT_EQ(completed(profile_of({{"memory", 64 * gib}, {"memoryOverhead", mib}}, {}), sparks()), mib)
      << "an explicit one beats factor and minimum (spec DF-12)";
  EXPECT_EQ(
      complete(profile_of({{"memory", mib}}, {}), defaults(), {parsed("0.1"), 0}).executor.count("memoryOverhead"), 0u);
  const auto once = complete(large, defaults(), sparks());
  EXPECT_EQ(complete(once, defaults(), sparks()), once);
}

TEST(overhead, of_registered_profiles_follows_the_rule_and_too_much_is_an_error) {
  profile_registry registry{defaults(), {}, sparks()};
  EXPECT_EQ(
      registry.register_profile(profile_of({{"memory", 64 * gib}}, {}))->content.executor_amount("memoryOverhead"),
      6553 * mib);
  const auto refused = registry.register_profile(profile_of({{"memory", largest - gib}}, {}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("add up to more than 2^63 - 1"));
}

// Spec DF-14.
TEST(container_memory, is_heap_overhead_off_heap_and_pyspark) {
  const auto of = [](std::int64_t heap, std::int64_t overhead, std::int64_t off_heap, std::int64_t pyspark) {
    return container_memory({1, heap, overhead, off_heap, pyspark, {}});
  };
  EXPECT_EQ(of(2 * gib, gib, 0, 3 * gib), 6144 * mib);
  EXPECT_EQ(of(gib, 384 * mib, 0, 0), 1408 * mib);
  EXPECT_EQ(of(gib, 384 * mib, 42 * mib, 0), 1450 * mib);
  EXPECT_EQ(of(gib, 384 * mib, 0, 42 * mib), 1450 * mib);
  EXPECT_EQ(of(largest, 1, 1, 1), largest);
}

} // namespace
} // namespace troupe::overhead_tests
