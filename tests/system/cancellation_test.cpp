// What is cancelled ends: tasks that do not listen, commands that do not, groups of jobs, stages.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/settings_support.hpp>

#if defined(__SANITIZE_THREAD__)
// A thread whose task never ends is left behind on purpose. Its constructor may be part of the function that grants a
// lease.
extern "C" const char* __tsan_default_suppressions() {
  return "thread:troupe::lease_thread::lease_thread\nthread:troupe::task_runner::open_lease\n";
}
#endif

namespace troupe::system_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// Waits until the test opens `point`, whatever becomes of the attempt.
bool ignore_cancellation(const std::string& directory) {
  try {
    arrive(directory, "stubborn");
  } catch (const std::runtime_error&) { // it was cancelled
    std::ofstream{directory + "/ignored"};
    testing::wait_until([&] { return fs::exists(directory + "/stubborn.open"); }, 3 * testing::patience());
  }
  std::ofstream{directory + "/ended"};
  return true;
}
constexpr auto stubborn_task = task<"cancellation-stubborn", ignore_cancellation>;

bool wait_at(const std::pair<std::string, std::string>& where) {
  arrive(where.first, where.second);
  return true;
}
constexpr auto waiting_task = task<"cancellation-waiting", wait_at>;

/// Runs a job of one stage on a thread of its own. @returns the error of its end
template <class Stage>
std::unique_ptr<background<error>> started(const test_cluster& cluster, session session, const job& j, Stage stage) {
  return std::make_unique<background<error>>(cluster, [session, j, stage]() mutable -> error {
    try {
      session.run(j, stage);
      return {};
    } catch (const job_error& e) {
      return make_error(e.code(), e.what());
    }
  });
}

std::unique_ptr<background<error>> start_stubborn(const test_cluster& cluster, const rendezvous& meeting) {
  job j{"stubborn"};
  return started(cluster, cluster.make_session(), j,
                 j.stage("stubborn stage").run(stubborn_task).arguments({meeting.directory()}));
}

std::unique_ptr<background<error>> start_waiting(const test_cluster& cluster, const session& session,
                                                 const rendezvous& meeting, const std::string& point) {
  job j{"waits at " + point};
  return started(cluster, session, j,
                 j.stage("wait").run(waiting_task).arguments({std::pair{meeting.directory(), point}}));
}

job_progress job_named(const test_cluster& cluster, const std::string& name) {
  const auto status = cluster.jobs().status();
  if (!status) throw test_cluster_error(status.error().message);
  for (const auto& known : status->jobs)
    if (known.name == name) return known;
  throw test_cluster_error("there is no job " + name);
}

/// All logs of the session.
std::string logs(const test_cluster& cluster) {
  std::string text;
  for (const auto& entry : fs::directory_iterator{cluster.app().directory()})
    if (entry.path().extension() == ".log") text += read(entry.path());
  return text;
}

TEST(cancelled_tasks, that_do_not_end_have_their_executor_replaced_and_nothing_beside_them_is_blamed) {
  const rendezvous meeting;
  test_cluster cluster{
      {.master = "local-cluster[1,2,1g]",
       .conf = {"troupe.executor.cores=2", "troupe.task.kill-grace=100ms", "troupe.task.max-failures=1"}}};
  const auto beside = start_waiting(cluster, cluster.make_session(), meeting, "beside");
  const auto first = meeting.await("beside").front();
  const auto stubborn = start_stubborn(cluster, meeting);
  ASSERT_EQ(meeting.await("stubborn").front(), first) << "both are to run in one process";
  ASSERT_TRUE(cluster.jobs().cancel(job_named(cluster, "stubborn").job, "enough"));
  EXPECT_EQ(stubborn->get().code, ec::cancelled);
  // It runs again elsewhere, although one failure would have failed its job.
  const auto both = meeting.await("beside", 2);
  EXPECT_NE(both.at(0), both.at(1));
  EXPECT_TRUE(testing::wait_until([&] { return !testing::is_alive(first); })) << testing::look_at(first).text();
  EXPECT_FALSE(beside->is_over());
  meeting.open("beside");
  EXPECT_EQ(beside->get(), error{});
  EXPECT_FALSE(fs::exists(meeting.directory() + "/ended"));
  EXPECT_THAT(logs(cluster), AllOf(HasSubstr("attempt-overdue"), HasSubstr("executor-given-up"),
                                   HasSubstr("stage stubborn stage of job"), HasSubstr("troupe.task.kill-grace")));
  EXPECT_EQ(job_named(cluster, "waits at beside").stages.at(0).failures, 0u);
  cluster.await_executors(1);
  cluster.await_idle();
  cluster.check_clean();
}

