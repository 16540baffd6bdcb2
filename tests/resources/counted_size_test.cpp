// Custom resources that are a size, such as `gpu-memory 40g`: counted, without addresses and without discovery.

#include <limits>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>

#include "profiles.hpp"

namespace troupe::counted_size_tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// `gpu-memory` of an executor and of a task, as texts.
result<resource_profile> sized(std::string_view executor, std::string_view task) {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(8).memory("1g").resource("gpu-memory", executor))
      .require(task_resource_requests{}.cpus(1).resource("gpu-memory", task))
      .try_build();
}

std::string fault_of(const result<resource_profile>& built) { return built ? "" : built.error().message; }

TEST(counted_size, is_what_is_written_with_a_unit) {
  const auto profile = sized("40g", "10G").value();
  EXPECT_EQ(profile.executor.at("gpu-memory"), (executor_request{40 * gib, "", "", true}));
  EXPECT_TRUE(profile.is_counted("gpu-memory"));
  EXPECT_FALSE(profile.is_counted("cores"));
  EXPECT_FALSE(profile.is_counted("gpu"));
  EXPECT_EQ(profile.task_amount("gpu-memory"), share::whole(10 * gib));
  EXPECT_EQ(to_string(profile), "executor: cores 8, memory 1g, gpu-memory 40g; task: cpus 1, gpu-memory 10g");
  EXPECT_EQ(sized("40g", "10737418240").value(), profile) << "a task may write bytes";
  EXPECT_EQ(sized("40960m", "10240MiB").value(), profile);
  EXPECT_FALSE(sized("4", "1").value().is_counted("gpu-memory")) << "digits alone are a count";
  EXPECT_EQ(to_string(resource_profile_builder{}.require(task_resource_requests{}.resource("v", "10g")).build()),
            "task: v 10g");
}

TEST(counted_size, of_built_in_names_is_their_own) {
  const auto requests = executor_resource_requests{}.resource("memory", "2g").resource("cores", "3");
  EXPECT_EQ(requests.requests().at("memory"), (executor_request{2 * gib, "", "", false}));
  EXPECT_EQ(requests.requests().at("cores").amount, 3);
  EXPECT_THAT(
      fault_of(resource_profile_builder{}.require(executor_resource_requests{}.resource("cores", "3g")).try_build()),
      HasSubstr("executor resource cores: 3g is marked as a counted size, which only custom resources are"));
  EXPECT_THAT(fault_of(resource_profile_builder{}.require(task_resource_requests{}.resource("cpus", "1g")).try_build()),
              HasSubstr("task resource cpus: \"1g\" is not an amount"));
}

TEST(counted_size, of_an_executors_memory_has_a_unit_where_it_is_small) {
  const auto fault = [](std::string_view memory) {
    return fault_of(resource_profile_builder{}.require(executor_resource_requests{}.memory(memory)).try_build());
  };
  EXPECT_THAT(fault("8"),
              HasSubstr("executor resource memory: 8 MiB, which is too little for any executor: write 8g for "
                        "GiB, or 8m if that is meant"));
  EXPECT_THAT(fault("4000000000"), HasSubstr("4000000000 MiB, which is more than any machine has: write 4000000000b"));
  for (const auto* good : {"8m", "64", "8g", "4000000000b"}) EXPECT_EQ(fault(good), "") << good;
}

TEST(counted_size, texts_that_are_neither_are_refused) {
  EXPECT_THAT(fault_of(sized("0.5", "1")), HasSubstr("\"0.5\" is a fraction: only tasks support fractional resources"));
  EXPECT_THAT(fault_of(sized("1/2", "1")), HasSubstr("only tasks support fractional resources"));
  EXPECT_THAT(fault_of(sized("0.5g", "1")), HasSubstr("fractional values are not supported"));
  EXPECT_THAT(fault_of(sized("40x", "1")), HasSubstr("\"40x\" is not a memory size"));
  EXPECT_THAT(fault_of(sized("40x", "1")), Not(HasSubstr("no suffix"))) << "without one it would be a count";
  EXPECT_THAT(fault_of(sized("8192p", "1")), HasSubstr("above 2^63 - 1 bytes"));
  EXPECT_THAT(fault_of(sized("", "1")), HasSubstr("\"\" is not a whole number"));
  EXPECT_THAT(fault_of(sized("40g", "1.5g")), HasSubstr("fractional values are not supported"));
  EXPECT_THAT(fault_of(sized("0g", "1")), HasSubstr("gpu-memory: amount 0 must be more than zero"));
  EXPECT_THAT(fault_of(sized("40g", "0g")), HasSubstr("gpu-memory: amount 0 must be more than zero"));
}

