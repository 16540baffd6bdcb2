#include <gtest/gtest.h>

#include <troupe/runtime/execution/outcome_buffer.hpp>

namespace troupe {
namespace {

constexpr stage_id stage{3};
constexpr lease_id lease{5};

outcome_buffer opened() {
  outcome_buffer buffer{4};
  buffer.open(stage, 1, lease, time_point{});
  return buffer;
}

task_failure failure(std::string message) {
  task_failure f;
  f.message = std::move(message);
  return f;
}

TEST(outcome_buffer, stays_a_range_while_everything_is_regular) {
  auto buffer = opened();
  for (partition_index p = 10; p < 20; ++p) buffer.add_value(p, 0, "v");
  const auto batch = buffer.take();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->stage, stage);
  EXPECT_EQ(batch->stage_attempt, 1u);
  EXPECT_EQ(batch->lease, lease);
  EXPECT_EQ(batch->count, 10u);
  EXPECT_EQ(batch->first, 10u);
  EXPECT_TRUE(batch->partitions.empty());
  EXPECT_TRUE(batch->attempts.empty());
  EXPECT_TRUE(batch->statuses.empty());
  EXPECT_EQ(batch->results.size(), 10u);
  EXPECT_EQ(batch->results[9], std::string_view("\0v", 2));
  EXPECT_TRUE(buffer.empty());
  EXPECT_EQ(buffer.take(), nullptr);
}

TEST(outcome_buffer, writes_partitions_out_from_the_first_gap_on) {
  auto buffer = opened();
  for (const partition_index p : {4u, 5u, 7u, 6u}) buffer.add_value(p, 0, "");
  const auto batch = buffer.take();
  EXPECT_EQ(batch->partitions, (std::vector<partition_index>{4, 5, 7, 6}));
  EXPECT_TRUE(batch->attempts.empty());
}

TEST(outcome_buffer, says_which_task_has_counted_what) {
  auto buffer = opened();
  buffer.add_value(4, 0, "");
  buffer.add_counted({});
  buffer.add_value(5, 0, "");
  buffer.add_counted({{"bad", 2}, {"all", 7}});
  buffer.add_value(6, 0, "");
  buffer.add_counted({{"all", 1}, {"bad", -1}});
  const auto batch = buffer.take();
  EXPECT_EQ(batch->accumulators, (std::vector<std::string>{"bad", "all"}));
  EXPECT_EQ(batch->counted, (std::vector<counted_amount>{{1, 0, 2}, {1, 1, 7}, {2, 0, -1}, {2, 1, 1}}));
}

TEST(outcome_buffer, writes_attempts_out_from_the_first_repeat_on) {
  auto buffer = opened();
  buffer.add_value(0, 0, "");
  buffer.add_value(1, 2, "");
  buffer.add_value(2, 0, "");
  auto batch = buffer.take();
  EXPECT_TRUE(batch->partitions.empty());
  EXPECT_EQ(batch->attempts, (std::vector<attempt_number>{0, 2, 0}));

  buffer.open(stage, 1, lease, time_point{});
  buffer.add_value(0, 3, "");
  buffer.add_value(1, 0, "");
  batch = buffer.take();
  EXPECT_EQ(batch->attempts, (std::vector<attempt_number>{3, 0}));
}

TEST(outcome_buffer, a_failure_keeps_columns_of_one_length) {
  auto buffer = opened();
  buffer.add_value(0, 0, "a");
  buffer.add_failure(1, 0, task_status::failed, failure("why"));
  buffer.add_block(2, 0, result_kind::map_output, 99);
  buffer.add_failure(3, 0, task_status::killed, failure("because"));
  const auto batch = buffer.take();
  EXPECT_EQ(batch->count, 4u);
  EXPECT_TRUE(batch->partitions.empty());
  EXPECT_EQ(batch->statuses, (std::vector<task_status>{task_status::succeeded, task_status::failed,
                                                       task_status::succeeded, task_status::killed}));
  EXPECT_EQ(batch->results.size(), 4u);
  EXPECT_EQ(batch->results[1], "");
  ASSERT_EQ(batch->failures.size(), 2u);
  EXPECT_EQ(batch->failures[0].index, 1u);
  EXPECT_EQ(batch->failures[1].index, 3u);
  EXPECT_EQ(batch->failures[1].message, "because");
  const auto entry = decode_result_entry(batch->results[2]);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, result_kind::map_output);
  EXPECT_EQ(entry->bytes, 99u);
}

TEST(outcome_buffer, sums_usage_and_keeps_the_highest_peak) {
  auto buffer = opened();
  buffer.add_value(0, 0, "a");
  buffer.add_usage(duration{5}, 3, 10, 100);
  buffer.add_usage(duration{6}, 4, 20, 50);
  const auto batch = buffer.take();
  EXPECT_EQ(batch->run_nanoseconds, 11u);
  EXPECT_EQ(batch->cpu_nanoseconds, 7u);
  EXPECT_EQ(batch->output_bytes, 30u);
  EXPECT_EQ(batch->peak_memory, 100u);
}

TEST(outcome_buffer, names_one_file_that_was_left) {
  auto buffer = opened();
  buffer.add_left("a");
  buffer.add_left("b");
  EXPECT_EQ(buffer.take()->left, "a");
}

TEST(outcome_buffer, knows_what_cannot_join) {
  auto buffer = opened();
  EXPECT_FALSE(buffer.is_for_another(stage, 1, lease));
  EXPECT_TRUE(buffer.is_for_another(stage, 2, lease));
  EXPECT_TRUE(buffer.is_for_another({4}, 1, lease));
  EXPECT_TRUE(buffer.is_for_another(stage, 1, {6}));
  buffer.take();
  EXPECT_FALSE(buffer.is_for_another({4}, 2, {6}));
}

} // namespace
} // namespace troupe
