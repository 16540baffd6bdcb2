// Task memory, bounds of tasks per executor, exclusive profiles.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/resources/exact_rules.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/resources/profile_notes.hpp>

#include "profiles.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

executor_capacity eight_cores() {
  auto capacity = capacity_with(8);
  capacity.memory = 4 * gib;
  return capacity;
}

resource_profile one_cpu(std::int64_t most = 0, bool exclusive = false) {
  auto profile = profile_of({}, {{"cpus", "1"}});
  profile.max_tasks_per_executor = most;
  profile.exclusive = exclusive;
  return profile;
}

/// Takes as many as fit.
std::vector<allotment> fill(ledger& l, const resource_profile& profile, profile_id id) {
  std::vector<allotment> all;
  while (auto chosen = l.choose(profile, id)) {
    EXPECT_TRUE(matches(*chosen, profile));
    EXPECT_TRUE(l.acquire(*chosen));
    all.push_back(*std::move(chosen));
  }
  return all;
}

TEST(task_memory, is_a_part_of_the_executors_memory) {
  auto profile = one_cpu();
  profile.task["memory"] = share::whole(3 * gib / 2);
  EXPECT_EQ(slots_of(eight_cores(), profile), (slot_count{2, "memory"}));
  ledger l{eight_cores()};
  const auto taken = fill(l, profile, profile_id{1});
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].resources.at("memory"), (std::vector<address_share>{{"", share::whole(3 * gib / 2)}}));
  EXPECT_EQ(l.free_of("memory", ""), share::whole(gib));
  EXPECT_EQ(l.free_slots(one_cpu()), 6) << "what asks for no memory has none counted";
  EXPECT_TRUE(l.release(taken[0]));
  EXPECT_EQ(l.free_slots(profile), 1);
}

TEST(task_memory, is_checked_against_the_executors) {
  auto profile = one_cpu();
  profile.executor["cores"] = {1, {}, {}};
  profile.executor["memory"] = {gib, {}, {}};
  profile.task["memory"] = share::whole(gib);
  EXPECT_TRUE(validate(profile));
  profile.task["memory"] = share::whole(gib + 1);
  ASSERT_FALSE(validate(profile));
  EXPECT_EQ(validate(profile).error().message,
            "The executor resource: memory, amount: 1g needs to be >= what one task takes of it: 1073741825b; give the "
            "executor more of it, or the task less");
  profile.executor.erase("memory");
  EXPECT_TRUE(validate(profile)) << "it may come from the default profile";
  profile.task["memory"] = *parse_share("0.5");
  ASSERT_FALSE(validate(profile));
  EXPECT_THAT(validate(profile).error().message, HasSubstr("is no number of bytes; write a size such as 512m"));
  const auto lacks = shortfalls(capacity_with(1), [] {
    auto p = one_cpu();
    p.task["memory"] = share::whole(2 * gib);
    return p;
  }());
  ASSERT_EQ(lacks.size(), 1u);
  EXPECT_THAT(to_string(lacks[0]), HasSubstr("needs memory 2g, has 1g"));
}

TEST(task_memory, that_no_task_can_take_is_told) {
  auto profile = one_cpu();
  profile.executor["cores"] = {2, {}, {}};
  profile.executor["memory"] = {4 * gib, {}, {}};
  profile.task["memory"] = share::whole(gib);
  ASSERT_EQ(idle_amounts_of(profile).size(), 1u);
  EXPECT_EQ(to_string(idle_amounts_of(profile)[0]), "2g of 4g memory stay idle");
  EXPECT_EQ(to_string(profile), "executor: cores 2, memory 4g; task: cpus 1, memory 1g");
}

TEST(tenancy, bounds_the_tasks_of_one_profile_and_no_others) {
  EXPECT_EQ(slots_of(eight_cores(), one_cpu(3)), (slot_count{3, "max-tasks-per-executor"}));
  EXPECT_EQ(slots_of(eight_cores(), one_cpu(9)), (slot_count{8, "cpus"}));
  ledger l{eight_cores()};
  const auto bounded = fill(l, one_cpu(3), profile_id{1});
  EXPECT_EQ(bounded.size(), 3u);
  EXPECT_EQ(l.free_slots(one_cpu(3), profile_id{2}), 3) << "another profile";
  EXPECT_EQ(fill(l, one_cpu(), profile_id{3}).size(), 5u);
  const auto refused = l.acquire(bounded[0]);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(l.release(bounded[0]));
  EXPECT_EQ(l.free_slots(one_cpu(3), profile_id{1}), 1);
}

