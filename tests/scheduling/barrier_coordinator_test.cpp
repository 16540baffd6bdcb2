#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/barrier_coordinator.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr time_point begin{};

barrier_arrival arrival(partition_index p, std::uint32_t round = 0, sync_kind kind = sync_kind::barrier,
                        std::string text = {}) {
  return {{1}, 0, p, 0, round, kind, std::move(text)};
}

TEST(barrier_coordinator, lets_go_when_all_have_come_and_opens_the_next_round) {
  barrier_coordinator c{3};
  for (std::uint32_t round = 0; round < 2; ++round) {
    EXPECT_FALSE(c.waiting_since());
    EXPECT_FALSE(c.on_arrival(arrival(2, round), begin + 1s));
    EXPECT_EQ(c.waiting_since(), begin + 1s) << "the clock runs from the first";
    EXPECT_FALSE(c.on_arrival(arrival(0, round), begin + 2s));
    EXPECT_FALSE(c.on_arrival(arrival(0, round), begin + 2s)) << "one that waits already";
    EXPECT_EQ(c.waiting_since(), begin + 1s);
    const auto all = c.on_arrival(arrival(1, round), begin + 3s);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->round, round);
    EXPECT_THAT(all->partitions, ElementsAre(0, 1, 2));
    EXPECT_EQ(all->failure, "");
    EXPECT_EQ(all->texts, nullptr);
  }
}

TEST(barrier_coordinator, hands_texts_out_in_the_order_of_partitions) {
  barrier_coordinator c{3};
  EXPECT_FALSE(c.on_arrival(arrival(2, 0, sync_kind::all_gather, "two"), begin));
  EXPECT_FALSE(c.on_arrival(arrival(0, 0, sync_kind::all_gather, ""), begin));
  const auto first = c.on_arrival(arrival(1, 0, sync_kind::all_gather, "one"), begin);
  ASSERT_TRUE(first && first->texts);
  for (const auto p : {0u, 1u, 2u}) c.on_arrival(arrival(p, 1, sync_kind::all_gather, "later"), begin);
  ASSERT_EQ(first->texts->size(), 3u);
  EXPECT_EQ((*first->texts)[0], "");
  EXPECT_EQ((*first->texts)[1], "one") << "what was handed out stays as it is";
  EXPECT_EQ((*first->texts)[2], "two");
}

TEST(barrier_coordinator, tasks_that_wait_in_different_ways_fail_for_good) {
  barrier_coordinator c{3};
  EXPECT_FALSE(c.on_arrival(arrival(0), begin));
  const auto both = c.on_arrival(arrival(1, 0, sync_kind::all_gather, "x"), begin);
  ASSERT_TRUE(both);
  EXPECT_THAT(both->partitions, ElementsAre(0, 1));
  EXPECT_THAT(both->failure, HasSubstr("Different barrier sync types found"));
  EXPECT_FALSE(c.waiting_since());
  const auto late = c.on_arrival(arrival(2), begin);
  ASSERT_TRUE(late);
  EXPECT_THAT(late->partitions, ElementsAre(2));
  EXPECT_EQ(late->failure, both->failure);
}

TEST(barrier_coordinator, a_round_that_is_over_is_late_for_one_alone) {
  barrier_coordinator c{2};
  c.on_arrival(arrival(0), begin);
  c.on_arrival(arrival(1), begin);
  const auto late = c.on_arrival(arrival(1, 0), begin);
  ASSERT_TRUE(late);
  EXPECT_THAT(late->partitions, ElementsAre(1));
  EXPECT_THAT(late->failure, HasSubstr("round 0 has already finished"));
  EXPECT_FALSE(c.on_arrival(arrival(0, 1), begin));
  EXPECT_EQ(c.on_arrival(arrival(1, 1), begin)->failure, "");
}

TEST(barrier_coordinator, a_task_that_is_ahead_of_the_others_fails_them) {
  barrier_coordinator c{2};
  const auto ahead = c.on_arrival(arrival(0, 1), begin);
  ASSERT_TRUE(ahead);
  EXPECT_THAT(ahead->failure, HasSubstr("waits in round 1, the others are in round 0"));
}

TEST(barrier_coordinator, nobody_waits_for_a_task_that_has_ended) {
  barrier_coordinator early{3};
  EXPECT_FALSE(early.on_ended(1)) << "nobody waits yet";
  const auto next = early.on_arrival(arrival(0), begin);
  ASSERT_TRUE(next);
  EXPECT_THAT(next->failure, HasSubstr("the task of partition 1 has ended"));
  barrier_coordinator late{3};
  late.on_arrival(arrival(0), begin);
  late.on_arrival(arrival(2), begin);
  const auto both = late.on_ended(1);
  ASSERT_TRUE(both);
  EXPECT_THAT(both->partitions, ElementsAre(0, 2));
}

TEST(barrier_coordinator, a_round_that_takes_too_long_says_who_is_missing) {
  barrier_coordinator c{4};
  c.on_arrival(arrival(2), begin);
  const auto late = c.on_timeout(30s);
  EXPECT_THAT(late.partitions, ElementsAre(2));
  EXPECT_THAT(late.failure, HasSubstr("The coordinator didn't get all barrier sync requests of round 0 within 30000ms "
                                      "(troupe.barrier.sync-timeout): 1 of 4 tasks wait, partition 0, 1, 3 do not"));
  EXPECT_FALSE(c.waiting_since());
}

TEST(barrier_coordinator, texts_have_to_fit_into_one_message) {
  const auto needed = static_cast<std::uint32_t>(max_gather_size / max_gather_text + 1);
  barrier_coordinator c{needed};
  for (std::uint32_t p = 0; p + 1 < needed; ++p)
    EXPECT_FALSE(c.on_arrival(arrival(p, 0, sync_kind::all_gather, std::string(max_gather_text, 'x')), begin));
  const auto full = c.on_arrival(arrival(needed - 1, 0, sync_kind::all_gather, "y"), begin);
  ASSERT_TRUE(full);
  EXPECT_THAT(full->failure, HasSubstr("larger than 16777216 bytes together"));
}

} // namespace
} // namespace troupe