TEST(counted_size, has_nothing_to_discover) {
  auto profile = sized("40g", "10g").value();
  profile.executor["gpu-memory"].discovery_script = "/opt/find";
  EXPECT_EQ(validate(profile).error().message,
            "executor resource gpu-memory 40g: a size is counted and has no addresses, so nothing is discovered; leave "
            "out the discovery script, or write how many there are, without a unit");
  profile.executor["gpu-memory"].discovery_script.clear();
  profile.executor["gpu-memory"].vendor = "acme";
  EXPECT_THAT(validate(profile).error().message, HasSubstr("leave out the vendor"));
}

TEST(counted_size, is_taken_in_whole_bytes) {
  EXPECT_EQ(fault_of(sized("40g", "0.5")),
            "task resource gpu-memory: amount 0.5 is a fraction, but executors have gpu-memory 40g, a size that is "
            "counted and has no addresses to share; write a size such as 10g");
  EXPECT_EQ(fault_of(sized("40g", "50g")), "The executor resource: gpu-memory, amount: 40g needs to be >= what one "
                                           "task takes of it: 50g; give the executor more "
                                           "of it, or the task less");
  EXPECT_EQ(fault_of(sized("4", "10g")), "The executor resource: gpu-memory, amount: 4 needs to be >= what one task "
                                         "takes of it: 10737418240.0; if that is a "
                                         "size, write the executor's amount as one too, such as 40g");
  EXPECT_EQ(sized("4", "2b").value().task_amount("gpu-memory"), share::whole(2)) << "two bytes are two";
}

TEST(counted_size, goes_up_to_the_largest_number_and_counts_do_not) {
  const auto profile = sized("9223372036854775807b", "9223372036854775807b");
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(slots_of(*profile).slots, 1);
  EXPECT_THAT(fault_of(sized("9000001", "1")),
              HasSubstr("amount 9000001 is above 9000000, the largest count; write a size with its unit"));
  ledger l{capacity_with(8, {{"gpu-memory", {largest, {}, true}}})};
  const auto all_but_one = profile_of({}, {{"gpu-memory", "9223372036854775806"}});
  ASSERT_TRUE(l.acquire(l.choose(all_but_one).value()));
  EXPECT_EQ(l.free_of("gpu-memory", ""), share::whole(1));
  EXPECT_EQ(l.free_slots(profile_of({}, {{"gpu-memory", "1"}})), 1);
  EXPECT_FALSE(l.choose(profile_of({}, {{"gpu-memory", "2"}})));
}

TEST(counted_size, has_slots_and_idle_amounts) {
  const auto profile = sized("40g", "16g").value();
  EXPECT_EQ(slots_of(profile), (slot_count{2, "gpu-memory"}));
  EXPECT_EQ(slots_of(capacity_of(profile), profile), (slot_count{2, "gpu-memory"}));
  const auto idle = idle_amounts_of(profile);
  ASSERT_EQ(idle.size(), 2u);
  EXPECT_EQ(to_string(idle[0]), "6 of 8 cores stay idle");
  EXPECT_EQ(to_string(idle[1]), "8g of 40g gpu-memory stay idle");
  auto without_taker = profile;
  without_taker.task.erase("gpu-memory");
  EXPECT_THAT(suspicions_about(without_taker), ElementsAre(HasSubstr("gpu-memory 40g is taken by no task")));
}

TEST(counted_size, is_owned_as_such) {
  const auto profile = sized("40g", "10g").value();
  const auto own = capacity_of(profile);
  EXPECT_EQ(own.custom.at("gpu-memory"), (resource_pool{40 * gib, {}, true}));
  EXPECT_TRUE(validate(own));
  auto with_address = own;
  with_address.custom["gpu-memory"] = {1, {"0"}, true};
  EXPECT_THAT(validate(with_address).error().message,
              HasSubstr("gpu-memory 1b is a size, which is counted and has no"));
  with_address.custom["gpu-memory"] = {-1, {}, true};
  EXPECT_THAT(validate(with_address).error().message, HasSubstr("between 0 and 9223372036854775807"));
  with_address.custom["gpu-memory"] = {40 * gib, {}, false};
  EXPECT_THAT(validate(with_address).error().message, HasSubstr("between 0 and 9000000"));
}

