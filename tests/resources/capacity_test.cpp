#include <troupe/runtime/resources/capacity.hpp>

#include <limits>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include "profiles.hpp"

namespace troupe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(capacity, of_a_profile_has_its_amounts_and_no_addresses) {
  const auto c = capacity_of(profile_of(
      {{"cores", 2}, {"memory", 10}, {"memoryOverhead", 20}, {"offHeap", 30}, {"pyspark.memory", 40}, {"gpu", 4}}, {}));
  EXPECT_EQ(c, (executor_capacity{2, 10, 20, 30, 40, {{"gpu", {4, {}}}}}));
  EXPECT_EQ(c.amount_of("cores"), 2);
  EXPECT_EQ(c.amount_of("memory"), 10);
  EXPECT_EQ(c.amount_of("memoryOverhead"), 20);
  EXPECT_EQ(c.amount_of("offHeap"), 30);
  EXPECT_EQ(c.amount_of("pyspark.memory"), 40);
  EXPECT_EQ(c.amount_of("gpu"), 4);
  EXPECT_EQ(c.amount_of("fpga"), 0);
}

TEST(capacity, names_every_clause_that_fails) {
  const auto profile =
      profile_of({{"cores", 4}, {"memory", std::int64_t{2} << 30}, {"gpu", 1}}, {{"cpus", "1"}, {"gpu", "1"}});
  const auto missing = shortfalls(capacity_with(2), profile);
  EXPECT_THAT(missing,
              ElementsAre(shortfall{"cores", "4", "2"}, shortfall{"gpu", "1", "0"}, shortfall{"memory", "2g", "1g"}));
  EXPECT_EQ(to_string(missing[1]), "needs gpu 1, has 0");
  EXPECT_FALSE(satisfies(capacity_with(2), profile));
  EXPECT_TRUE(satisfies({4, std::int64_t{2} << 30, 0, 0, 0, {{"gpu", numbered(1)}}}, profile));
  EXPECT_TRUE(satisfies({5, std::int64_t{3} << 30, 0, 0, 0, {{"gpu", numbered(2)}, {"fpga", numbered(1)}}}, profile))
      << "a richer executor serves a poorer profile";
}

TEST(capacity, checks_the_task_where_the_executor_half_says_nothing) {
  EXPECT_THAT(shortfalls(capacity_with(1), profile_of({}, {{"cpus", "1.5"}, {"gpu", "0.5"}})),
              ElementsAre(shortfall{"cpus", "1.5", "1"}, shortfall{"gpu", "0.5", "0"}));
  EXPECT_TRUE(satisfies(capacity_with(1), profile_of({}, {{"cpus", "0.5"}})));
}

TEST(capacity, from_outside_is_checked) {
  EXPECT_TRUE(validate(capacity_with(4, {{"gpu", numbered(2)}, {"license", {7, {}}}})));
  const auto fault = [](const executor_capacity& c) {
    const auto ok = validate(c);
    return ok ? std::string{} : ok.error().message;
  };
  EXPECT_THAT(fault(capacity_with(-1)), HasSubstr("cores -1"));
  EXPECT_THAT(fault(capacity_with(largest_count + 1)), HasSubstr("cores 9000001"));
  EXPECT_THAT(fault({1, -1, 0, 0, 0, {}}), HasSubstr("memory"));
  EXPECT_THAT(fault({1, std::numeric_limits<std::int64_t>::max(), 1, 0, 0, {}}), HasSubstr("memory"));
  EXPECT_THAT(fault({1, std::numeric_limits<std::int64_t>::max(), 0, 0, 1, {}}), HasSubstr("memory"));
  EXPECT_THAT(fault(capacity_with(1, {{"gpu", {-1, {}}}})), HasSubstr("gpu -1"));
  EXPECT_THAT(fault(capacity_with(1, {{"gpu", {3, {"0", "1"}}}})), HasSubstr("gpu 3 comes with 2 addresses"));
  EXPECT_THAT(fault(capacity_with(1, {{"gpu", {2, {"0", "0"}}}})), HasSubstr("is there twice"));
  EXPECT_THAT(fault(capacity_with(1, {{"gpu", {1, {""}}}})), HasSubstr("gpu address"));
  EXPECT_THAT(fault(capacity_with(1, {{"gpu", {1, {"0,1"}}}})), HasSubstr("no comma"));
  EXPECT_THAT(fault(capacity_with(1, {{"cores", {1, {"0"}}}})), HasSubstr("built-in"));
  EXPECT_THAT(fault(capacity_with(1, {{"cpus", {1, {"0"}}}})), HasSubstr("built-in"));
}

