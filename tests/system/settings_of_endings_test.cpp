// How long processes, tasks and commands are given to end, and peers to be silent.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/roles.hpp>
#include <troupe/tests/system/settings_support.hpp>

namespace troupe::system_tests {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// -- silence

TEST(settings_in_effect, a_stopped_executor_is_given_up_after_the_heartbeat_timeout) {
  // Longer than a machine stands still, shorter than the default of ten seconds.
  test_cluster cluster{{.master = "local-cluster[1,1,1g]",
                        .conf = {"troupe.executor.heartbeat-interval=50ms", "troupe.executor.heartbeat-timeout=6s"}}};
  auto session = cluster.make_session();
  EXPECT_EQ(session.range(0, 4, 2).count(), 4u);
  const auto first = cluster.await_executors(1).front();
  cluster.stop(first);
  EXPECT_TRUE(testing::wait_until([&] {
    const auto now = cluster.executors();
    return std::none_of(now.begin(), now.end(), [&](const auto& e) { return e.id == first.id; });
  }));
  // The driver does not count its own lateness as silence.
  const auto log = cluster.app().directory() + "/driver.log";
  const auto before = "executor-silent executor=" + std::to_string(first.id.value) + " for=";
  ASSERT_TRUE(testing::wait_until([&] { return read(log).find(before) != std::string::npos; })) << read(log);
  const auto text = read(log);
  const auto silent = std::stoi(text.substr(text.find(before) + before.size()));
  EXPECT_GE(silent, 6000);
  EXPECT_LT(silent, 10'000);
  test_cluster::resume(first);
  cluster.check_clean();
}

TEST(settings_in_effect, an_executor_outlives_its_driver_by_the_driver_timeout) {
  const rendezvous meeting;
  testing::temporary_directory folder;
  const auto address_file = folder.path() + "/address";
  role_process driver{"driver-of-hosts",
                      {"127.0.0.1", folder.path() + "/run", address_file, meeting.directory(), "1",
                       "troupe.executor.heartbeat-interval=100ms"}};
  ASSERT_TRUE(testing::wait_until([&] { return read(address_file).ends_with('\n'); })) << driver.output();
  std::istringstream known{read(address_file)};
  std::string address, cluster, secret_file, directory;
  known >> address >> cluster >> secret_file >> directory;
  role_process executor{"executor",
                        {address, cluster, secret_file, directory, "orphan", "127.0.0.1",
                         "troupe.executor.driver-timeout=500ms", "troupe.shutdown.grace=100ms"}};
  // Where the driver stands still, the executor only begins nothing.
  ASSERT_TRUE(testing::wait_until([&] { return !meeting.arrivals("map").empty() || executor.wait(duration::zero()); }));
  driver.kill(SIGKILL);
  EXPECT_TRUE(executor.wait().value_or(0) != 0) << executor.output();
  // It does not count its own lateness as silence, so on a slow machine this is no larger.
  const auto text = executor.output();
  const std::string before = "the driver has been silent for ";
  const auto at = text.rfind(before);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_THAT(text.substr(at), ::testing::HasSubstr("(troupe.executor.driver-timeout)"));
  EXPECT_LT(std::stoi(text.substr(at + before.size())), 6000) << "less than the default of six seconds: " << text;
  run_directory::sweep(folder.path() + "/run");
}

TEST(settings_in_effect, an_executor_waits_for_a_driver_that_stands_still_as_long_as_the_abandon_timeout) {
  const rendezvous meeting;
  testing::temporary_directory folder;
  const auto address_file = folder.path() + "/address";
  role_process driver{"driver-of-hosts",
                      {"127.0.0.1", folder.path() + "/run", address_file, meeting.directory(), "1",
                       "troupe.executor.heartbeat-interval=100ms"}};
  ASSERT_TRUE(testing::wait_until([&] { return read(address_file).ends_with('\n'); })) << driver.output();
  std::istringstream known{read(address_file)};
  std::string address, cluster, secret_file, directory;
  known >> address >> cluster >> secret_file >> directory;
  role_process executor{"executor",
                        {address, cluster, secret_file, directory, "patient", "127.0.0.1",
                         "troupe.executor.driver-timeout=500ms", "troupe.executor.abandon-timeout=4s",
                         "troupe.shutdown.grace=100ms"}};
  ASSERT_TRUE(testing::wait_until([&] { return !meeting.arrivals("map").empty() || executor.wait(duration::zero()); }));
  driver.kill(SIGSTOP);
  EXPECT_TRUE(executor.wait().value_or(0) != 0) << executor.output();
  const auto text = executor.output();
  const std::string before = "the driver has been silent for ";
  const auto at = text.rfind(before);
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_THAT(text.substr(at), ::testing::HasSubstr("(troupe.executor.abandon-timeout)"));
  EXPECT_GE(std::stoi(text.substr(at + before.size())), 4000) << text;
  EXPECT_LT(std::stoi(text.substr(at + before.size())), 60'000) << "less than the default: " << text;
  driver.kill(SIGKILL);
  driver.wait();
  run_directory::sweep(folder.path() + "/run");
}

// -- ends that take their time. What has to end takes longer over it than the defaults allow.

class slow_ends : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, slow_ends, ::testing::Values("local[2]", "local-cluster[1,1,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(slow_ends, a_command_has_the_kill_grace_after_it_was_asked_to_end) {
  testing::temporary_directory folder;
  const auto program = script(folder, "cd \"$(dirname \"$0\")\"\n"
                                      "trap 'sleep 1; touch saved; exit' TERM\n"
                                      "touch started\n"
                                      "sleep 600 & wait");
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.kill-grace=1min"}}};
  background<job_end> running{
      cluster, [&] { return cluster.run_job_file("name: slow\nstages: {work: {run: [" + program + "]}}\n"); }};
  ASSERT_TRUE(testing::wait_until([&] { return fs::exists(folder.path() + "/started"); }));
  cluster.jobs().cancel_all("enough");
  EXPECT_EQ(running.get().progress.state, job_state::cancelled);
  ASSERT_TRUE(testing::wait_until([&] { return testing::processes_of(program).empty(); }));
  EXPECT_TRUE(fs::exists(folder.path() + "/saved")) << "it was killed before";
  cluster.check_clean();
}

TEST_P(slow_ends, what_writes_on_behind_its_command_has_the_writer_grace) {
  test_cluster cluster{
      {.master = GetParam(),
       .conf = {"troupe.task.writer-grace=0", "troupe.task.timeout=1min", "troupe.task.max-failures=1"}}};
  const auto end = cluster.run_job_file("name: behind\nstages: {work: {run: [sh, -c, 'sleep 600 >\"$0\" & until [ -e "
                                        "\"$0\" ]; do :; done', '{output}'], outputs: [o]}}\n");
  EXPECT_EQ(end.progress.state, job_state::failed);
  EXPECT_THAT(end.failure.message, ::testing::HasSubstr("(pid ")) << "it had a minute";
  EXPECT_THAT(end.failure.message, ::testing::HasSubstr("still writes 'o'"));
  cluster.check_clean();
}

/// Takes so many milliseconds to end.
bool end_slowly(const std::pair<std::string, std::int64_t>& how) {
  const auto& [directory, takes] = how;
  try {
    arrive(directory, "work");
  } catch (const std::runtime_error&) { // it was cancelled
    testing::wait_until([] { return false; }, std::chrono::milliseconds{takes});
    std::ofstream{directory + "/ended"};
  }
  return true;
}
constexpr auto end_slowly_task = task<"settings-end-slowly", end_slowly>;

TEST_P(slow_ends, a_task_has_the_shutdown_grace_when_its_session_ends) {
  const rendezvous meeting;
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.shutdown.grace=1min", "troupe.task.kill-grace=0"}}};
  auto session = cluster.make_session();
  // Longer than it would have if the setting had no effect: half a second here, three where a keeper kills the
  // executor.
  const std::int64_t takes = GetParam() == std::string_view{"local[2]"} ? 2000 : 4000;
  job j{"slow"};
  const auto stage = j.stage("work").run(end_slowly_task).arguments({std::pair{meeting.directory(), takes}});
  background<int> running{cluster, [&] {
                            try {
                              session.run(j, stage);
                            } catch (const job_error&) {}
                            return 0;
                          }};
  meeting.await("work");
  cluster.close();
  EXPECT_TRUE(fs::exists(meeting.directory() + "/ended")) << "nobody waited for it";
  running.get();
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
