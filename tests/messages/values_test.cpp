// Equality and names of what crosses between the dag scheduler, executors and clients.

#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {
namespace {

std::shared_ptr<const packed_column> column(std::initializer_list<std::string_view> entries) {
  auto out = std::make_shared<packed_column>();
  for (const auto entry : entries) out->push_back(entry);
  return out;
}

TEST(values, batches_are_equal_by_meaning) {
  task_batch range;
  range.first = 2;
  range.count = 2;
  range.arguments = column({"zero", "one", "two", "three"});
  range.by_partition = true;

  task_batch listed;
  listed.count = 2;
  listed.partitions = {2, 3};
  listed.attempts = {0, 0};
  listed.arguments = column({"unused", "two", "three"});
  listed.argument_offset = 1;
  EXPECT_TRUE(range == listed);

  auto other = listed;
  other.partitions = {2, 4};
  EXPECT_FALSE(range == other);
  other = listed;
  other.attempts = {0, 1};
  EXPECT_FALSE(range == other);
  other = listed;
  other.argument_offset = 0;
  EXPECT_FALSE(range == other);
  other = listed;
  other.count = 1;
  EXPECT_FALSE(range == other);
  other = listed;
  other.lease = lease_id{1};
  EXPECT_FALSE(range == other);
  other = listed;
  other.stage_attempt = 1;
  EXPECT_FALSE(range == other);
}

TEST(values, batches_without_arguments_equal_those_with_empty_ones) {
  task_batch none;
  none.count = 2;
  auto empty = none;
  empty.arguments = column({"", ""});
  EXPECT_TRUE(none == empty);
  empty.arguments = column({"", "x"});
  EXPECT_FALSE(none == empty);
}

TEST(values, reports_compare_outcomes_by_content) {
  const auto with = [](std::uint32_t count) {
    auto batch = std::make_shared<outcome_batch>();
    batch->count = count;
    executor_report report;
    report.outcomes = {batch};
    return report;
  };
  EXPECT_TRUE(with(1) == with(1));
  EXPECT_FALSE(with(1) == with(2));
  EXPECT_FALSE(with(1) == executor_report{});
  EXPECT_FALSE(executor_report{} == with(1));
}

TEST(values, ends_compare_results_by_content) {
  const auto with = [](const char* value) {
    auto results = std::make_shared<job_results>();
    results->values.push_back(value);
    job_end end;
    end.results = results;
    return end;
  };
  EXPECT_TRUE(with("a") == with("a"));
  EXPECT_FALSE(with("a") == with("b"));
  EXPECT_FALSE(with("a") == job_end{});
}

TEST(values, states_have_names) {
  EXPECT_EQ(to_string(task_status::fetch_failed), "fetch-failed");
  EXPECT_EQ(to_string(task_status::lost), "lost");
  EXPECT_EQ(to_string(task_status::given_back), "given-back");
  EXPECT_EQ(to_string(job_state::cancelled), "cancelled");
  EXPECT_EQ(to_string(stage_state::complete), "complete");
  EXPECT_EQ(to_string(task_status{99}), "unknown");
  EXPECT_EQ(to_string(job_state{99}), "unknown");
  EXPECT_EQ(to_string(stage_state{99}), "unknown");
}

} // namespace
} // namespace troupe
