#include <set>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/task_set.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(task_location, is_a_host_or_an_executor_on_it) {
  EXPECT_EQ(parse_location("node1").value(), (task_location{"node1", {}}));
  EXPECT_EQ(parse_location("node1/7").value(), (task_location{"node1", executor_id{7}}));
  for (const auto* bad :
       {"", "/7", "node1/", "node1/x", "node1/7x", "node1/0", "node1/-1", "two words", "a/99999999999999999999"})
    EXPECT_THAT(parse_location(bad).error().message, HasSubstr("is no location; write a host, such as node1")) << bad;
  EXPECT_THAT(parse_locations("a\nb/2").value(),
              ElementsAre(task_location{"a", {}}, task_location{"b", executor_id{2}}));
  EXPECT_TRUE(parse_locations("").value().empty());
  EXPECT_FALSE(parse_locations("a\n\nb"));
}

TEST(located_tasks, are_found_nearest_first_and_not_beyond_the_level) {
  located_tasks tasks{{"a", "b/7", "", "c"}, 4};
  std::set<partition_index> gone;
  const auto find = [&](std::uint64_t executor, const char* host, locality_level level) -> int {
    const auto p = tasks.find(executor_id{executor}, host, level, [&](auto each) { return !gone.contains(each); });
    return p ? static_cast<int>(*p) : -1;
  };
  using enum locality_level;
  EXPECT_EQ(find(7, "b", executor), 1);
  EXPECT_EQ(find(8, "b", executor), 2) << "without preference: near everywhere";
  EXPECT_EQ(find(8, "b", host), 1);
  EXPECT_EQ(find(8, "d", host), 2);
  gone.insert(2);
  EXPECT_EQ(find(8, "d", host), -1);
  EXPECT_EQ(find(8, "d", any), 0) << "first in, first out";
  gone.insert(0);
  EXPECT_EQ(find(8, "a", host), -1);
  EXPECT_EQ(find(8, "a", any), 1);
  gone.erase(0);
  tasks.push(0);
  EXPECT_EQ(find(8, "a", host), 0) << "it waits again";
}

TEST(task_set, tasks_with_locations_are_taken_by_them) {
  task_set tasks{4};
  tasks.locate(std::make_unique<located_tasks>(std::vector<std::string_view>{"a", "b", "a", "b"}, 4));
  task_batch batch;
  EXPECT_EQ(tasks.take(0, 9, 1, batch), 0u);
  ASSERT_EQ(tasks.take_near(executor_id{1}, "b", locality_level::host, 9, 1, batch), 2u);
  EXPECT_THAT(batch.partitions, ElementsAre(1, 3));
  EXPECT_EQ(tasks.pending(0), 2u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
  EXPECT_FALSE(tasks.has_near(executor_id{1}, "b", locality_level::host));
  tasks.requeue(3, 0, false);
  EXPECT_TRUE(tasks.has_near(executor_id{1}, "b", locality_level::host));
  tasks.move_to(2, 3);
  EXPECT_FALSE(tasks.has_near(executor_id{1}, "b", locality_level::host)) << "another lane has no locations";
  EXPECT_EQ(tasks.pending(0), 2u);
  EXPECT_EQ(tasks.pending(2), 1u);
  EXPECT_EQ(tasks.fault(), std::nullopt);
  ASSERT_EQ(tasks.take_near(executor_id{1}, "b", locality_level::any, 1, 1, batch), 1u);
  EXPECT_THAT(batch.partitions, ElementsAre(0));
  EXPECT_THAT(batch.attempts, ElementsAre(0));
}

TEST(located_tasks, may_prefer_another_place_later) {
  located_tasks tasks{3};
  const auto find = [&](std::uint64_t executor, const char* host, locality_level level) -> int {
    const auto p = tasks.find(executor_id{executor}, host, level, [](auto) { return true; });
    return p ? static_cast<int>(*p) : -1;
  };
  using enum locality_level;
  EXPECT_EQ(find(7, "a", executor), 0) << "nobody minds yet";
  EXPECT_TRUE(tasks.prefer(0, {"a", executor_id{7}}));
  EXPECT_TRUE(tasks.prefer(1, {"b", executor_id{8}}));
  EXPECT_FALSE(tasks.prefer(2, {"b", executor_id{8}})) << "that was named before";
  EXPECT_EQ(find(7, "a", executor), 0);
  EXPECT_EQ(find(8, "b", executor), 1);
  EXPECT_EQ(find(9, "a", executor), -1);
  EXPECT_EQ(find(9, "a", host), 0);
  EXPECT_FALSE(tasks.prefer(0, {"b", executor_id{8}}));
  EXPECT_EQ(find(7, "a", host), -1) << "it does not any more";
  EXPECT_FALSE(tasks.prefer(0, {"a", executor_id{7}}));
  EXPECT_EQ(find(7, "a", executor), 0) << "and again";
  EXPECT_EQ(find(9, "c", any), 0);
}

} // namespace
} // namespace troupe
