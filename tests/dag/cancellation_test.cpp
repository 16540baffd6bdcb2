// Groups and stages that are cancelled, and attempts that do not end when they should.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// -- groups

TEST(job_groups, cancelling_one_ends_its_jobs_and_no_others) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2));
  const auto done = h.submit(job_builder{}.group("nightly").stage("s", 1));
  h.drain();
  const auto running = h.submit(job_builder{}.group("nightly").stage("s", 3));
  const auto other = h.submit(job_builder{}.group("weekly").stage("s", 1));
  const auto none = h.submit(job_builder{}.stage("s", 1));
  const auto waiting = h.submit(job_builder{}.group("nightly").stage("s", 1));
  const auto ended = h.cancel_group("nightly");
  ASSERT_TRUE(ended);
  EXPECT_THAT(*ended, ElementsAre(running, waiting));
  for (const auto job : {running, waiting}) {
    EXPECT_EQ(h.progress(job).state, job_state::cancelled);
    EXPECT_EQ(h.progress(job).group, "nightly");
    EXPECT_EQ(h.end_of(job)->failure, make_error(ec::cancelled, "its group nightly was cancelled: by request"));
  }
  EXPECT_EQ(h.progress(done).state, job_state::succeeded);
  h.drain();
  for (const auto job : {other, none}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_THAT(*h.cancel_group("nightly"), IsEmpty()) << "all have ended";
  h.check_idle();
}

TEST(job_groups, one_that_no_known_job_is_of_is_an_error) {
  scheduler_harness h;
  const auto job = h.submit(job_builder{}.stage("s", 1));
  EXPECT_EQ(h.cancel_group("nightly").error().code, ec::not_found);
  EXPECT_THAT(h.cancel_group("nightly").error().message, HasSubstr("there is no job of group 'nightly'"));
  EXPECT_EQ(h.cancel_group("").error().code, ec::not_found) << "jobs of no group are no group";
  EXPECT_EQ(h.end_of(job), nullptr);
}

// -- stages

TEST(cancelled_stages, fail_the_job_that_needs_them_and_end_their_attempts) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("map", 1).stage("reduce", 4).after(0).stage("last", 1).after(1));
  h.succeed(h.attempts_of(job, 0).at(0));
  const auto stage = h.stage_of(job, 1);
  ASSERT_TRUE(h.cancel_stage(job, 1));
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.progress(job).state, job_state::failed);
  EXPECT_EQ(h.end_of(job)->failure, make_error(ec::cancelled, "stage 1 (reduce) was cancelled: by request"));
  EXPECT_THAT(h.last_orders[e].removed_stages, ::testing::Contains(stage));
  EXPECT_TRUE(h.cancel_stage(job, 1)) << "it has ended";
  h.drain();
  h.check_idle();
}

TEST(cancelled_stages, may_be_waiting_or_belong_to_a_job_that_waits) {
  scheduler_harness h;
  h.answer = nullptr;
  const auto held = h.submit(job_builder{}.stage("s", 1));
  ASSERT_TRUE(h.cancel_stage(held, 0));
  EXPECT_EQ(h.progress(held).state, job_state::failed);
  h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("first", 1).stage("second", 1).after(0));
  ASSERT_TRUE(h.cancel_stage(job, 1));
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("stage 1 (second) was cancelled"));
  h.drain();
  h.check_idle();
}

TEST(cancelled_stages, that_are_complete_or_are_none_change_nothing) {
  scheduler_harness h;
  h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("first", 1).stage("second", 1).after(0));
  h.succeed(h.attempts_of(job, 0).at(0));
  EXPECT_TRUE(h.cancel_stage(job, 0));
  EXPECT_EQ(h.end_of(job), nullptr);
  EXPECT_EQ(h.cancel_stage(job, 2).error(),
            make_error(ec::not_found, "job 1 has no stage 2: its stages have the numbers 0 to 1"));
  EXPECT_EQ(h.cancel_stage({99}, 0).error().code, ec::not_found);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_TRUE(h.cancel_stage(job, 1));
  EXPECT_EQ(h.cancel_stage(job, 2).error().code, ec::not_found) << "also when the job has ended";
  h.check_idle();
}