struct slots_case {
  std::int64_t cores;
  std::vector<std::pair<std::string, std::int64_t>> custom;
  std::vector<std::pair<std::string, std::string>> task;
  slot_count expected;
};

// The worked examples of spec 3.2 and TS-16.
TEST(slots, follow_the_worked_examples) {
  const std::vector<slots_case> cases{
      {4, {{"gpu", 2}}, {{"cpus", "1"}, {"gpu", "1"}}, {2, "gpu"}},
      {8, {{"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.25"}}, {4, "gpu"}},
      {4, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "1"}}, {4, "cpus"}},
      {1, {{"gpu", 2}}, {{"cpus", "1"}, {"gpu", "1"}}, {1, "cpus"}},
      {16, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "0.3"}}, {12, "gpu"}},
      {10, {{"fpga", 3}, {"gpu", 2}}, {{"cpus", "1"}, {"fpga", "2"}, {"gpu", "0.5"}}, {1, "fpga"}},
      {70, {{"gpu", 7}}, {{"cpus", "2"}, {"gpu", "0.5"}}, {14, "gpu"}},
      {80, {{"gpu", 9}}, {{"cpus", "3"}, {"gpu", "2"}}, {4, "gpu"}},
      {10, {{"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.1"}}, {10, "cpus"}},
      {20, {{"gpu", 2}}, {{"cpus", "2"}, {"gpu", "0.2"}}, {10, "cpus"}},
      {1, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "3"}}, {1, "cpus"}},
      {2, {{"gpu", 2}}, {{"cpus", "1"}, {"gpu", "2"}}, {1, "gpu"}},
      {10, {{"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.6"}}, {1, "gpu"}},
      {20, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "0.2"}}, {20, "cpus"}},
      {20, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "0.4"}}, {8, "gpu"}},
      {20, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "0.5"}}, {8, "gpu"}},
      {20, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "0.8"}}, {4, "gpu"}},
      {20, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "3"}}, {1, "gpu"}},
      {20, {{"gpu", 4}}, {{"cpus", "1"}, {"gpu", "4"}}, {1, "gpu"}},
      {3, {}, {{"cpus", "2"}}, {1, "cpus"}},
      {3, {}, {{"cpus", "0.3"}}, {10, "cpus"}},
      {200, {{"gpu", 1}}, {{"cpus", "1"}, {"gpu", "1/93"}}, {93, "gpu"}},
      {9, {{"fpga", 2}, {"gpu", 2}}, {{"cpus", "1"}, {"fpga", "1"}, {"gpu", "1"}}, {2, "fpga"}},
  };
  for (const auto& c : cases) {
    auto profile = profile_of(c.custom, c.task);
    profile.executor["cores"].amount = c.cores;
    auto capacity = capacity_with(c.cores);
    for (const auto& [name, amount] : c.custom) capacity.custom[name] = numbered(amount);
    EXPECT_EQ(slots_of(capacity, profile), c.expected) << to_string(profile);
    EXPECT_EQ(slots_of(profile), c.expected) << to_string(profile);
  }
}

TEST(slots, are_none_without_the_resource_or_the_cores) {
  EXPECT_EQ(slots_of(capacity_with(4), profile_of({}, {{"cpus", "1"}, {"gpu", "1"}})), (slot_count{0, "gpu"}));
  EXPECT_EQ(slots_of(capacity_with(1), profile_of({}, {{"cpus", "2"}})), (slot_count{0, "cpus"}));
  EXPECT_EQ(slots_of(capacity_with(4), resource_profile{}), (slot_count{0, ""}));
}

TEST(slots, of_a_counted_resource_have_no_address_borders) {
  const auto profile = profile_of({}, {{"cpus", "1"}, {"license", "0.4"}});
  EXPECT_EQ(slots_of(capacity_with(100, {{"license", {4, {}}}}), profile), (slot_count{10, "license"}));
  EXPECT_EQ(slots_of(capacity_with(100, {{"license", numbered(4)}}), profile), (slot_count{8, "license"}));
}

TEST(slots, of_the_largest_amounts_do_not_overflow) {
  const auto profile = profile_of({}, {{"cpus", "0.000000000001"}, {"gpu", "0.000000000001"}});
  EXPECT_EQ(slots_of(capacity_with(largest_count, {{"gpu", {largest_count, {}}}}), profile).slots,
            largest_count * share::units_per_whole);
}

} // namespace
} // namespace troupe