TEST(cancelled_tasks, that_do_not_end_in_this_process_are_reported_and_cost_a_slot_and_no_more) {
  const rendezvous meeting;
  test_cluster cluster{{.master = "local[2]",
                        .conf = {"troupe.task.kill-grace=100ms", "troupe.shutdown.grace=100ms"},
                        .patience = duration::zero(),
                        .on_left = [](const std::string&) {}}}; // what the thread holds
  const auto stubborn = start_stubborn(cluster, meeting);
  meeting.await("stubborn");
  ASSERT_TRUE(cluster.jobs().cancel(job_named(cluster, "stubborn").job, "enough"));
  EXPECT_EQ(stubborn->get().code, ec::cancelled);
  ASSERT_TRUE(testing::wait_until([&] { return logs(cluster).find("attempt-overdue") != std::string::npos; }));
  auto session = cluster.make_session();
  EXPECT_EQ(session.range(0, 100, 4).count(), 100u) << "the other slot";
  // Two tasks that wait for each other would need two slots.
  job j{"two at once"};
  const auto stage = j.stage("wait")
                         .run(waiting_task)
                         .arguments({std::pair{meeting.directory(), std::string{"a"}},
                                     std::pair{meeting.directory(), std::string{"a"}}});
  const auto two = started(cluster, session, j, stage);
  meeting.await("a");
  EXPECT_EQ(job_named(cluster, "two at once").stages.at(0).running, 1u);
  meeting.open("a");
  EXPECT_EQ(two->get(), error{});
  const auto text = logs(cluster);
  EXPECT_EQ(text.find("attempt-overdue", text.find("attempt-overdue") + 1), std::string::npos) << "told twice";
  EXPECT_FALSE(fs::exists(meeting.directory() + "/ended"));
  cluster.close(); // neither waits for the task nor crashes
  EXPECT_FALSE(fs::exists(meeting.directory() + "/ended"));
  meeting.open("stubborn"); // and the task ends well after its session
  EXPECT_TRUE(testing::wait_until([&] { return fs::exists(meeting.directory() + "/ended"); }));
}

class cancelled_things : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, cancelled_things, ::testing::Values("local[2]", "local-cluster[2,1,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(cancelled_things, a_command_that_ignores_TERM_is_killed_after_the_grace) {
  testing::temporary_directory folder;
  const auto program = script(folder, "cd \"$(dirname \"$0\")\"\n"
                                      "trap 'touch asked' TERM\n"
                                      "touch started\n"
                                      "while :; do sleep 0.1; done");
  // Longer than the command may stand still before it hears of it.
  test_cluster cluster{{.master = GetParam(), .conf = {"troupe.task.kill-grace=5s"}}};
  background<job_end> running{
      cluster, [&] { return cluster.run_job_file("name: deaf\nstages: {work: {run: [" + program + "]}}\n"); }};
  ASSERT_TRUE(testing::wait_until([&] { return fs::exists(folder.path() + "/started"); }));
  cluster.jobs().cancel_all("enough");
  EXPECT_EQ(running.get().progress.state, job_state::cancelled);
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(program).empty(); })) << "it was not killed";
  EXPECT_TRUE(fs::exists(folder.path() + "/asked")) << "it had no chance to end by itself";
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(cancelled_things, a_group_takes_its_jobs_along_and_no_others) {
  const rendezvous meeting;
  test_cluster cluster{{.master = GetParam()}};
  auto session = cluster.make_session();
  const auto red = start_waiting(cluster, session.in_group("red"), meeting, "red");
  const auto blue = start_waiting(cluster, session.in_group("blue"), meeting, "blue");
  meeting.await("red");
  meeting.await("blue");
  EXPECT_EQ(job_named(cluster, "waits at red").group, "red");
  EXPECT_EQ(session.cancel_group("red"), 1u);
  const auto why = red->get();
  EXPECT_EQ(why.code, ec::cancelled);
  EXPECT_THAT(why.message, HasSubstr("its group red was cancelled: asked for by the program"));
  EXPECT_FALSE(blue->is_over());
  meeting.open("blue");
  EXPECT_EQ(blue->get(), error{});
  EXPECT_EQ(session.cancel_group("red"), 0u) << "all of them have ended";
  EXPECT_THROW(session.cancel_group("green"), job_error);
  cluster.await_idle();
  cluster.check_clean();
}

TEST_P(cancelled_things, a_stage_fails_its_job_and_says_which_it_was) {
  const rendezvous meeting;
  test_cluster cluster{{.master = GetParam()}};
  job j{"two stages"};
  const auto first =
      j.stage("first").run(waiting_task).arguments({std::pair{meeting.directory(), std::string{"first"}}});
  const auto second = j.stage("second")
                          .run(waiting_task)
                          .after(first)
                          .arguments({std::pair{meeting.directory(), std::string{"second"}}});
  const auto running = started(cluster, cluster.make_session(), j, second);
  meeting.await("first");
  meeting.open("first");
  meeting.await("second");
  const auto job = job_named(cluster, "two stages").job;
  EXPECT_TRUE(cluster.jobs().cancel_stage(job, 0, "by hand")) << "it is complete";
  EXPECT_FALSE(running->is_over());
  EXPECT_EQ(cluster.jobs().cancel_stage(job, 2, "by hand").error().code, ec::not_found);
  EXPECT_TRUE(cluster.jobs().cancel_stage(job, 1, "by hand"));
  EXPECT_EQ(running->get(), make_error(ec::cancelled, "stage 1 (second) was cancelled: by hand"));
  EXPECT_EQ(job_named(cluster, "two stages").state, job_state::failed);
  cluster.await_idle();
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