// -- attempts that do not end

overdue_attempt overdue(const fake_attempt& a) {
  return {a.stage, a.partition, a.attempt, a.lease, {1}, "stubborn", 10'000'000'000};
}

void tell_overdue(scheduler_harness& h, executor_id e, std::vector<overdue_attempt> which) {
  auto report = h.executor(e).report({});
  report.overdue = std::move(which);
  h.deliver(report);
}

TEST(overdue_attempts, that_another_one_has_beaten_cost_their_slot_and_not_their_executor) {
  dag_scheduler::options options;
  options.speculation = {true, share{share::units_per_whole / 4}, share::whole(2), 1ms};
  scheduler_harness h{options};
  const auto a = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("s", 4));
  const auto slow = h.attempts(a).at(0);
  h.succeed(h.attempts(a).at(1));
  const auto b = h.add(executor_builder{}.cores(3));
  h.tick(9s);
  for (const auto& each : h.attempts(b))
    if (each.partition == slow.partition) h.succeed(each);
  ASSERT_EQ(h.progress(job).state, job_state::running);
  tell_overdue(h, a, {overdue(slow)});
  EXPECT_THAT(h.given_up, IsEmpty());
  ASSERT_THAT(h.events<events::attempt_overdue>(), SizeIs(1));
  EXPECT_FALSE(h.events<events::attempt_overdue>()[0].replaced);
  h.end(slow, task_status::killed);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(overdue_attempts, in_an_executor_process_have_it_replaced) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(4));
  const auto maps = h.submit(job_builder{}.max_failures(1).stage("map", 1).buckets(1).stage("reduce", 1).reads(0));
  h.succeed(h.attempts_of(maps, 0).at(0));
  const auto stubborn = h.submit(job_builder{}.stage("stubborn", 1));
  const auto beside = h.submit(job_builder{}.max_failures(1).stage("s", 1));
  const auto attempt = h.attempts_of(stubborn, 0).at(0);
  h.cancel(stubborn);
  tell_overdue(h, e, {overdue(attempt)});
  ASSERT_THAT(h.given_up, SizeIs(1));
  EXPECT_EQ(h.given_up[0].executor, e);
  EXPECT_EQ(h.given_up[0].epoch, h.executor(e).info().epoch);
  EXPECT_FALSE(h.given_up[0].lost) << "nothing there is to blame";
  EXPECT_THAT(h.given_up[0].cause,
              AllOf(HasSubstr("stage stubborn of job 1"), HasSubstr("troupe.task.kill-grace"), HasSubstr("10000ms")));
  EXPECT_TRUE(h.last_orders[e].stop);
  const auto told = h.events<events::attempt_overdue>();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0], (events::attempt_overdue{{1}, attempt.stage, 0, 0, e, true, h.given_up[0].cause}));
  const auto later = h.submit(job_builder{}.stage("s", 1));
  EXPECT_THAT(h.attempts_of(later, 0), IsEmpty()) << "nothing starts there any more";
  h.lose(e, h.given_up[0].cause, h.given_up[0].lost);
  h.add(executor_builder{}.cores(4));
  EXPECT_THAT(h.attempts_of(maps, 0), SizeIs(1)) << "its output went with the executor";
  h.drain();
  for (const auto job : {maps, beside, later}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_THAT(h.events<events::task_failed>(), IsEmpty());
  h.check_idle();
}

TEST(overdue_attempts, that_have_a_time_out_are_to_blame_themselves) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto late = h.submit(job_builder{}.max_failures(1).stage("late", 1));
  const auto beside = h.submit(job_builder{}.max_failures(1).stage("s", 1));
  auto attempt = overdue(h.attempts_of(late, 0).at(0));
  attempt.timed_out = true;
  tell_overdue(h, e, {attempt});
  ASSERT_THAT(h.given_up, SizeIs(1));
  EXPECT_THAT(h.given_up[0].cause, HasSubstr("since it ran into its task-timeout"));
  EXPECT_EQ(h.end_of(late), nullptr) << "its executor is ended first";
  h.lose(e, h.given_up[0].cause, h.given_up[0].lost);
  ASSERT_NE(h.end_of(late), nullptr);
  EXPECT_EQ(h.end_of(late)->failure.code, ec::task_failed);
  EXPECT_EQ(h.end_of(beside), nullptr);
  h.add(executor_builder{}.cores(2));
  h.drain();
  EXPECT_EQ(h.progress(beside).state, job_state::succeeded);
  h.check_idle();
}

