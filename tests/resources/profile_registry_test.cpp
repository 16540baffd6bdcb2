#include <troupe/runtime/resources/profile_registry.hpp>

#include <stdexcept>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "profiles.hpp"

namespace troupe::profile_registry_tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

resource_profile default_profile() { return profile_of({{"cores", 4}, {"memory", gib}}, {{"cpus", "1"}}); }

TEST(profile_registry, starts_with_the_default_profile_and_its_shape) {
  const profile_registry registry{default_profile()};
  ASSERT_EQ(registry.profiles().size(), 1u);
  const auto* entry = registry.find(default_profile_id);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->profile, default_profile_id);
  EXPECT_EQ(entry->shape, shape_id{1});
  EXPECT_EQ(entry->content, default_profile());
  EXPECT_EQ(entry->slots, (slot_count{4, "cpus"}));
  EXPECT_EQ(*registry.find_shape(shape_id{1}), default_profile());
  EXPECT_EQ(registry.find(profile_id{1}), nullptr);
  EXPECT_EQ(registry.find_shape(shape_id{0}), nullptr);
  EXPECT_EQ(registry.find_shape(shape_id{2}), nullptr);
}

TEST(profile_registry, needs_a_complete_default) {
  EXPECT_THROW(profile_registry{resource_profile{}}, std::invalid_argument);
  EXPECT_THROW(profile_registry{profile_of({{"cores", 1}}, {{"cpus", "1"}})}, std::invalid_argument);
  EXPECT_THROW(profile_registry{profile_of({{"cores", 1}, {"memory", gib}}, {})}, std::invalid_argument);
  EXPECT_THROW(profile_registry{profile_of({{"cores", 1}, {"memory", gib}}, {{"cpus", "2"}})}, std::invalid_argument);
}

TEST(profile_registry, equal_contents_are_one_profile) {
  profile_registry registry{default_profile()};
  const auto first = registry.register_profile(profile_of({{"cores", 2}, {"gpu", 1}}, {{"gpu", "0.5"}})).value();
  EXPECT_EQ(first.profile, profile_id{1});
  EXPECT_EQ(first.shape, shape_id{2});
  EXPECT_TRUE(first.is_new);
  EXPECT_EQ(first.content, profile_of({{"cores", 2}, {"memory", gib}, {"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.5"}}));
  const auto again = registry.register_profile(first.content).value();
  EXPECT_EQ(again.profile, first.profile) << "written out or left to the default is the same";
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(registry.profiles().size(), 2u);
}

TEST(profile_registry, equal_executor_halves_are_one_shape) {
  profile_registry registry{default_profile()};
  const auto a = registry.register_profile(profile_of({{"cores", 2}}, {{"cpus", "1"}})).value();
  const auto b = registry.register_profile(profile_of({{"cores", 2}}, {{"cpus", "2"}})).value();
  EXPECT_NE(a.profile, b.profile);
  EXPECT_EQ(a.shape, b.shape);
  EXPECT_EQ(*registry.find_shape(a.shape), a.content) << "the first one stands for the shape";
  EXPECT_EQ(registry.shape_count(), 2u);
  const auto task_only = registry.register_profile(profile_of({}, {{"cpus", "2"}})).value();
  EXPECT_EQ(task_only.shape, shape_id{1}) << "a task-only profile shares the default's executors";
}

TEST(profile_registry, the_default_written_out_or_left_empty_is_profile_zero) {
  profile_registry registry{default_profile()};
  EXPECT_EQ(registry.register_profile({}).value().profile, default_profile_id);
  EXPECT_EQ(registry.register_profile(default_profile()).value().profile, default_profile_id);
  EXPECT_EQ(registry.register_profile(profile_of({{"cores", 4}}, {})).value().profile, default_profile_id);
}

TEST(profile_registry, a_refused_profile_leaves_no_trace) {
  profile_registry registry{default_profile()};
  const auto bad = profile_of({{"gpu", 1}}, {{"gpu", "2"}});
  for (int i = 0; i < 2; ++i) {
    const auto refused = registry.register_profile(bad);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ec::invalid_profile);
  }
  EXPECT_EQ(registry.profiles().size(), 1u);
  EXPECT_EQ(registry.register_profile(profile_of({{"gpu", 1}}, {{"gpu", "1"}})).value().profile, profile_id{1});
}

