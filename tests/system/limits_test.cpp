// Limits on executors and commands, with real processes; where this machine has control groups, with those.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/execution/cgroup_find.hpp>
#include <troupe/runtime/execution/cpu_affinity.hpp>
#include <troupe/runtime/execution/process_limits.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/program_process.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/settings_support.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
namespace fs = std::filesystem;
using enum cgroup_controller;

/// Why this machine has no group with these controllers; "" where it has.
std::string lacks(const std::vector<cgroup_controller>& wanted) {
  std::string why;
  for (const auto& [controller, reason] : find_cgroups(wanted).missing) why += reason + "; ";
  return why;
}

#define NEEDS_GROUPS(...)                                                                                              \
  if (const auto why = lacks({__VA_ARGS__}); !why.empty()) GTEST_SKIP() << "no cgroups to be had here: " << why

/// Groups of the session that exist.
std::vector<std::string> groups_of(const std::string& session_id) {
  const auto group = find_cgroups({memory, cpu, pids}).base.child("troupe-" + session_id);
  std::vector<std::string> there;
  for (const auto& part : group.parts())
    if (fs::exists(part.directory)) there.push_back(part.directory);
  return there;
}

/// A job file with one stage of commands, run to its end.
job_end run_command(const test_cluster& cluster, const std::string& script_text, const std::string& more = "") {
  return cluster.run_job_file("name: limits\nstages:\n  work:\n    run: [sh, -c, '" + script_text + "']\n" + more);
}

constexpr const char* endless = "cat /dev/zero | tail -c 100000m";

/// Takes memory on and on where `file` is missing, which it makes first.
std::string take_memory_once(const std::string& file) {
  if (fs::exists(file)) return "enough";
  std::ofstream{file} << "x";
  std::vector<std::string> all;
  while (true) all.emplace_back(std::size_t{16} << 20, 'x');
}
constexpr auto take_memory_once_task = task<"limits-take-memory-once", take_memory_once>;

std::string take_memory(std::string) {
  std::vector<std::string> all;
  while (true) all.emplace_back(std::size_t{16} << 20, 'x');
}
constexpr auto take_memory_task = task<"limits-take-memory", take_memory>;

template <class Task>
job_end run_task(const test_cluster& cluster, const Task& what, const std::string& argument) {
  job j{"limits"};
  j.stage("work").run(what).arguments({argument});
  const auto options = cluster.app().make_session_options();
  return cluster.jobs().run(std::make_shared<const job_spec>(j.build(options.jobs, 0)));
}

// -- memory of executors

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(memory_of_an_executor, that_takes_more_than_it_may_ends_it_and_its_task_runs_again) {
  NEEDS_GROUPS(memory);
  const testing::temporary_directory folder;
  test_cluster cluster{{.master = "local-cluster[1,1,1g]", .conf = {"troupe.executor.memory=100m"}}};
  const auto end = run_task(cluster, take_memory_once_task, folder.path() + "/taken");
  EXPECT_EQ(end.progress.state, job_state::succeeded) << end.failure.message;
  EXPECT_THAT(read(cluster.app().directory() + "/driver.log"),
              ContainsRegex("executor-removed executor=1 lost=true "
                            "cause=\"it was killed at its memory limit of 100m, peak memory (9[0-9]|100)m\""));
  cluster.check_clean();
}

TEST(memory_of_an_executor, is_named_by_the_job_that_fails_for_it) {
  NEEDS_GROUPS(memory);
  test_cluster cluster{{.master = "local-cluster[1,1,1g]",
                        .conf = {"troupe.executor.memory=64m", "troupe.executor.memory-overhead=16m",
                                 "troupe.executor.off-heap=4m", "troupe.task.max-failures=1"}}};
  const auto end = run_task(cluster, take_memory_task, "");
  EXPECT_EQ(end.progress.state, job_state::failed);
  EXPECT_THAT(end.failure.message, HasSubstr("was lost (it was killed at its memory limit of 84m, peak memory 8"));
  cluster.check_clean();
}

