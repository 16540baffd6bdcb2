#include <troupe/runtime/api/resource_profile_builder.hpp>

#include <limits>
#include <stdexcept>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "profiles.hpp"

namespace troupe::resource_profile_tests {
namespace {

using testing::HasSubstr;

std::string fault_of(const resource_profile& profile) {
  const auto ok = validate(profile);
  EXPECT_FALSE(ok) << to_string(profile);
  EXPECT_EQ(ok.error().code, ec::invalid_profile);
  return ok.error().message;
}

TEST(profile_builder, collects_both_halves) {
  const auto profile = resource_profile_builder{}
                           .require(executor_resource_requests{}
                                        .cores(2)
                                        .memory("1g")
                                        .memory_overhead("384m")
                                        .off_heap("64")
                                        .pyspark_memory("1g")
                                        .resource("gpu", 1, "./find-gpus", "nvidia.com"))
                           .require(task_resource_requests{}.cpus("0.5").resource("gpu", "1/3"))
                           .build();
  EXPECT_EQ(profile.executor_amount("cores"), 2);
  EXPECT_EQ(profile.executor_amount("memory"), gib);
  EXPECT_EQ(profile.executor_amount("memoryOverhead"), 384 * mib);
  EXPECT_EQ(profile.executor_amount("offHeap"), 64 * mib);
  EXPECT_EQ(profile.executor_amount("pyspark.memory"), gib);
  EXPECT_EQ(profile.executor.at("gpu"), (executor_request{1, "./find-gpus", "nvidia.com"}));
  EXPECT_EQ(profile.task_amount("cpus"), parsed("0.5"));
  EXPECT_EQ(profile.task_amount("gpu"), parsed("1/3"));
  EXPECT_EQ(profile.executor_amount("fpga"), 0);
  EXPECT_TRUE(profile.task_amount("fpga").is_zero());
}

TEST(profile_builder, lets_the_last_call_win_and_stays_usable) {
  resource_profile_builder builder;
  builder.require(executor_resource_requests{}.cores(2).cores(4).memory("1g"));
  const auto first = builder.build();
  EXPECT_EQ(first.executor_amount("cores"), 4);
  builder.require(executor_resource_requests{}.cores(8));
  const auto second = builder.build();
  EXPECT_EQ(second.executor_amount("cores"), 8);
  EXPECT_EQ(second.executor_amount("memory"), gib);
  EXPECT_EQ(first.executor_amount("cores"), 4);
  EXPECT_EQ(builder.build(), second);
}

TEST(profile_builder, reports_texts_that_do_not_parse) {
  const auto bad_memory = resource_profile_builder{}.require(executor_resource_requests{}.memory("0.5g")).try_build();
  ASSERT_FALSE(bad_memory);
  EXPECT_THAT(bad_memory.error().message, HasSubstr("executor resource memory: \"0.5g\""));
  resource_profile_builder bad_share;
  bad_share.require(task_resource_requests{}.resource("gpu", "half"));
  EXPECT_THAT(bad_share.try_build().error().message, HasSubstr("task resource gpu: \"half\""));
  try {
    bad_share.build();
    FAIL();
  } catch (const std::invalid_argument& e) {
    EXPECT_THAT(e.what(), HasSubstr("\"half\""));
  }
}

TEST(profile_builder, refuses_counts_out_of_range) {
  for (const std::int64_t count :
       {std::int64_t{-1}, std::int64_t{0}, largest_count + 1, std::numeric_limits<std::int64_t>::min(),
        std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_FALSE(resource_profile_builder{}.require(task_resource_requests{}.cpus(count)).try_build()) << count;
    EXPECT_FALSE(resource_profile_builder{}.require(executor_resource_requests{}.cores(count)).try_build()) << count;
  }
}

TEST(profile_rules, custom_task_amounts_are_at_most_one_or_whole) {
  for (const auto* amount : {"0.33", "0.7", "1/3", "1", "2", "4"})
    EXPECT_TRUE(validate(profile_of({{"gpu", 4}}, {{"gpu", amount}}))) << amount;
  for (const auto* amount : {"1.5", "1.000000000001", "3.25"}) {
    EXPECT_THAT(fault_of(profile_of({{"gpu", 4}}, {{"gpu", amount}})),
                HasSubstr(std::string{"amount "} + amount + " must be either <= 1.0, or a whole number"));
  }
}

TEST(profile_rules, cpus_may_be_any_fraction) {
  EXPECT_TRUE(validate(profile_of({{"cores", 4}}, {{"cpus", "1.5"}})));
  EXPECT_TRUE(validate(profile_of({{"cores", 1}}, {{"cpus", "0.1"}})));
}

TEST(profile_rules, amounts_must_be_positive_and_in_range) {
  auto profile = profile_of({{"cores", 0}}, {});
  EXPECT_THAT(fault_of(profile), HasSubstr("executor resource cores: amount 0 must be more than zero"));
  profile.executor["cores"].amount = largest_count + 1;
  EXPECT_THAT(fault_of(profile), HasSubstr("above 9000000"));
  profile.executor["cores"].amount = 1;
  for (const std::int64_t units : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    profile.task["cpus"] = share{units};
    EXPECT_THAT(fault_of(profile), HasSubstr("must be more than zero"));
  }
  profile.task["cpus"] = share{std::numeric_limits<std::int64_t>::max()};
  EXPECT_THAT(fault_of(profile), HasSubstr("above 9000000"));
}

TEST(profile_rules, memory_must_add_up_without_overflow) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(validate(profile_of({{"memory", max - 2}, {"memoryOverhead", 1}, {"offHeap", 1}}, {})));
  EXPECT_THAT(fault_of(profile_of({{"memory", max - 2}, {"memoryOverhead", 2}, {"offHeap", 1}}, {})),
              HasSubstr("add up"));
}

TEST(profile_rules, a_task_resource_needs_its_executor_resource) {
  EXPECT_THAT(fault_of(profile_of({{"cores", 1}}, {{"gpu", "1"}, {"fpga", "1"}})), HasSubstr("fpga, gpu"));
  EXPECT_TRUE(validate(profile_of({}, {{"gpu", "1"}}))) << "the default profile may have it";
}

TEST(profile_rules, a_task_must_fit_its_own_executor) {
  EXPECT_THAT(fault_of(profile_of({{"gpu", 1}}, {{"gpu", "2"}})),
              HasSubstr("The executor resource: gpu, amount: 1 needs to be >= what one task takes of it: 2.0"));
  EXPECT_THAT(fault_of(profile_of({{"cores", 1}}, {{"cpus", "1.5"}})),
              HasSubstr("The number of cores per executor (=1) has to be >= the cpus of one task (=1.5)"));
  EXPECT_TRUE(validate(profile_of({{"memory", gib}}, {{"cpus", "64"}}))) << "the default's cores are not known here";
}

TEST(profile_rules, alternatives_are_other_profiles_without_alternatives) {
  auto p = profile_of({{"gpu", 1}}, {{"gpu", "1"}});
  const auto wide = profile_of({{"cores", 16}}, {{"cpus", "16"}});
  p.alternatives = {wide};
  EXPECT_TRUE(validate(p));
  EXPECT_NE(p, first_choice(p));
  EXPECT_EQ(to_string(p), "executor: gpu 1; task: gpu 1 else (executor: cores 16; task: cpus 16)");
  p.alternatives = {wide, wide};
  EXPECT_THAT(fault_of(p), HasSubstr("twice"));
  p.alternatives = {first_choice(p)};
  EXPECT_THAT(fault_of(p), HasSubstr("twice"));
  p.alternatives = {wide};
  p.alternatives[0].alternatives = {profile_of({}, {{"cpus", "1"}})};
  EXPECT_THAT(fault_of(p), HasSubstr("has alternatives itself"));
  p.alternatives.clear();
  for (std::int64_t n = 1; n <= 9; ++n) p.alternatives.push_back(profile_of({{"cores", n}}, {}));
  EXPECT_THAT(fault_of(p), HasSubstr("9 alternatives, at most 8"));

  const auto built = resource_profile_builder{}
                         .require(executor_resource_requests{}.resource("gpu", 1))
                         .require(task_resource_requests{}.resource("gpu", 1))
                         .or_else(wide)
                         .build();
  EXPECT_EQ(built.alternatives, std::vector<resource_profile>{wide});
}

TEST(profile_builder, says_how_tasks_share_their_executor) {
  const auto profile = resource_profile_builder{}
                           .require(task_resource_requests{}.memory("512m").cpus("0.5"))
                           .max_tasks_per_executor(2)
                           .exclusive()
                           .build();
  EXPECT_EQ(profile.task_amount("memory"), share::whole(512 * mib));
  EXPECT_EQ(profile.max_tasks_per_executor, 2);
  EXPECT_TRUE(profile.exclusive);
  EXPECT_TRUE(profile.is_task_only());
  EXPECT_EQ(resource_profile_builder{}.require(task_resource_requests{}.resource("memory", "2")).build().task,
            resource_profile_builder{}.require(task_resource_requests{}.memory("2m")).build().task)
      << "a bare number counts MiB, under either name";
  const auto nothing = resource_profile_builder{}.max_tasks_per_executor(0).try_build();
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message, HasSubstr("max_tasks_per_executor 0 must be more than zero"));
  const auto bad = resource_profile_builder{}.require(task_resource_requests{}.memory("much")).try_build();
  ASSERT_FALSE(bad);
  EXPECT_THAT(bad.error().message, HasSubstr("task resource memory: "));
}

TEST(profile_rules, names_of_the_other_half_are_refused) {
  EXPECT_THAT(fault_of(profile_of({{"cpus", 2}}, {})), HasSubstr("write cores"));
  EXPECT_THAT(fault_of(profile_of({{"cores", 2}}, {{"cores", "1"}})), HasSubstr("task resource cores"));
  EXPECT_THAT(fault_of(profile_of({{"offHeap", gib}}, {{"offHeap", "1"}})), HasSubstr("task resource offHeap"));
}

TEST(profile_rules, hostile_texts_are_refused) {
  for (const std::string& name :
       {std::string{}, std::string(129, 'a'), std::string{"a b"}, std::string{"a\nb"}, std::string{"a\0b", 3},
        std::string{"-gpu"}, std::string{"gpu,fpga"}, std::string{"\xff"}}) {
    EXPECT_FALSE(validate(profile_of({{name, 1}}, {})));
    EXPECT_FALSE(validate(profile_of({}, {{name, "1"}})));
  }
  EXPECT_TRUE(validate(profile_of({{"nvidia.com/gpu", 1}, {"a-b_c.d", 1}, {std::string(128, 'a'), 1}}, {})));
  auto profile = profile_of({{"gpu", 1}}, {});
  profile.executor["gpu"].discovery_script = "find\ngpus";
  EXPECT_FALSE(validate(profile));
  profile.executor["gpu"].discovery_script = std::string(4097, 'a');
  EXPECT_FALSE(validate(profile));
}

TEST(profile_completion, fills_the_built_in_parts_one_by_one) {
  const auto defaults =
      profile_of({{"cores", 4}, {"memory", gib}, {"memoryOverhead", mib}, {"gpu", 2}}, {{"cpus", "2"}, {"gpu", "1"}});
  const auto whole = complete(profile_of({{"memory", 8 * gib}, {"fpga", 1}}, {{"fpga", "1"}}), defaults);
  EXPECT_EQ(whole, profile_of({{"cores", 4}, {"memory", 8 * gib}, {"memoryOverhead", mib}, {"fpga", 1}},
                              {{"cpus", "2"}, {"fpga", "1"}}))
      << "custom resources are not inherited";
  EXPECT_EQ(complete(profile_of({{"cores", 1}}, {{"cpus", "1"}}), defaults).task, profile_of({}, {{"cpus", "1"}}).task);
}

TEST(profile_completion, gives_a_task_only_profile_the_whole_executor_half) {
  const auto defaults = profile_of({{"cores", 4}, {"memory", gib}, {"gpu", 2}}, {{"cpus", "1"}});
  const auto whole = complete(profile_of({}, {{"gpu", "0.7"}}), defaults);
  EXPECT_EQ(whole.executor, defaults.executor);
  EXPECT_EQ(whole.task, profile_of({}, {{"cpus", "1"}, {"gpu", "0.7"}}).task);
}

TEST(profile_completion, nothing_at_all_is_the_default_and_completion_is_idempotent) {
  const auto defaults = profile_of({{"cores", 4}, {"memory", gib}, {"gpu", 2}}, {{"cpus", "1"}, {"gpu", "1"}});
  EXPECT_EQ(complete({}, defaults), defaults);
  const auto once = complete(profile_of({{"cores", 2}}, {}), defaults);
  EXPECT_EQ(complete(once, defaults), once);
}

TEST(profile_merge, takes_the_larger_of_each) {
  EXPECT_EQ(merge(profile_of({{"cores", 4}}, {{"cpus", "1"}}), profile_of({{"cores", 2}}, {{"cpus", "2"}})),
            profile_of({{"cores", 4}}, {{"cpus", "2"}}));
  auto a = profile_of({{"cores", 1}, {"gpu", 4}}, {{"gpu", "1"}});
  a.executor["gpu"].discovery_script = "disc";
  auto b = profile_of({{"cores", 2}, {"gpu", 2}}, {{"cpus", "2"}, {"gpu", "2"}});
  b.executor["gpu"].discovery_script = "fdisc";
  auto expected = profile_of({{"cores", 2}, {"gpu", 4}}, {{"cpus", "2"}, {"gpu", "2"}});
  expected.executor["gpu"].discovery_script = "disc";
  EXPECT_EQ(merge(a, b), expected);
  EXPECT_EQ(merge(b, a), expected);
  b.executor["gpu"].amount = 4;
  EXPECT_EQ(merge(a, b).executor["gpu"].discovery_script, "disc") << "a tie is the left one's";
  EXPECT_EQ(merge(b, a).executor["gpu"].discovery_script, "fdisc");
}

TEST(profile_text, is_one_line_in_a_fixed_order) {
  EXPECT_EQ(to_string(profile_of({{"memory", gib}, {"fpga", 3}, {"cores", 2}, {"gpu", 1}},
                                 {{"fpga", "2"}, {"cpus", "1"}, {"gpu", "0.5"}})),
            "executor: cores 2, memory 1g, fpga 3, gpu 1; task: cpus 1, fpga 2, gpu 0.5");
  EXPECT_EQ(to_string(profile_of({}, {{"cpus", "1/3"}})), "task: cpus 1/3");
  EXPECT_EQ(to_string(profile_of({{"pyspark.memory", gib}, {"offHeap", mib}, {"memoryOverhead", mib}}, {})),
            "executor: memoryOverhead 1m, offHeap 1m, pyspark.memory 1g");
  EXPECT_EQ(to_string(resource_profile{}), "default");
}

} // namespace
} // namespace troupe::resource_profile_tests
