// What the driver and the dag scheduler do together, with an executor that does what it is told.

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>
#include <variant>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <troupe/tests/actors/fakes.hpp>

namespace troupe::actor_tests {
namespace {

using ::testing::HasSubstr;

class dag_scheduler_actor_test : public ::testing::Test {
protected:
  std::shared_ptr<const session_secret> secret = std::make_shared<const session_secret>(session_secret::generate());
  testing::virtual_system world;
  driver_actor front = world.end_with_system(spawn_driver(world.system(), plain_driver(secret)));
  std::shared_ptr<heard_by_client> hears = std::make_shared<heard_by_client>();
  client_actor client = spawn_listening_client(world, hears);

  struct worker {
    std::shared_ptr<heard_by_executor> heard = std::make_shared<heard_by_executor>();
    executor_actor handle;
    admission admitted;
    testing::fake_executor logic;
    std::size_t applied = 0;

    /// Follows new orders; what no scheduler may order is a failure.
    void follow() {
      for (; applied < heard->orders.size(); ++applied)
        if (const auto fault = logic.apply(*heard->orders[applied])) ADD_FAILURE() << *fault;
    }
  };
  worker join(incarnation epoch, std::int64_t cores = 1) {
    const auto info = testing::executor_builder{}.cores(cores).make({}, epoch);
    auto heard = std::make_shared<heard_by_executor>();
    auto handle = spawn_listening_executor(world, heard);
    auto admitted = admit_executor(world, front, *secret, info, handle);
    EXPECT_FALSE(admitted.failed) << admitted.failed.message;
    return {heard, handle, admitted,
            testing::fake_executor{testing::executor_builder{}.cores(cores).make(admitted.id, epoch)}, 0};
  }
  result<job_id> submit(const std::shared_ptr<const job_spec>& job) {
    job_id id;
    const auto failed = world.request(
        front, [&](const boxed<job_accepted>& a) { id = a->job; }, box(job_submission{job, {}}), client);
    if (failed) return failed;
    return id;
  }
  /// Ends everything that the worker runs, round after round.
  void work(worker& w) {
    for (int round = 0; round < 100; ++round) {
      w.follow();
      std::vector<testing::fake_end> ends;
      for (const auto& a : w.logic.attempts())
        ends.push_back(w.logic.success(a, "result of " + std::to_string(a.partition)));
      if (ends.empty() && !w.logic.has_refusals()) return;
      world.say(w.admitted.scheduler, box(w.logic.report(ends)));
    }
    FAIL() << "the work never ends";
  }
};

TEST_F(dag_scheduler_actor_test, runs_a_job_and_leaves_nothing) {
  auto w = join(5, 2);
  const auto job = submit(testing::job_builder{}.stage("only", 10).make());
  ASSERT_TRUE(job) << job.error().message;
  w.follow();
  EXPECT_EQ(w.logic.lease_count(), 2u) << "one per core";
  work(w);
  ASSERT_EQ(hears->ends.size(), 1u);
  EXPECT_EQ(hears->ends[0]->job, *job);
  EXPECT_FALSE(hears->ends[0]->failure) << hears->ends[0]->failure.message;
  ASSERT_TRUE(hears->ends[0]->results);
  EXPECT_EQ(hears->ends[0]->results->values[3], "result of 3");
  work(w);
  world.pass(1s);
  w.follow();
  EXPECT_EQ(w.logic.lease_count(), 0u);
  EXPECT_EQ(w.logic.installed_count(), 0u);
  const auto status = status_of(world, front);
  EXPECT_EQ(status.executors.at(0).leases, 0u);
  EXPECT_EQ(status.executors.at(0).running, 0u);
  EXPECT_EQ(status.executors.at(0).tasks_done, 10u);
}

TEST_F(dag_scheduler_actor_test, hands_on_at_once_what_goes_wrong) {
  auto config = plain_driver(secret);
  std::int64_t clock = 1'000;
  std::vector<events::record> published;
  config.unix_nanoseconds = [&] { return clock; };
  config.on_event = [&](const events::record& r) { published.push_back(r); };
  front = world.end_with_system(spawn_driver(world.system(), config));
  auto w = join(5);
  const auto job = testing::job_builder{}.stage("first", 3).stage("second", 1).after(0, dependency_kind::all).make();
  ASSERT_TRUE(submit(job));
  const auto names = [&] {
    std::set<std::string_view> all;
    for (const auto& r : published) all.insert(events::name_of(r.content));
    return all;
  };
  EXPECT_FALSE(names().contains("stage-submitted")) << "it waits for the tick";
  w.follow();
  clock = 2'000;
  world.say(w.admitted.scheduler, box(w.logic.report({w.logic.success(w.logic.attempts().at(0), "one")})));
  EXPECT_FALSE(names().contains("tasks-succeeded"));
  clock = 9'000;
  w.follow();
  const testing::fake_end failure{w.logic.attempts().at(0), task_status::failed, {}, {}};
  world.say(w.admitted.scheduler, box(w.logic.report({failure})));
  EXPECT_TRUE(names().contains("task-failed")) << "no tick has passed";
  EXPECT_TRUE(names().contains("tasks-succeeded")) << "what came before it comes with it";
  const auto good = std::find_if(published.begin(), published.end(), [](const events::record& r) {
    return std::holds_alternative<events::tasks_succeeded>(r.content);
  });
  ASSERT_NE(good, published.end());
  EXPECT_EQ(good->unix_nanoseconds, 2'000) << "when it was decided, not when it was heard of";
  work(w);
  world.pass(1s);
  EXPECT_TRUE(names().contains("job-ended"));
}

TEST_F(dag_scheduler_actor_test, waits_for_an_executor_and_says_so) {
  ASSERT_TRUE(submit(testing::job_builder{}.stage("only", 1).make()));
  world.pass(1s);
  ASSERT_FALSE(hears->progress.empty());
  EXPECT_NE(hears->progress.back()->waiting_for, "");
  auto w = join(5);
  work(w);
  EXPECT_EQ(hears->ends.size(), 1u);
}

TEST_F(dag_scheduler_actor_test, runs_the_tasks_of_a_lost_executor_elsewhere) {
  auto doomed = join(5);
  ASSERT_TRUE(submit(testing::job_builder{}.stage("only", 3).make()));
  doomed.follow();
  ASSERT_FALSE(doomed.logic.running().empty());
  auto other = join(6);
  world.end(doomed.handle);
  work(other);
  ASSERT_EQ(hears->ends.size(), 1u);
  EXPECT_FALSE(hears->ends[0]->failure) << hears->ends[0]->failure.message;
}

TEST_F(dag_scheduler_actor_test, ignores_reports_of_a_lost_executor) {
  auto zombie = join(5);
  ASSERT_TRUE(submit(testing::job_builder{}.stage("only", 1).make()));
  zombie.follow();
  const auto ran = zombie.logic.running();
  ASSERT_EQ(ran.size(), 1u);
  world.pass(11s, 50ms); // silent: given up
  auto other = join(6);
  world.say(zombie.admitted.scheduler, box(zombie.logic.report({zombie.logic.success(ran[0], "too late")})));
  EXPECT_TRUE(hears->ends.empty());
  work(other);
  ASSERT_EQ(hears->ends.size(), 1u);
  EXPECT_EQ(hears->ends[0]->results->values[0], "result of 0");
}

TEST_F(dag_scheduler_actor_test, cancels_the_jobs_of_a_submitter_that_is_gone) {
  auto w = join(5);
  ASSERT_TRUE(submit(testing::job_builder{}.stage("only", 5).make()));
  w.follow();
  world.end(client);
  w.follow();
  world.say(w.admitted.scheduler, box(w.logic.report({})));
  const auto status = status_of(world, front);
  ASSERT_EQ(status.jobs.size(), 1u);
  EXPECT_EQ(status.jobs[0].state, job_state::cancelled);
}

TEST_F(dag_scheduler_actor_test, hears_once_that_a_submitter_of_many_jobs_is_gone) {
  std::ostringstream lines;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines);
  auto config = plain_driver(secret);
  config.loggers = [sink](std::string_view actor) {
    return std::make_shared<spdlog::logger>(std::string{actor}, sink);
  };
  front = world.end_with_system(spawn_driver(world.system(), std::move(config)));
  auto w = join(5);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(submit(testing::job_builder{}.stage("only", 1).make()));
    work(w);
  }
  ASSERT_EQ(hears->ends.size(), 3u);
  world.end(client);
  const auto text = lines.str();
  const auto first = text.find("submitter-gone");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(text.find("submitter-gone", first + 1), std::string::npos) << text;
}

TEST_F(dag_scheduler_actor_test, fails_a_job_that_nothing_here_can_ever_run) {
  join(5);
  const auto greedy = testing::make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "1"}});
  ASSERT_TRUE(submit(testing::job_builder{}.profile(greedy).stage("only", 1).with(1).make()));
  world.pass(40s, 100ms);
  ASSERT_EQ(hears->ends.size(), 1u);
  EXPECT_EQ(hears->ends[0]->failure.code, ec::infeasible);
  EXPECT_THAT(hears->ends[0]->failure.message, HasSubstr("gpu"));
}

TEST_F(dag_scheduler_actor_test, ends_its_jobs_with_the_session) {
  auto w = join(5);
  ASSERT_TRUE(submit(testing::job_builder{}.stage("only", 5).make()));
  w.follow();
  EXPECT_FALSE(world.request(
      front, [](const boxed<acknowledged>&) {}, box(stop_session{"the end"})));
  ASSERT_EQ(hears->ends.size(), 1u);
  EXPECT_EQ(hears->ends[0]->progress.state, job_state::cancelled);
  EXPECT_EQ(submit(testing::job_builder{}.stage("only", 1).make()).error().code, ec::refused);
}

TEST_F(dag_scheduler_actor_test, refuses_what_is_no_job) {
  auto broken = *testing::job_builder{}.stage("only", 1).make();
  broken.stages[0].tasks = 0;
  EXPECT_FALSE(submit(std::make_shared<const job_spec>(broken)));
  EXPECT_FALSE(submit(nullptr));
  EXPECT_TRUE(status_of(world, front).jobs.empty());
}

} // namespace
} // namespace troupe::actor_tests
