#include <troupe/runtime/scheduling/job_pools.hpp>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;

/// Who gets so many slots one after the other, by the first letter of the pool.
std::string order_of(job_pools& pools, const std::vector<std::string>& names, int slots) {
  std::string order;
  for (int i = 0; i < slots; ++i) {
    auto best = pools.find(names.front());
    for (const auto& name : names)
      if (pools.comes_before(pools.find(name), best, std::nullopt)) best = pools.find(name);
    pools.take_slot(best);
    order += pools.name_of(best).front();
  }
  return order;
}

TEST(job_pools, of_equal_weight_take_turns) {
  job_pools pools{{sharing_mode::fair, {}}};
  EXPECT_EQ(order_of(pools, {"b", "a"}, 6), "ababab") << "the first by name on a tie";
}

TEST(job_pools, get_slots_by_weight) {
  job_pools pools{{sharing_mode::fair, {{"a", {sharing_mode::fifo, 1, 0}}, {"b", {sharing_mode::fifo, 3, 0}}}}};
  EXPECT_EQ(order_of(pools, {"a", "b"}, 8), "abbbabbb");
}

TEST(job_pools, get_their_minimum_first) {
  job_pools pools{{sharing_mode::fair, {{"b", {sharing_mode::fifo, 1, 3}}, {"c", {sharing_mode::fifo, 1, 1}}}}};
  // b and c lack their minima, by the part of it that each has; then all have an equal weight.
  EXPECT_EQ(order_of(pools, {"a", "b", "c"}, 9), "bcbbaacac");
}

TEST(job_pools, count_a_slot_as_free_that_is_being_given_away) {
  job_pools pools{{sharing_mode::fair, {}}};
  const auto a = pools.find("a");
  const auto b = pools.find("b");
  pools.take_slot(a);
  EXPECT_TRUE(pools.comes_before(b, a, std::nullopt));
  EXPECT_FALSE(pools.comes_before(b, a, a)) << "one for either: it stays where it is";
  pools.take_slot(a);
  EXPECT_TRUE(pools.comes_before(b, a, a));
  pools.give_back_slot(a);
  EXPECT_EQ(pools.slots_of(a), 1u);
}

TEST(job_pools, without_a_name_are_the_default_one) {
  job_pools pools{{sharing_mode::fair, {{"default", {sharing_mode::fair, 2, 0}}}}};
  EXPECT_EQ(pools.find(""), pools.find("default"));
  EXPECT_TRUE(pools.is_fair_inside(pools.find("")));
  EXPECT_FALSE(pools.is_fair_inside(pools.find("other")));
}

} // namespace
} // namespace troupe