TEST(profile_registry, checks_what_completion_makes_of_a_profile) {
  profile_registry registry{default_profile()};
  const auto refused = registry.register_profile(profile_of({{"memory", 2 * gib}}, {{"cpus", "8"}}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("The number of cores per executor (=4) has to be >= the cpus of one task (=8)"));
  EXPECT_THAT(refused.error().message, HasSubstr("the default's: executor: cores 4"));
  EXPECT_THAT(registry.register_profile(profile_of({}, {{"gpu", "1"}})).error().message, HasSubstr("gpu"));
}

TEST(profile_registry, merges_in_the_order_of_ids) {
  profile_registry registry{default_profile()};
  auto left = profile_of({{"cores", 1}, {"gpu", 1}}, {{"gpu", "1"}});
  left.executor["gpu"].discovery_script = "disc";
  auto right = profile_of({{"cores", 2}, {"gpu", 1}}, {{"cpus", "2"}});
  right.executor["gpu"].discovery_script = "other";
  const auto a = registry.register_profile(left).value().profile;
  const auto b = registry.register_profile(right).value().profile;
  const auto merge = [&](std::initializer_list<profile_id> ids, profile_change rule = profile_change::merge) {
    std::vector<profile_use> uses;
    for (const auto id : ids) uses.push_back(use(id, "set " + std::to_string(id.value)));
    return registry.profile_of_stage(uses, rule);
  };
  const auto merged = merge({b, a}).value();
  EXPECT_EQ(merged.content.executor.at("gpu").discovery_script, "disc");
  EXPECT_EQ(merged.content.executor_amount("cores"), 2);
  EXPECT_EQ(merged.content.task_amount("cpus"), parsed("2"));
  EXPECT_EQ(merged.content.task_amount("gpu"), parsed("1"));
  EXPECT_EQ(merge({a, b}).value().profile, merged.profile);
  EXPECT_FALSE(merge({a, b}).value().is_new);
  EXPECT_EQ(merge({a, a}).value().profile, a);
  EXPECT_EQ(merge({a, a}, profile_change::error).value().profile, a) << "one profile twice is no conflict";
  EXPECT_EQ(merge({a, profile_id{99}}).error().code, ec::not_found);
  EXPECT_EQ(merge({a, b, merged.profile}).value().profile, merged.profile);
  const auto conflict = merge({b, a}, profile_change::error).error();
  EXPECT_EQ(conflict.code, ec::invalid_profile);
  for (const auto* part : {"two resource profiles meet in one stage: 'set 2' has (executor: cores 2",
                           "and 'set 1' has (", "troupe.scheduler.profile-change = merge", "group_by_key"})
    EXPECT_THAT(conflict.message, HasSubstr(part));
}

TEST(profile_registry, alternatives_are_profiles_of_their_own) {
  profile_registry registry{default_profile()};
  auto choice = profile_of({{"gpu", 1}}, {{"gpu", "1"}});
  const auto alone = registry.register_profile(choice).value();
  choice.alternatives = {profile_of({{"cores", 16}}, {{"cpus", "16"}}), resource_profile{}};
  const auto first = registry.register_profile(choice).value();
  EXPECT_EQ(first.profile, alone.profile);
  ASSERT_EQ(first.alternatives.size(), 2u);
  EXPECT_EQ(first.alternatives[0].content.executor_amount("cores"), 16);
  EXPECT_EQ(first.alternatives[0].content.executor_amount("memory"), gib) << "completed like any other";
  EXPECT_EQ(first.alternatives[1].profile, default_profile_id);
  EXPECT_EQ(resolved(first).alternatives[0].profile, first.alternatives[0].profile);
  EXPECT_EQ(registry.profiles().size(), 3u);
  const auto meet = [&](const profile_registration& a, const profile_registration& b) {
    return registry.profile_of_stage({{a, "map"}, {b, "filter"}}, profile_change::merge);
  };
  EXPECT_EQ(meet(first, first).value(), first);
  EXPECT_THAT(meet(first, alone).error().message, testing::AllOf(HasSubstr("profiles with alternatives are not merged"),
                                                                 HasSubstr("else (executor: cores 16")));
  choice.alternatives.push_back(profile_of({{"gpu", 1}}, {{"gpu", "2"}}));
  EXPECT_THAT(registry.register_profile(choice).error().message, HasSubstr("alternative: The executor resource: gpu"));
}

TEST(profile_registry, notes_names_that_are_probably_slips) {
  profile_registry registry{default_profile()};
  const auto notes =
      registry.register_profile(profile_of({{"core", 2}, {"gpus", 1}, {"mem", 5}}, {{"gpus", "1"}})).value().notes;
  EXPECT_THAT(notes, testing::Contains(HasSubstr("executor resource core is a custom resource; did you mean cores?")));
  EXPECT_THAT(notes, testing::Contains(HasSubstr("executor resource gpus is a custom resource; did you mean gpu?")));
  EXPECT_THAT(notes, testing::Contains(HasSubstr("executor resource mem is a custom resource; did you mean memory?")));
  EXPECT_THAT(notes, testing::Contains(HasSubstr("task resource gpus is a custom resource; did you mean gpu?")));
  EXPECT_THAT(notes, testing::Contains(HasSubstr("executor resource core 2 is taken by no task")));
}

TEST(profile_registry, notes_discovery_scripts_that_nobody_runs) {
  auto defaults = default_profile();
  defaults.executor["gpu"] = {1, "/find", {}, false};
  profile_registry registry{defaults};
  auto own = profile_of({{"gpu", 1}}, {{"gpu", "1"}});
  own.executor["gpu"].discovery_script = "/find";
  EXPECT_THAT(registry.register_profile(own).value().notes, testing::Not(testing::Contains(HasSubstr("script"))));
  own.executor["gpu"].discovery_script = "/own";
  EXPECT_THAT(
      registry.register_profile(own).value().notes,
      testing::Contains(HasSubstr("executor resource gpu: the profile's discovery script \"/own\" is not run")));
  EXPECT_THAT(profile_registry{default_profile()}.register_profile(own).value().notes,
              testing::Contains(HasSubstr("set troupe.executor.resource.gpu.discovery-script")));
}

TEST(profile_notes, know_the_usual_spellings) {
  for (const auto* name :
       {"cpu", "Cores", "CPU", "vcores", "memory_overhead", "memory-overhead", "off-heap", "offheap", "GPU"})
    EXPECT_THAT(suspicions_about(profile_of({{name, 1}}, {{name, "1"}})), testing::Contains(HasSubstr("did you mean")))
        << name;
  EXPECT_THAT(suspicions_about(profile_of({}, {{"cpu", "1"}})), ElementsAre(HasSubstr("did you mean cpus?")));
  EXPECT_THAT(suspicions_about(profile_of({{"memroy", 1}}, {})), testing::Contains(HasSubstr("did you mean memory?")));
  EXPECT_THAT(suspicions_about(profile_of({}, {{"memroy", "1"}})), ElementsAre(HasSubstr("did you mean memory?")));
  EXPECT_THAT(suspicions_about(profile_of(
                  {{"cores", 1}, {"memory", gib}, {"memoryOverhead", 1}, {"offHeap", 1}, {"gpu", 1}, {"fpga", 1}},
                  {{"cpus", "1"}, {"gpu", "1"}, {"fpga", "1"}})),
              IsEmpty());
}

// Spec 3.2 and SL-14: also what integer division hides.
TEST(profile_notes, idle_amounts_are_exact) {
  const auto idle = [](std::int64_t cores, std::int64_t gpus, const char* cpus, const char* gpu) {
    return idle_amounts_of(profile_of({{"cores", cores}, {"gpu", gpus}}, {{"cpus", cpus}, {"gpu", gpu}}));
  };
  EXPECT_THAT(idle(4, 4, "1", "1"), IsEmpty());
  EXPECT_THAT(idle(4, 2, "1", "1"), ElementsAre(idle_amount{"cores", share::whole(4), share::whole(2)}));
  EXPECT_THAT(idle(16, 4, "1", "0.3"), ElementsAre(idle_amount{"cores", share::whole(16), share::whole(4)},
                                                   idle_amount{"gpu", share::whole(4), parsed("0.4")}));
  EXPECT_THAT(idle(80, 9, "3", "2"), ElementsAre(idle_amount{"cores", share::whole(80), share::whole(68)},
                                                 idle_amount{"gpu", share::whole(9), share::whole(1)}));
  EXPECT_THAT(idle(1, 4, "1", "3"), ElementsAre(idle_amount{"gpu", share::whole(4), share::whole(1)}));
  EXPECT_THAT(idle(3, 1, "1", "1/3"), IsEmpty()) << "what rounding leaves over is no waste";
  EXPECT_EQ(to_string(idle_amount{"cores", share::whole(16), share::whole(4)}), "4 of 16 cores stay idle");
}

TEST(profile_registry, tells_the_author_what_stays_idle) {
  profile_registry registry{default_profile()};
  const auto resolved = registry.register_profile(profile_of({{"gpu", 2}}, {{"gpu", "1"}})).value();
  EXPECT_THAT(resolved.notes,
              ElementsAre("2 of 4 cores stay idle: an executor of this profile runs 2 tasks at once, limited by gpu"));
  const auto* entry = registry.find(resolved.profile);
  EXPECT_EQ(entry->slots, (slot_count{2, "gpu"}));
  EXPECT_THAT(entry->idle, ElementsAre(idle_amount{"cores", share::whole(4), share::whole(2)}));
}

TEST(profile_registry, is_bounded) {
  profile_registry registry{default_profile()};
  for (std::size_t i = 1; i < profile_registry::max_profiles; ++i) {
    auto p = default_profile();
    p.executor["memory"].amount = gib + static_cast<std::int64_t>(i);
    ASSERT_TRUE(registry.register_profile(p));
  }
  EXPECT_EQ(registry.register_profile(profile_of({{"cores", 3}}, {})).error().code, ec::overloaded);
  EXPECT_EQ(registry.register_profile({}).value().profile, default_profile_id) << "known ones still resolve";
}

} // namespace
} // namespace troupe::profile_registry_tests
