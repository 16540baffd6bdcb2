#include <sys/wait.h>

#include <troupe/runtime/execution/cgroup.hpp>

#include "cgroup_fixture.hpp"

namespace troupe::cgroup_tests {
namespace {

using namespace testing_execution;
using enum cgroup_controller;

constexpr std::uint64_t mib = 1 << 20;

/// Runs a script of `sh` as a member of the group. @returns its wait status
int run_in(const cgroup& group, const std::string& script) {
  std::string joined;
  for (const auto& file : group.member_files()) joined += "echo 0 > " + file + " && ";
  joined += "{ " + script + "; }";
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execl("/bin/sh", "sh", "-c", joined.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {}
  return status;
}

class v2_group : public ::testing::Test {
protected:
  v2_group() {
    make_like_v2((tree.path() + "/base").c_str(), 0700);
    group = cgroup{{{2, tree.path() + "/base", {memory, cpu, pids}}}, {make_like_v2, remove_like_v2}}.child("one");
  }
  scratch_tree tree;
  cgroup group;
};

TEST_F(v2_group, gets_its_controllers_from_the_group_above) {
  ASSERT_TRUE(group.make());
  EXPECT_EQ(tree.read("base/cgroup.subtree_control"), "+memory +cpu +pids");
  EXPECT_EQ(group.member_files(), std::vector<std::string>{tree.path() + "/base/one/cgroup.procs"});
}

TEST_F(v2_group, is_limited_in_memory_without_swap_in_cpu_and_in_processes) {
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(group.limit({64 * mib, 1500, 20}));
  EXPECT_EQ(tree.read("base/one/memory.max"), "67108864");
  EXPECT_EQ(tree.read("base/one/memory.swap.max"), "0");
  EXPECT_EQ(tree.read("base/one/cpu.max"), "150000 100000");
  EXPECT_EQ(tree.read("base/one/pids.max"), "20");
}

TEST_F(v2_group, is_not_touched_where_no_limit_is_asked_for) {
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(group.limit({}));
  EXPECT_EQ(tree.read("base/one/memory.max") + tree.read("base/one/cpu.max") + tree.read("base/one/pids.max"), "");
}

TEST_F(v2_group, says_what_it_took_and_whether_its_own_limit_was_hit) {
  ASSERT_TRUE(group.make());
  tree.write("base/one/memory.max", "67108864\n");
  tree.write("base/one/memory.current", "4096\n");
  tree.write("base/one/memory.peak", "8192\n");
  tree.write("base/one/memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 0\n");
  const auto memory = group.memory();
  EXPECT_EQ(memory.limit, 64 * mib);
  EXPECT_EQ(memory.usage, 4096u);
  EXPECT_EQ(memory.peak, 8192u);
  EXPECT_EQ(memory.kills, 3u);
  EXPECT_TRUE(memory.at_limit);
}

TEST_F(v2_group, that_was_only_near_its_limit_or_whose_child_had_a_limit_was_not_at_its_own) {
  ASSERT_TRUE(group.make());
  const auto at_limit = [&](const std::string& events, const std::string& local) {
    tree.write("base/one/memory.events", events);
    tree.write("base/one/memory.events.local", local);
    return group.memory().at_limit;
  };
  EXPECT_FALSE(at_limit("max 7\noom 0\noom_kill 1\n", "max 7\noom 0\noom_kill 1\n")) << "reclaiming was enough";
  EXPECT_FALSE(at_limit("max 7\noom 1\noom_kill 1\n", "max 7\noom 0\noom_kill 0\n")) << "a group below had to kill";
  EXPECT_TRUE(at_limit("max 7\noom 2\noom_kill 2\n", "max 7\noom 1\noom_kill 0\n"));
  EXPECT_TRUE(at_limit("max 7\noom 1\noom_kill 1\n", "")) << "an older kernel counts all together";
}

TEST_F(v2_group, of_an_older_kernel_has_no_peak_and_shows_its_usage_instead) {
  ASSERT_TRUE(group.make());
  std::filesystem::remove(tree.path() + "/base/one/memory.peak");
  tree.write("base/one/memory.max", "max\n");
  tree.write("base/one/memory.current", "4096\n");
  EXPECT_EQ(group.memory().peak, 4096u);
  EXPECT_EQ(group.memory().limit, 0u);
}

TEST_F(v2_group, that_cannot_be_made_leaves_nothing_and_names_the_place) {
  const cgroup two{{{2, tree.path() + "/base", {memory}}, {2, tree.path() + "/missing", {pids}}},
                   {make_like_v2, remove_like_v2}};
  const auto made = two.child("one").make();
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("/missing/cgroup.subtree_control"), std::string::npos) << made.error().message;
  EXPECT_FALSE(std::filesystem::exists(tree.path() + "/base/one"));
}

TEST_F(v2_group, a_limit_that_cannot_be_written_is_named) {
  ASSERT_TRUE(group.make());
  std::filesystem::remove(tree.path() + "/base/one/memory.max");
  const auto limited = group.limit({mib, 0, 0});
  ASSERT_FALSE(limited);
  EXPECT_NE(limited.error().message.find("/base/one/memory.max"), std::string::npos) << limited.error().message;
}

TEST_F(v2_group, goes_with_all_groups_below_and_tells_the_kernel_to_kill_all_in_it) {
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(group.child("a").make());
  // Is gone before it can be read, so a second name is kept.
  std::filesystem::create_hard_link(tree.path() + "/base/one/cgroup.kill", tree.path() + "/kill");
  EXPECT_TRUE(group.remove(true, {}));
  EXPECT_FALSE(std::filesystem::exists(tree.path() + "/base/one"));
  EXPECT_EQ(tree.read("kill"), "1");
}

TEST_F(v2_group, does_not_kill_who_removes_it) {
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(group.child("a").make());
  tree.write("base/one/a/cgroup.procs", "1\n" + std::to_string(::getpid()) + "\n");
  std::filesystem::create_hard_link(tree.path() + "/base/one/cgroup.kill", tree.path() + "/kill");
  EXPECT_TRUE(group.remove(true, {}));
  EXPECT_EQ(tree.read("kill"), "");
}

/// The kernel's own hierarchies, where this process may make groups in them.
class real_group : public ::testing::Test {
protected:
  own_groups groups{{memory, pids}};
};

#define NEEDS_GROUPS()                                                                                                 \
  if (!groups.missing().empty()) GTEST_SKIP() << "no cgroups to be had here: " << groups.missing()

TEST_F(real_group, kills_what_takes_more_memory_than_it_may_and_counts_it) {
  NEEDS_GROUPS();
  const auto group = groups.top().child("memory");
  const auto self = group.child("self");
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(group.limit({32 * mib, 0, 0}));
  ASSERT_TRUE(self.make());
  // tail keeps what it has not seen the end of a line of.
  const auto status = run_in(self, "exec tail /dev/zero");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_EQ(self.memory().kills, 1u);
  EXPECT_EQ(group.memory().limit, 32 * mib);
  EXPECT_TRUE(group.memory().at_limit);
  EXPECT_GT(group.memory().peak, 16 * mib);
  EXPECT_LE(group.memory().peak, 32 * mib);
}

TEST_F(real_group, without_a_limit_shows_none) {
  NEEDS_GROUPS();
  const auto group = groups.top().child("free");
  ASSERT_TRUE(group.make());
  EXPECT_EQ(run_in(group, "exit 3"), 3 << 8);
  EXPECT_EQ(group.memory().limit, 0u);
  EXPECT_EQ(group.memory().kills, 0u);
  EXPECT_FALSE(group.memory().at_limit);
}

TEST_F(real_group, has_no_more_processes_than_it_may) {
  NEEDS_GROUPS();
  const auto group = groups.top().child("few");
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(group.limit({0, 0, 3}));
  EXPECT_NE(run_in(group, "sleep 100 & sleep 100 & sleep 100 & sleep 100 & sleep 100 & exit 0"), 0);
}

TEST_F(real_group, is_removed_with_what_still_runs_in_it) {
  NEEDS_GROUPS();
  const auto group = groups.top().child("busy");
  const auto below = group.child("below");
  ASSERT_TRUE(group.make());
  ASSERT_TRUE(below.make());
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_TRUE(below.add(pid));
  EXPECT_FALSE(group.remove(false, {}));
  EXPECT_TRUE(alive(pid));
  std::thread reaper{[pid] { ::waitpid(pid, nullptr, 0); }};
  EXPECT_TRUE(group.remove(true, testing::patience()));
  reaper.join();
  for (const auto& part : group.parts()) EXPECT_FALSE(std::filesystem::exists(part.directory)) << part.directory;
}

} // namespace
} // namespace troupe::cgroup_tests
