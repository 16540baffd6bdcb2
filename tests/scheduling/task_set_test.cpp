#include <array>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/dag/stage_run.hpp>
#include <troupe/runtime/scheduling/task_set.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(task_set, fresh_tasks_come_as_ranges) {
  task_set tasks{10};
  task_batch batch;
  EXPECT_EQ(tasks.take(0, 4, 7, batch), 4u);
  EXPECT_EQ(batch.first, 0u);
  EXPECT_EQ(batch.count, 4u);
  EXPECT_THAT(batch.partitions, IsEmpty());
  EXPECT_EQ(tasks.take(0, 100, 7, batch), 6u);
  EXPECT_EQ(batch.first, 4u);
  EXPECT_EQ(tasks.take(0, 1, 7, batch), 0u);
  EXPECT_EQ(tasks.running(), 10u);
  EXPECT_EQ(tasks.executor_of(3), 7u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, tasks_that_were_tried_come_first_with_their_attempt_numbers) {
  task_set tasks{5};
  task_batch batch;
  tasks.take(0, 3, 1, batch);
  EXPECT_EQ(tasks.requeue(1, tasks.attempt_of(1), true), 1u);
  EXPECT_EQ(tasks.requeue(0, tasks.attempt_of(0), false), 0u);
  EXPECT_EQ(tasks.pending(), 4u);
  EXPECT_EQ(tasks.take(0, 10, 2, batch), 2u);
  EXPECT_THAT(batch.partitions, ElementsAre(1, 0));
  EXPECT_THAT(batch.attempts, ElementsAre(1, 1));
  EXPECT_EQ(tasks.take(0, 10, 2, batch), 2u);
  EXPECT_THAT(batch.partitions, IsEmpty());
  EXPECT_THAT(batch.attempts, IsEmpty());
  EXPECT_EQ(batch.first, 3u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, an_accepted_task_is_not_done_before_it_is_published) {
  task_set tasks{2};
  task_batch batch;
  tasks.take(0, 2, 3, batch);
  EXPECT_EQ(tasks.accept(0, 0), std::nullopt);
  EXPECT_EQ(tasks.status_of(0), task_set::status::publishing);
  EXPECT_EQ(tasks.done(), 0u);
  EXPECT_EQ(tasks.running(), 2u);
  EXPECT_EQ(tasks.publishing(), 1u);
  EXPECT_FALSE(tasks.is_current(0, 0, 3)) << "another outcome of it is late";
  EXPECT_EQ(tasks.fault(), std::nullopt);
  tasks.published(0);
  EXPECT_EQ(tasks.done(), 1u);
  EXPECT_EQ(tasks.running(), 1u);
  EXPECT_EQ(tasks.publishing(), 0u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, an_accepted_task_that_cannot_be_published_waits_again) {
  task_set tasks{1};
  task_batch batch;
  tasks.take(0, 1, 3, batch);
  tasks.accept(0, 0);
  EXPECT_EQ(tasks.requeue(0, 0, true), 1u);
  EXPECT_EQ(tasks.status_of(0), task_set::status::pending);
  EXPECT_EQ(tasks.attempt_of(0), 1u);
  EXPECT_EQ(tasks.publishing(), 0u);
  EXPECT_EQ(tasks.running(), 0u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, the_attempt_that_is_accepted_ends_the_other_one) {
  task_set tasks{1};
  task_batch batch;
  tasks.take(0, 1, 3, batch);
  tasks.want_copy(0);
  tasks.start_copy(0, 4, batch);
  EXPECT_EQ(tasks.accept(0, 1), (task_set::place{3, 0}));
  EXPECT_EQ(tasks.executor_of(0), 4u);
  EXPECT_EQ(tasks.attempt_of(0), 1u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
  EXPECT_EQ(tasks.requeue(0, 1, false), 0u);
  EXPECT_EQ(tasks.attempt_of(0), 2u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, only_the_attempt_that_runs_there_is_current) {
  task_set tasks{2};
  task_batch batch;
  EXPECT_FALSE(tasks.is_current(0, 0, 1));
  tasks.take(0, 1, 1, batch);
  EXPECT_TRUE(tasks.is_current(0, 0, 1));
  EXPECT_FALSE(tasks.is_current(0, 0, 2));
  EXPECT_FALSE(tasks.is_current(0, 1, 1));
  EXPECT_FALSE(tasks.is_current(1, 0, 1));
  EXPECT_FALSE(tasks.is_current(99, 0, 1));
  tasks.requeue(0, tasks.attempt_of(0), false);
  EXPECT_FALSE(tasks.is_current(0, 0, 1));
  EXPECT_FALSE(tasks.is_current(0, 1, 1)) << "it waits";
}

TEST(task_set, lost_output_is_made_again_under_the_next_attempt) {
  task_set tasks{1};
  task_batch batch;
  tasks.take(0, 1, 1, batch);
  tasks.succeed(0, tasks.attempt_of(0));
  EXPECT_TRUE(tasks.complete());
  tasks.invalidate(0);
  EXPECT_FALSE(tasks.complete());
  tasks.take(0, 1, 2, batch);
  EXPECT_THAT(batch.attempts, ElementsAre(1));
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, gated_tasks_wait_only_while_they_are_admitted) {
  task_set tasks{3};
  tasks.gate();
  task_batch batch;
  EXPECT_EQ(tasks.pending(), 0u);
  EXPECT_EQ(tasks.take(0, 3, 1, batch), 0u);
  tasks.admit(2);
  tasks.admit(0);
  tasks.admit(0);
  EXPECT_EQ(tasks.pending(), 2u);
  tasks.withhold(2);
  ASSERT_EQ(tasks.take(0, 3, 1, batch), 1u);
  EXPECT_EQ(batch.partition(0), 0u);
  tasks.withhold(0); // it runs all the same
  EXPECT_EQ(tasks.running(), 1u);
  tasks.requeue(0, 0, false);
  EXPECT_EQ(tasks.pending(), 0u) << "but it does not run again before it is admitted";
  EXPECT_EQ(tasks.fault(), std::nullopt);
  tasks.admit(0);
  ASSERT_EQ(tasks.take(0, 3, 1, batch), 1u);
  EXPECT_EQ(batch.attempt(0), 1u);
  tasks.succeed(0, 1);
  tasks.withhold(0);
  tasks.invalidate(0);
  EXPECT_EQ(tasks.pending(), 0u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, gated_tasks_with_locations_are_found_when_they_are_admitted) {
  task_set tasks{2};
  tasks.locate(std::make_unique<located_tasks>(std::vector<std::string_view>{"a"}, 2));
  tasks.gate();
  task_batch batch;
  EXPECT_FALSE(tasks.has_near({}, "a", locality_level::any));
  tasks.admit(1);
  EXPECT_TRUE(tasks.has_near({}, "a", locality_level::host));
  ASSERT_EQ(tasks.take_near({}, "a", locality_level::host, 2, 1, batch), 1u);
  EXPECT_EQ(batch.partition(0), 1u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, failures_are_counted_up_to_a_limit_and_attempts_beyond_it) {
  task_set tasks{1};
  task_batch batch;
  for (std::uint32_t i = 1; i <= task_set::max_failures + 10; ++i) {
    tasks.take(0, 1, 1, batch);
    ASSERT_EQ(tasks.requeue(0, tasks.attempt_of(0), true), std::min(i, task_set::max_failures));
    ASSERT_EQ(tasks.attempt_of(0), i);
  }
}

TEST(task_set, queue_of_retries_does_not_grow_with_their_number) {
  task_set tasks{100};
  task_batch batch;
  tasks.take(0, 100, 1, batch);
  for (partition_index p = 0; p < 100; ++p) tasks.requeue(p, tasks.attempt_of(p), false);
  for (int round = 0; round < 1000; ++round) {
    ASSERT_EQ(tasks.take(0, 10, 1, batch), 10u);
    const auto taken = batch.partitions;
    for (const auto p : taken) tasks.requeue(p, tasks.attempt_of(p), false);
    ASSERT_EQ(tasks.pending(), 100u);
  }
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, tasks_wait_in_their_lane) {
  task_set tasks{4};
  task_batch batch;
  tasks.take(0, 3, 1, batch);
  tasks.move_to(2, 1); // while it runs
  tasks.requeue(0, tasks.attempt_of(0), false);
  tasks.requeue(1, tasks.attempt_of(1), false);
  tasks.requeue(2, tasks.attempt_of(2), false);
  EXPECT_EQ(tasks.pending(), 4u);
  EXPECT_EQ(tasks.pending(0), 3u) << "two that wait again and a fresh one";
  EXPECT_EQ(tasks.pending(2), 1u);
  EXPECT_EQ(tasks.pending(1), 0u);
  tasks.move_to(2, 0); // while it waits
  EXPECT_EQ(tasks.fault(), std::nullopt);
  EXPECT_EQ(tasks.take(1, 9, 1, batch), 0u);
  ASSERT_EQ(tasks.take(2, 9, 1, batch), 2u);
  EXPECT_THAT(batch.partitions, ElementsAre(1, 0)) << "first in, first out";
  EXPECT_THAT(batch.attempts, ElementsAre(1, 1));
  EXPECT_EQ(tasks.fault(), std::nullopt);
  tasks.requeue(1, tasks.attempt_of(1), false);
  EXPECT_EQ(tasks.pending(2), 1u) << "it keeps its lane";
  tasks.move_to(0, 1);
  EXPECT_EQ(tasks.pending(0), 3u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, a_pending_task_costs_less_than_a_hundred_bytes) {
  // A record in the task set; the place, and the place of the value, in the stage.
  EXPECT_LE(task_set::bytes_per_task + stage_run::bytes_per_task, 100u);
}

TEST(task_set, some_tasks_may_be_done_before_the_first_begins) {
  task_set tasks{4};
  tasks.adopt(std::array<partition_index, 1>{1}, 5);
  tasks.adopt(std::array<partition_index, 1>{3}, 6);
  EXPECT_EQ(tasks.fault(), std::nullopt);
  EXPECT_EQ(tasks.done(), 2u);
  EXPECT_EQ(tasks.pending(), 2u);
  EXPECT_EQ(tasks.executor_of(3), 6u);
  task_batch batch;
  EXPECT_EQ(tasks.take(0, 9, 7, batch), 2u);
  EXPECT_EQ(batch.partitions, (std::vector<partition_index>{0, 2}));
  tasks.invalidate(1);
  EXPECT_EQ(tasks.attempt_of(1), 1u) << "a number that nobody had";
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, many_tasks_may_be_done_before_the_first_begins) {
  constexpr std::uint32_t count = 1'000'000; // which takes hours where each looks at those behind it
  task_set tasks{count};
  std::vector<partition_index> even;
  std::vector<partition_index> odd;
  for (partition_index p = 0; p < count; p += 2) {
    even.push_back(p);
    odd.push_back(p + 1);
  }
  tasks.adopt(even, 5);
  EXPECT_EQ(tasks.pending(), count / 2);
  tasks.adopt(odd, 5);
  EXPECT_EQ(tasks.pending(), 0u);
  EXPECT_TRUE(tasks.complete());
  EXPECT_EQ(tasks.fault(), std::nullopt);
}

TEST(task_set, gated_tasks_may_be_done_before_they_are_admitted) {
  task_set tasks{3};
  tasks.gate();
  tasks.adopt(std::array<partition_index, 1>{0}, 5);
  tasks.admit(0);
  tasks.admit(1);
  tasks.adopt(std::array<partition_index, 1>{1}, 5);
  EXPECT_EQ(tasks.fault(), std::nullopt);
  EXPECT_EQ(tasks.pending(), 0u);
  tasks.admit(2);
  EXPECT_EQ(tasks.pending(), 1u);
}

} // namespace
} // namespace troupe