TEST(overdue_attempts, that_have_a_time_out_fail_their_job_where_nothing_can_end_them) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2).in_process());
  const auto late = h.submit(job_builder{}.stage("late", 1));
  const auto fake = h.attempts_of(late, 0).at(0);
  auto attempt = overdue(fake);
  attempt.timed_out = true;
  tell_overdue(h, e, {attempt});
  ASSERT_NE(h.end_of(late), nullptr);
  EXPECT_EQ(h.end_of(late)->failure.code, ec::timed_out);
  h.end(fake, task_status::killed);
  h.check_idle();
}

TEST(overdue_attempts, in_the_drivers_process_cost_a_slot_until_they_end) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2).in_process());
  const auto stubborn = h.submit(job_builder{}.stage("stubborn", 1));
  const auto attempt = h.attempts_of(stubborn, 0).at(0);
  h.cancel(stubborn);
  tell_overdue(h, e, {overdue(attempt)});
  EXPECT_THAT(h.given_up, IsEmpty());
  const auto told = h.events<events::attempt_overdue>();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_FALSE(told[0].replaced);
  const auto job = h.submit(job_builder{}.stage("s", 2));
  ASSERT_THAT(h.attempts_of(job, 0), SizeIs(1)) << "the other slot is as good as ever";
  const auto waits = h.submit(job_builder{}.stage("s", 1));
  EXPECT_THAT(h.progress(waits).waiting_for, AllOf(HasSubstr("a slot is taken by cancelled attempts that do not end"),
                                                   HasSubstr("stubborn of job 1")));
  h.end(attempt, task_status::killed);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(2));
  EXPECT_THAT(h.progress(waits).waiting_for, ::testing::Not(HasSubstr("cancelled attempts")));
  h.drain();
  h.check_idle();
}

TEST(overdue_attempts, send_what_waits_behind_them_elsewhere) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.in_process());
  const auto job = h.submit(job_builder{}.max_failures(1).stage("s", 500));
  h.succeed_all(e, 100ns);
  auto queue = h.attempts(e);
  ASSERT_GT(queue.size(), 100u);
  const auto front = queue.front();
  queue.erase(queue.begin());
  tell_overdue(h, e, {overdue(front)});
  ASSERT_THAT(h.last_orders[e].kills, SizeIs(queue.size()));
  for (const auto& kill : h.last_orders[e].kills) EXPECT_NE(kill.partition, front.partition);
  std::vector<fake_end> ends;
  for (const auto& a : queue) ends.push_back({a, task_status::killed, {}, {}});
  h.deliver(h.executor(e).report(ends, 100ns));
  EXPECT_THAT(h.attempts(e), SizeIs(1)) << "nothing more is queued behind it";
  const auto b = h.add(executor_builder{}.in_process());
  EXPECT_FALSE(h.attempts(b).empty());
  h.drain(100ns);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(overdue_attempts, that_have_ended_or_never_were_are_stale_news) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto other = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 2));
  const auto running = h.attempts(e).at(0);
  auto wrong = overdue(running);
  wrong.attempt = 1;
  tell_overdue(h, e, {wrong});
  tell_overdue(h, other, {overdue(running)});
  h.succeed(running);
  tell_overdue(h, e, {overdue(running)});
  EXPECT_EQ(h.scheduler.stale_messages(), 3u);
  EXPECT_THAT(h.given_up, IsEmpty());
  EXPECT_THAT(h.events<events::attempt_overdue>(), IsEmpty());
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(overdue_attempts, go_with_their_executor) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.in_process());
  const auto job = h.submit(job_builder{}.stage("stubborn", 1));
  const auto attempt = h.attempts(e).at(0);
  h.cancel(job);
  tell_overdue(h, e, {overdue(attempt)});
  EXPECT_FALSE(h.scheduler.is_idle());
  h.lose(e);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