TEST(memory_of_an_executor, without_a_group_is_limited_by_its_data) {
  // The runtime's own choice where there is no group, which this machine may have: seen at a process of its own.
  const auto pid = fork();
  if (pid == 0) {
    limit_own_data(64 << 20);
    try {
      take_memory("");
    } catch (const std::bad_alloc&) {
      _exit(7);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 7);
}
#endif

TEST(memory_of_an_executor, is_not_limited_where_it_shall_not_be) {
  NEEDS_GROUPS(memory);
  test_cluster cluster{{.master = "local-cluster[1,1,1g]", .conf = {"troupe.executor.limits.memory=none"}}};
  EXPECT_EQ(run_command(cluster, "! grep troupe- /proc/self/cgroup").progress.state, job_state::succeeded);
  EXPECT_THAT(groups_of(cluster.app().session_id()), IsEmpty());
  cluster.check_clean();
}

TEST(memory_of_an_executor, is_told_where_its_commands_take_it) {
  NEEDS_GROUPS(memory);
  test_cluster cluster{
      {.master = "local-cluster[1,1,1g]", .conf = {"troupe.executor.memory=600m", "troupe.task.max-failures=1"}}};
  const auto end = run_command(cluster, endless);
  EXPECT_EQ(end.progress.state, job_state::failed);
  EXPECT_THAT(end.failure.message,
              HasSubstr("was killed because its executor and all that runs there together took the "
                        "memory of the executor: 600m"));
  EXPECT_THAT(cluster.executors(), SizeIs(1)) << "the executor itself lives on";
  cluster.check_clean();
}

// -- memory of commands

class memory_of_a_command : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, memory_of_a_command, ::testing::Values("local[2]", "local-cluster[1,2,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(memory_of_a_command, that_loses_a_process_for_it_has_failed_whatever_it_says) {
  NEEDS_GROUPS(memory);
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.memory=40m", "troupe.task.max-failures=1"}}};
  const auto end = run_command(cluster, "head -c 80m /dev/zero | tail -c 80m | wc -c");
  EXPECT_EQ(end.progress.state, job_state::failed) << "wc has counted nothing";
  EXPECT_THAT(end.failure.message, HasSubstr("took more memory than its task may: 40m of 40m"));
  cluster.check_clean();
}

TEST_P(memory_of_a_command, is_kept_by_its_own_group) {
  NEEDS_GROUPS(memory);
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.memory=40m", "troupe.task.max-failures=1"}}};
  const auto inside = run_command(cluster, "grep troupe-.*/executor-1/attempt- /proc/self/cgroup");
  EXPECT_EQ(inside.progress.state, job_state::succeeded) << inside.failure.message;
  const auto end = run_command(cluster, endless);
  EXPECT_EQ(end.progress.state, job_state::failed);
  EXPECT_THAT(end.failure.message, HasSubstr("took more memory than its task may: 40m of 40m"));
  EXPECT_GT(end.progress.stages.at(0).peak_memory, 39u << 20);
  EXPECT_LE(end.progress.stages.at(0).peak_memory, 40u << 20);
  cluster.check_clean();
}

// -- processes

class processes_of_a_command : public memory_of_a_command {};
INSTANTIATE_TEST_SUITE_P(masters, processes_of_a_command, ::testing::Values("local[2]", "local-cluster[1,2,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(processes_of_a_command, are_no_more_than_it_may_have) {
  NEEDS_GROUPS(pids);
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.max-processes=8", "troupe.task.max-failures=1"}}};
  const auto few = run_command(cluster, "for i in 1 2 3 4; do sleep 1000 & done; exit 0");
  EXPECT_EQ(few.progress.state, job_state::succeeded) << few.failure.message;
  const auto many = run_command(cluster, "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; exit 0");
  EXPECT_EQ(many.progress.state, job_state::failed);
  EXPECT_THAT(many.failure.message, HasSubstr("ork")) << "sh says that it cannot fork";
  cluster.check_clean();
}

// -- cpus

TEST(cpus_of_an_executor, are_its_own_where_it_is_bound_to_them) {
  const auto all = allowed_cpus();
  if (all.size() < 2) GTEST_SKIP() << "one cpu cannot be shared out";
  const testing::temporary_directory folder;
  test_cluster cluster{{.master = "local-cluster[2,1,1g]", .conf = {"troupe.executor.limits.cpu=affinity"}}};
  // Both run at once, so they are on two executors.
  const auto end = run_command(
      cluster,
      "grep Cpus_allowed_list /proc/self/status >" + folder.path() + "/$TROUPE_PARTITION.tmp; nproc >>" +
          folder.path() + "/$TROUPE_PARTITION.tmp; mv " + folder.path() + "/$TROUPE_PARTITION.tmp " + folder.path() +
          "/$TROUPE_PARTITION; until test -e " + folder.path() + "/0 && test -e " + folder.path() + "/1; do :; done",
      "    tasks: 2\n");
  ASSERT_EQ(end.progress.state, job_state::succeeded) << end.failure.message;
  const auto first = read(folder.path() + "/0");
  const auto second = read(folder.path() + "/1");
  EXPECT_THAT(first, ::testing::EndsWith("\n1\n"));
  EXPECT_THAT(second, ::testing::EndsWith("\n1\n"));
  EXPECT_NE(first, second);
  cluster.check_clean();
}

TEST(cpus_of_an_executor, are_a_share_of_their_time_where_it_has_a_quota) {
  NEEDS_GROUPS(cpu);
  test_cluster cluster{
      {.master = "local-cluster[1,2,1g]", .conf = {"troupe.executor.limits.cpu=quota", "troupe.executor.cores=2"}}};
  ASSERT_EQ(run_command(cluster, "exit 0").progress.state, job_state::succeeded);
  const auto group = find_cgroups({cpu}).base.child("troupe-" + cluster.app().session_id()).child("executor-1");
  ASSERT_THAT(group.parts(), SizeIs(1));
  const auto& part = group.parts().front();
  if (part.version == 1)
    EXPECT_EQ(read(part.directory + "/cpu.cfs_quota_us"), "200000\n");
  else
    EXPECT_EQ(read(part.directory + "/cpu.max"), "200000 100000\n");
  cluster.check_clean();
}

// -- what is left

TEST(groups_of_a_session, are_gone_when_it_has_ended) {
  NEEDS_GROUPS(memory, cpu, pids);
  test_cluster cluster{{.master = "local-cluster[2,1,1g]",
                        .conf = {"troupe.executor.limits.cpu=quota", "troupe.task.max-processes=100"}}};
  EXPECT_EQ(run_command(cluster, "exit 0").progress.state, job_state::succeeded);
  const auto id = cluster.app().session_id();
  EXPECT_THAT(groups_of(id), Not(IsEmpty()));
  cluster.check_clean();
  EXPECT_THAT(groups_of(id), IsEmpty());
}

TEST(groups_of_a_session, that_was_killed_are_gone_at_the_next_start) {
  NEEDS_GROUPS(memory);
  const testing::temporary_directory folder;
  const auto job = folder.path() + "/job.yaml";
  std::ofstream{job} << "name: nap\nstages:\n  nap: {run: [sh, -c, '>" << folder.path()
                     << "/arrived; exec sleep 1000']}\n";
  const std::vector<std::string> words{TROUPE_PROGRAM,
                                       "run",
                                       job,
                                       "--master=local-cluster[1,1,1g]",
                                       "--conf",
                                       "troupe.run-directory=" + folder.path() + "/run"};
  std::string session;
  {
    program_process driver{words};
    ASSERT_TRUE(testing::wait_until([&] { return fs::exists(folder.path() + "/arrived"); })) << driver.output();
    for (const auto& entry : fs::directory_iterator{folder.path() + "/run"})
      if (!entry.path().filename().string().starts_with("host-")) session = entry.path().filename();
    ASSERT_THAT(groups_of(session), Not(IsEmpty()));
    // All of it at one time, so that nobody is left to clear up.
    for (bool any = true; any;) {
      any = false;
      for (const auto& process : testing::processes_of(folder.path() + "/run"))
        any = ::kill(process.pid, SIGKILL) == 0 || any;
      for (const auto& process : testing::processes_of(folder.path())) any = ::kill(process.pid, SIGKILL) == 0 || any;
    }
    driver.kill(SIGKILL);
    driver.wait();
  }
  const auto next = folder.path() + "/next.yaml";
  std::ofstream{next} << "name: next\nstages:\n  nothing: {run: [sh, -c, exit]}\n";
  program_process again{
      {TROUPE_PROGRAM, "run", next, "--master=local[1]", "--conf", "troupe.run-directory=" + folder.path() + "/run"}};
  EXPECT_EQ(again.wait(), 0) << again.output();
  EXPECT_TRUE(testing::wait_until([&] { return groups_of(session).empty(); })) << groups_of(session).front();
}

} // namespace
} // namespace troupe::system_tests