TEST(tenancy, is_checked_by_the_ledger_whatever_was_chosen_elsewhere) {
  ledger l{eight_cores()};
  const auto bounded = fill(l, one_cpu(3), profile_id{1});
  EXPECT_EQ(l.acquire(bounded[0]).error().message,
            "the profile has at most 3 tasks per executor, and 3 run on this one");
  const auto exclusive = *ledger{eight_cores()}.choose(one_cpu(0, true), profile_id{2});
  EXPECT_EQ(l.acquire(exclusive).error().message, "the profile is exclusive, and tasks of others run on this executor");
  ledger other{eight_cores()};
  ASSERT_TRUE(other.acquire(exclusive));
  EXPECT_EQ(other.acquire(bounded[0]).error().message, "tasks of an exclusive profile run on this executor");
  EXPECT_EQ(other.release(bounded[0]).error().message, "no task of that profile runs on this executor");
  EXPECT_EQ(other.free_cpus(), share::whole(7)) << "nothing was taken or given back";
  EXPECT_FALSE(matches(bounded[0], one_cpu(2)));
  EXPECT_FALSE(matches(exclusive, one_cpu()));
}

TEST(tenancy, an_exclusive_profile_has_the_executor_for_its_own_tasks) {
  ledger l{eight_cores()};
  const auto own = fill(l, one_cpu(0, true), profile_id{1});
  EXPECT_EQ(own.size(), 8u);
  EXPECT_TRUE(l.release(own[0]));
  EXPECT_EQ(l.free_slots(one_cpu()), 0);
  EXPECT_EQ(l.free_slots(one_cpu(0, true), profile_id{2}), 0) << "another exclusive one";
  EXPECT_EQ(l.free_slots(one_cpu(0, true), profile_id{1}), 1);
  for (std::size_t i = 1; i < own.size(); ++i) EXPECT_TRUE(l.release(own[i]));
  EXPECT_TRUE(l.is_idle());
  EXPECT_EQ(fill(l, one_cpu(1, true), profile_id{2}).size(), 1u) << "the executor to one task alone";
  EXPECT_EQ(l.free_slots(one_cpu()), 0);
}

TEST(tenancy, is_part_of_the_content) {
  EXPECT_NE(one_cpu(1), one_cpu(2));
  EXPECT_NE(one_cpu(0, true), one_cpu());
  EXPECT_EQ(to_string(one_cpu(1, true)), "task: cpus 1; at most 1 task per executor; exclusive");
  EXPECT_EQ(to_string(one_cpu(2)), "task: cpus 1; at most 2 tasks per executor");
  auto negative = one_cpu(-1);
  ASSERT_FALSE(validate(negative));
  EXPECT_THAT(validate(negative).error().message, HasSubstr("max_tasks_per_executor -1 must be between 1 and 9000000"));
}

TEST(tenancy, of_a_merger_is_the_stricter_one) {
  for (const auto& merged : {merge(one_cpu(3), one_cpu(2, true)), merge(one_cpu(2, true), one_cpu(3)),
                             merge(one_cpu(2), one_cpu(0, true)), merge(one_cpu(0, true), one_cpu(2)),
                             exact::merge(one_cpu(3), one_cpu(2, true)), exact::merge(one_cpu(0, true), one_cpu(2))}) {
    EXPECT_EQ(merged.max_tasks_per_executor, 2);
    EXPECT_TRUE(merged.exclusive);
  }
  EXPECT_EQ(merge(one_cpu(), one_cpu()), one_cpu());
}

TEST(tenancy, limits_what_exact_counts_too) {
  auto profile = one_cpu(3);
  profile.executor["cores"] = {8, {}, {}};
  profile_rules rules;
  rules.matching = profile_matching::exact;
  rules.cores_configured = true;
  const auto limit = exact::limit_of(profile, rules);
  EXPECT_EQ(limit.tasks, 3);
  EXPECT_EQ(limit.limiting_resource, "max-tasks-per-executor");
}

} // namespace
} // namespace troupe
