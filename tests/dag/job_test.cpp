// The life of a job: order of stages, progress, cancellation, memory.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(job, stages_run_when_all_their_parents_are_complete) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(4));
  const auto job =
      h.submit(job_builder{}.stage("a", 1).stage("b", 1).stage("c", 1).after(0).after(1).stage("d", 1).after(2));
  EXPECT_THAT(h.attempts(), SizeIs(2)) << "a and b do not depend on each other";
  h.succeed(h.attempts_of(job, 0)[0]);
  EXPECT_THAT(h.attempts_of(job, 2), SizeIs(0));
  h.succeed(h.attempts_of(job, 1)[0]);
  EXPECT_THAT(h.attempts_of(job, 2), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_THAT(h.events<events::stage_completed>(), SizeIs(4));
  h.check_idle();
}

TEST(job, every_leaf_has_to_run) {
  scheduler_harness h;
  h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("a", 1).stage("left", 1).after(0).stage("right", 1).after(0));
  h.drain();
  for (const auto& s : h.progress(job).stages) EXPECT_EQ(s.done, 1u) << s.name;
  h.check_idle();
}

TEST(job, progress_counts_tasks_and_measures_them) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{"sums"}.stage("s", 5));
  h.succeed(h.attempts(e)[0], {}, 30ms);
  const auto now = h.progress(job);
  EXPECT_EQ(now.name, "sums");
  EXPECT_EQ(now.state, job_state::running);
  EXPECT_EQ(now.waiting_for, "");
  EXPECT_EQ(now.stages[0].tasks, 5u);
  EXPECT_EQ(now.stages[0].running, 2u);
  EXPECT_EQ(now.stages[0].done, 1u);
  EXPECT_EQ(now.stages[0].executors, 1u);
  EXPECT_EQ(now.stages[0].profile, "default");
  EXPECT_EQ(now.stages[0].run_nanoseconds, 30'000'000u);
  EXPECT_EQ(now.wall_nanoseconds, 30'000'000u);
  h.drain();
  EXPECT_EQ(h.end_of(job)->progress, h.progress(job));
  EXPECT_EQ(h.scheduler.executors()[0].tasks_done, 5u);
  h.check_idle();
}

TEST(job, a_failure_that_no_attempt_can_change_is_the_only_one) {
  task_failure certain;
  certain.cause = failure_cause::certain;
  certain.message = "a folder is no file";
  for (const bool barrier : {false, true}) {
    dag_scheduler::options o;
    o.exclusion.enabled = true;
    o.exclusion.max_failed_tasks_per_executor = 1;
    scheduler_harness h{o};
    const auto e = h.add(executor_builder{});
    auto builder = job_builder{}.max_failures(4).stage("s", 1);
    if (barrier) builder.barrier();
    const auto job = h.submit(builder);
    h.end(h.attempts(e)[0], task_status::failed, certain);
    ASSERT_NE(h.end_of(job), nullptr) << barrier;
    EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("a folder is no file"));
    EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("no other attempt can change"));
    EXPECT_THAT(h.events<events::executor_excluded>(), SizeIs(0)) << "it is not the executor's fault";
    h.check_idle();
  }
}

TEST(job, the_attempt_that_fails_the_job_is_in_its_summary) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.max_failures(1).stage("s", 1));
  h.fail(h.attempts(e)[0], "because");
  ASSERT_NE(h.end_of(job), nullptr);
  const auto& stage = h.end_of(job)->progress.stages[0];
  EXPECT_EQ(stage.failures, 1u);
  EXPECT_EQ(stage.executors, 1u);
  EXPECT_GT(stage.run_nanoseconds, 0u);
  h.check_idle();
}

TEST(job, repeated_reports_are_not_measured) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 3));
  const auto report = h.executor(e).report({h.executor(e).success(h.attempts(e)[0])}, 30ms);
  h.deliver(report);
  h.deliver(report);
  EXPECT_EQ(h.progress(job).stages[0].run_nanoseconds, 30'000'000u);
  h.drain();
}

TEST(job, cancelled_one_keeps_its_slots_until_every_attempt_has_been_reported) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 500));
  const auto stage = h.stage_of(job, 0);
  h.succeed_all(e, 100ns);
  h.cancel(job);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::cancelled);
  EXPECT_EQ(h.end_of(job)->failure.message, "by request");
  EXPECT_EQ(h.progress(job).state, job_state::cancelled);
  EXPECT_THAT(h.last_orders[e].removed_stages, ElementsAre(stage));
  EXPECT_THAT(h.last_orders[e].revoked, SizeIs(0));
  const auto next = h.submit(job_builder{}.stage("next", 1));
  auto doomed = h.attempts(e);
  ASSERT_GT(doomed.size(), 100u);
  EXPECT_FALSE(h.release(e).granted);
  const auto last = doomed.back();
  doomed.pop_back();
  std::vector<fake_end> ends;
  for (const auto& a : doomed) ends.push_back(h.executor(e).success(a));
  h.deliver(h.executor(e).report(ends));
  EXPECT_THAT(h.attempts_of(next, 0), SizeIs(0)) << "one attempt may still use the slot";
  h.deliver(h.executor(e).report({h.executor(e).success(last)}));
  EXPECT_THAT(h.attempts_of(next, 0), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.scheduler.stale_messages(), 0u);
  h.check_idle();
}

TEST(job, repeated_end_of_a_cancelled_attempt_frees_nothing_twice) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  h.fail(h.attempts(e)[0], "once");
  const auto retry = h.attempts(e)[0];
  h.cancel(job);
  auto late = retry;
  late.attempt = 0;
  h.deliver(h.executor(e).report({fake_end{late, task_status::killed, {}, {}}}));
  EXPECT_EQ(h.scheduler.pool().lease_count(), 1u) << "the retry still runs";
  h.drain();
  h.check_idle();
}

TEST(job, cancelling_what_ended_or_never_was_is_harmless) {
  scheduler_harness h;
  h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  h.drain();
  h.cancel(job);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  effects::list out;
  EXPECT_FALSE(h.scheduler.on_job_cancelled({99}, "x", h.now, out));
  EXPECT_TRUE(out.empty());
  h.check_idle();
}

TEST(job, cancel_while_nothing_runs_yet) {
  scheduler_harness h;
  const auto job = h.submit(job_builder{}.stage("s", 5));
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("there is no executor yet"));
  h.cancel(job);
  EXPECT_EQ(h.progress(job).state, job_state::cancelled);
  h.check_idle();
}

TEST(job, attempts_lost_with_an_executor_after_the_end_are_forgotten) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(3));
  const auto job = h.submit(job_builder{}.stage("s", 3));
  h.cancel(job);
  h.lose(e);
  EXPECT_THAT(h.events<events::task_failed>(), SizeIs(0));
  h.check_idle();
}

TEST(job, many_jobs_leave_nothing_behind) {
  scheduler_harness h;
  for (int i = 0; i < 3; ++i) h.add(executor_builder{}.cores(2));
  for (int i = 0; i < 50; ++i)
    h.submit(job_builder{}.stage("map", 3).buckets(2).stage("reduce", 2).reads(0).stage("last", 1).after(1));
  h.drain();
  for (std::uint64_t i = 1; i <= 50; ++i) EXPECT_EQ(h.progress({i}).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