TEST(counted_size, satisfies_clauses_that_are_sizes_alone) {
  const auto profile = sized("40g", "10g").value();
  const auto missing = [&](std::map<std::string, resource_pool> custom) {
    std::string text;
    for (const auto& s : shortfalls(capacity_with(8, std::move(custom)), profile)) text += to_string(s);
    return text;
  };
  EXPECT_EQ(missing({{"gpu-memory", {40 * gib, {}, true}}}), "");
  EXPECT_EQ(missing({{"gpu-memory", {8 * gib, {}, true}}}), "needs gpu-memory 40g, has 8g");
  EXPECT_EQ(missing({}), "needs gpu-memory 40g, has 0");
  EXPECT_EQ(missing({{"gpu-memory", numbered(2)}}), "needs gpu-memory 40g, has 2 as a number");
  const auto count = profile_of({{"gpu", 4}}, {});
  EXPECT_THAT(shortfalls(capacity_with(8, {{"gpu", {gib, {}, true}}}), count),
              ElementsAre(shortfall{"gpu", "4", "1g as a size"}));
  EXPECT_THAT(shortfalls(capacity_with(8, {{"gpu-memory", {8 * gib, {}, true}}}),
                         profile_of({}, {{"gpu-memory", "10737418240"}})),
              ElementsAre(shortfall{"gpu-memory", "10g", "8g"}));
}

TEST(counted_size, is_carved_out_of_hosts) {
  const auto want = [](std::string_view size) { return sized(size, "1b").value(); };
  carving c{{{"a", {}, 64, 64 * gib, {{"gpu-memory", {80 * gib, {}, true}}}}}, "cluster.hosts"};
  EXPECT_EQ(c.room_for(want("40g")), 2u);
  EXPECT_EQ(c.room_for(want("41g")), 1u);
  const auto placed = c.place(request_id{1}, want("60g")).value();
  EXPECT_EQ(placed.capacity.custom.at("gpu-memory"), (resource_pool{60 * gib, {}, true}));
  EXPECT_EQ(c.room_for(want("21g")), 0u);
  EXPECT_EQ(c.lack_for(want("30g"), 1),
            "needs gpu-memory 30g, the host has 80g, of which others take 60g (missing: gpu-memory 10g)");
  EXPECT_TRUE(c.free(request_id{1}));
  EXPECT_EQ(c.room_for(want("80g")), 1u);
  EXPECT_EQ(c.check(want("81g")).sentence, "no host has gpu-memory 81g: the largest of 1 host has 80g (cluster.hosts)");
}

TEST(counted_size, is_not_carved_out_of_a_number_nor_the_other_way_round) {
  carving c{{{"a", {}, 64, 64 * gib, {{"gpu", numbered(2)}, {"gpu-memory", {80 * gib, {}, true}}}}}, "cluster.hosts"};
  auto size = profile_of({{"cores", 1}, {"memory", gib}, {"gpu", 1}}, {});
  size.executor["gpu"].counted = true;
  EXPECT_EQ(c.room_for(size), 0u);
  EXPECT_EQ(c.check(size).sentence, "no host has gpu 1b: the largest of 1 host has 0; they have a number of it, not a "
                                    "size (cluster.hosts)");
  const auto number = profile_of({{"cores", 1}, {"memory", gib}, {"gpu-memory", 1}}, {});
  EXPECT_EQ(c.room_for(number), 0u);
  EXPECT_THAT(c.check(number).sentence, HasSubstr("they have a size of it, not a number"));
}

TEST(counted_size, does_not_outweigh_addresses_when_a_host_is_chosen) {
  carving c{{{"gpus", {}, 8, 8 * gib, {{"gpu", numbered(2)}}},
             {"large", {}, 8, 8 * gib, {{"a", {largest, {}, true}}}},
             {"larger", {}, 8, 8 * gib, {{"a", {largest, {}, true}}, {"b", {largest, {}, true}}}}},
            ""};
  const auto plain = profile_of({{"cores", 8}, {"memory", gib}}, {});
  EXPECT_EQ(c.place(request_id{1}, plain)->host, 1u);
  EXPECT_EQ(c.place(request_id{2}, plain)->host, 0u) << "a tie: two things each, and this one comes first";
}

TEST(counted_size, cannot_be_merged_with_a_number) {
  const auto size = sized("40g", "10g").value();
  const auto number = sized("4", "1").value();
  EXPECT_TRUE(check_merge(size, size));
  EXPECT_TRUE(check_merge(size, profile_of({{"cores", 1}}, {})));
  EXPECT_EQ(check_merge(size, number).error().message,
            "executor resource gpu-memory: one of the two has gpu-memory 40g, the other gpu-memory 4: a size and a "
            "number cannot be compared");
  EXPECT_EQ(merge(size, sized("80g", "1g").value()).executor.at("gpu-memory"),
            (executor_request{80 * gib, "", "", true}));
  profile_registry registry{profile_of({{"cores", 1}, {"memory", gib}}, {{"cpus", "1"}})};
  const auto a = registry.register_profile(size).value().profile;
  const auto b = registry.register_profile(number).value().profile;
  EXPECT_THAT(registry.profile_of_stage({use(a, "x"), use(b, "y")}, profile_change::merge).error().message,
              HasSubstr("merging profiles 1, 2: executor resource gpu-memory"));
  EXPECT_THAT(registry.profiles(), testing::SizeIs(3));
}

} // namespace
} // namespace troupe::counted_size_tests
