// What limits are made of: cpus that are handed out, groups of attempts.

#include <gmock/gmock-more-matchers.h>

#include <troupe/runtime/execution/attempt_group.hpp>
#include <troupe/runtime/execution/cpu_affinity.hpp>

#include "cgroup_fixture.hpp"

namespace troupe::limits_parts_tests {
namespace {

using namespace testing_execution;
using ::testing::ElementsAre;
using enum cgroup_controller;

TEST(cpu_pool, gives_nobody_a_cpu_of_somebody_else_while_there_are_enough) {
  cpu_pool pool{{2, 3, 5, 7}};
  EXPECT_THAT(pool.take(1), ElementsAre(2));
  EXPECT_THAT(pool.take(2), ElementsAre(3, 5));
  EXPECT_FALSE(pool.is_shared());
  pool.give_back({3, 5});
  EXPECT_THAT(pool.take(3), ElementsAre(3, 5, 7));
  EXPECT_FALSE(pool.is_shared());
}

TEST(cpu_pool, shares_those_that_fewest_hold_where_there_are_not) {
  cpu_pool pool{{0, 1}};
  EXPECT_THAT(pool.take(1), ElementsAre(0));
  EXPECT_THAT(pool.take(8), ElementsAre(0, 1));
  EXPECT_TRUE(pool.is_shared());
  EXPECT_THAT(pool.take(1), ElementsAre(1));
}

TEST(cpu_pool, is_of_the_cpus_that_this_process_may_use) {
  const auto all = allowed_cpus();
  ASSERT_FALSE(all.empty());
  std::vector<int> bound;
  std::thread other{[&] {
    if (bind_to_cpus({all.back()})) bound = allowed_cpus();
  }};
  other.join();
  EXPECT_THAT(bound, ElementsAre(all.back()));
  EXPECT_EQ(allowed_cpus(), all);
}

/// An executor's group out of plain directories.
class attempt_group_test : public ::testing::Test {
protected:
  attempt_group_test() {
    make_like_v2((tree.path() + "/e").c_str(), 0700);
    make_like_v2((tree.path() + "/e/commands").c_str(), 0700);
  }
  command_limits limits(std::vector<cgroup_controller> controllers, bool shared, std::uint32_t processes = 0) const {
    return {cgroup{{{2, tree.path() + "/e", std::move(controllers)}}, {make_like_v2, remove_like_v2}}, shared, 0,
            processes};
  }
  scratch_tree tree;
};

TEST_F(attempt_group_test, is_its_own_where_its_memory_is_limited_and_goes_with_it) {
  {
    const attempt_group group{limits({memory}, true), "1.0.0", 4096};
    EXPECT_TRUE(group.limits_memory());
    EXPECT_THAT(group.member_files(), ElementsAre(tree.path() + "/e/attempt-1.0.0/cgroup.procs"));
    EXPECT_EQ(tree.read("e/attempt-1.0.0/memory.max"), "4096");
    EXPECT_EQ(tree.read("e/attempt-1.0.0/pids.max"), "");
    tree.write("e/attempt-1.0.0/memory.max", "4096\n");
    tree.write("e/attempt-1.0.0/memory.peak", "4000\n");
    tree.write("e/attempt-1.0.0/memory.events", "max 3\noom 1\noom_kill 1\n");
    const auto used = group.used();
    EXPECT_EQ(used.peak_memory, 4000u);
    EXPECT_TRUE(used.killed);
    EXPECT_TRUE(used.at_limit);
    EXPECT_EQ(used.limit, 4096u);
  }
  EXPECT_FALSE(std::filesystem::exists(tree.path() + "/e/attempt-1.0.0"));
}

TEST_F(attempt_group_test, is_its_own_where_only_its_processes_are_limited) {
  const attempt_group group{limits({memory, pids}, false, 20), "1.0.0", 0};
  EXPECT_FALSE(group.limits_memory());
  EXPECT_EQ(tree.read("e/attempt-1.0.0/pids.max"), "20");
}

TEST_F(attempt_group_test, is_that_of_all_commands_otherwise_and_counts_from_its_start) {
  tree.write("e/commands/memory.events", "max 3\noom 1\noom_kill 1\n");
  const attempt_group group{limits({memory}, true), "1.0.0", 0};
  EXPECT_THAT(group.member_files(), ElementsAre(tree.path() + "/e/commands/cgroup.procs"));
  EXPECT_FALSE(group.used().killed);
  tree.write("e/commands/memory.events", "max 3\noom 1\noom_kill 2\n");
  tree.write("e/memory.events", "max 3\noom 1\noom_kill 2\n");
  tree.write("e/memory.max", "8192\n");
  EXPECT_TRUE(group.used().killed);
  EXPECT_TRUE(group.used().at_limit);
  EXPECT_EQ(group.used().limit, 8192u);
  EXPECT_EQ(group.used().peak_memory, 0u) << "of others, too";
}

TEST_F(attempt_group_test, is_none_where_nothing_can_be_limited) {
  EXPECT_TRUE(attempt_group(limits({memory}, false), "1.0.0", 0).member_files().empty());
  EXPECT_TRUE(attempt_group({}, "1.0.0", 4096).member_files().empty());
  const attempt_group without_memory{limits({cpu}, false), "1.0.0", 4096};
  EXPECT_FALSE(without_memory.limits_memory());
  EXPECT_TRUE(without_memory.member_files().empty());
}

TEST_F(attempt_group_test, that_cannot_be_made_leaves_the_limit_to_somebody_else) {
  std::filesystem::remove(tree.path() + "/e/cgroup.subtree_control");
  const attempt_group group{limits({memory}, true), "1.0.0", 4096};
  EXPECT_FALSE(group.limits_memory());
  EXPECT_THAT(group.member_files(), ElementsAre(tree.path() + "/e/commands/cgroup.procs"));
}

} // namespace
} // namespace troupe::limits_parts_tests
