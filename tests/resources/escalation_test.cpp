#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/resources/escalation.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>

#include "profiles.hpp"

namespace troupe::escalation_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

resource_profile default_profile() {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(1).memory("1g"))
      .require(task_resource_requests{}.cpus(1))
      .build();
}

resource_profile_builder with_memory(const char* executor, const char* ceiling) {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(2).memory(executor))
      .require(task_resource_requests{}.cpus(1))
      .memory_ceiling(ceiling);
}
resource_profile of_task(const char* executor, const char* task, const char* ceiling) {
  return with_memory(executor, ceiling).require(task_resource_requests{}.memory(task)).build();
}

std::vector<std::pair<std::int64_t, std::int64_t>> steps_of(resource_profile profile) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;
  while (const auto next = escalated(profile)) {
    steps.emplace_back(next->executor_amount("memory") / gib, next->task_amount("memory").ceil() / gib);
    profile = *next;
  }
  return steps;
}

TEST(escalation, doubles_the_memory_of_the_executor_up_to_the_ceiling) {
  using ::testing::Pair;
  EXPECT_THAT(steps_of(with_memory("2g", "16g").build()), ElementsAre(Pair(4, 0), Pair(8, 0), Pair(16, 0)));
  EXPECT_THAT(steps_of(with_memory("2g", "5g").build()), ElementsAre(Pair(4, 0), Pair(5, 0)));
  EXPECT_THAT(steps_of(with_memory("2g", "2g").build()), IsEmpty());
  EXPECT_THAT(steps_of(with_memory("2g", "1g").build()), IsEmpty()) << "not less than before";
}

TEST(escalation, doubles_the_memory_of_tasks_that_take_some) {
  using ::testing::Pair;
  EXPECT_THAT(steps_of(of_task("4g", "1g", "16g")), ElementsAre(Pair(4, 2), Pair(4, 4), Pair(8, 8), Pair(16, 16)))
      << "and the executor's where it is too small";
}

TEST(escalation, keeps_everything_else) {
  auto profile = of_task("4g", "1g", "2g");
  profile.exclusive = true;
  auto expected = profile;
  expected.task["memory"] = share::whole(2 * gib);
  EXPECT_EQ(escalated(profile), expected);
}

TEST(escalation, steps_are_profiles_of_their_own) {
  profile_registry registry{default_profile()};
  const auto registered = registry.register_profile(with_memory("2g", "8g").build());
  ASSERT_TRUE(registered) << registered.error().message;
  ASSERT_EQ(registered->escalations.size(), 2u);
  EXPECT_EQ(registered->escalations[1].content.executor_amount("memory"), 8 * gib);
  EXPECT_NE(registered->escalations[0].profile, registered->profile);
  EXPECT_NE(registered->escalations[0].shape, registered->shape);
  EXPECT_EQ(resolved(*registered).escalations[0].profile, registered->escalations[0].profile);
  const auto again = registry.register_profile(with_memory("4g", "8g").build());
  EXPECT_EQ(again->profile, registered->escalations[0].profile) << "equal content";
}

TEST(escalation, of_alternatives_is_their_own) {
  profile_registry registry{default_profile()};
  const auto both = with_memory("2g", "4g").or_else(with_memory("1g", "2g").build()).build();
  const auto registered = registry.register_profile(both);
  ASSERT_TRUE(registered) << registered.error().message;
  EXPECT_EQ(registered->escalations.at(0).content.executor_amount("memory"), 4 * gib);
  EXPECT_EQ(registered->alternatives.at(0).escalations.at(0).content.executor_amount("memory"), 2 * gib);
}

TEST(escalation, raises_an_overhead_that_follows_the_memory) {
  const overhead_rule tenth{share{share::units_per_whole / 10}, 0};
  profile_registry registry{default_profile(), {}, tenth};
  const auto follows = registry.register_profile(with_memory("2g", "4g").build());
  // In whole MiB.
  EXPECT_NEAR(follows->escalations.at(0).content.executor_amount("memoryOverhead"),
              2 * follows->content.executor_amount("memoryOverhead"), 1 << 20);
  const auto own = registry.register_profile(
      with_memory("2g", "4g").require(executor_resource_requests{}.memory_overhead("1g")).build());
  EXPECT_EQ(own->escalations.at(0).content.executor_amount("memoryOverhead"), gib);
}

TEST(escalation, of_the_default_profile_is_that_of_profiles_that_say_nothing) {
  auto defaults = default_profile();
  defaults.memory_ceiling = 64 * gib;
  profile_registry registry{defaults};
  auto silent = with_memory("2g", "8g").build();
  silent.memory_ceiling = 0;
  EXPECT_EQ(registry.register_profile(silent)->content.memory_ceiling, 64 * gib);
  EXPECT_EQ(registry.register_profile(with_memory("2g", "8g").build())->content.memory_ceiling, 8 * gib);
  EXPECT_FALSE(registry.register_profile({})->escalations.empty());
}

TEST(escalation, of_what_is_merged_goes_up_to_the_larger_ceiling) {
  const auto a = with_memory("2g", "8g").build();
  const auto b = with_memory("3g", "4g").build();
  EXPECT_EQ(merge(a, b).memory_ceiling, 8 * gib);
  EXPECT_EQ(merge(b, a).memory_ceiling, 8 * gib);
}

TEST(escalation, of_a_ceiling_that_is_none_is_refused) {
  EXPECT_THAT(with_memory("2g", "lots").try_build().error().message, HasSubstr("memory_ceiling: "));
  auto negative = with_memory("2g", "8g").build();
  negative.memory_ceiling = -1;
  EXPECT_THAT(validate(negative).error().message, HasSubstr("memory_ceiling -1 must be a size"));
  EXPECT_THAT(to_string(with_memory("2g", "8g").build()), HasSubstr("; up to 8g of memory when tried again"));
}

} // namespace
} // namespace troupe::escalation_tests
