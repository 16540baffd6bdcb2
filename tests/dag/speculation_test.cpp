// Second attempts of tasks that take longer than others.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

dag_scheduler::options speculating() {
  dag_scheduler::options o;
  o.speculation.enabled = true;
  o.speculation.quantile = share{share::units_per_whole / 2};
  o.speculation.multiplier = share::whole(5);
  return o;
}

/// Four tasks on two executors of two cores on hosts of their own; all but partition 3 have taken a second, and
/// partition 3, on `slow`, has run for three.
struct straggler {
  explicit straggler(dag_scheduler::options options = speculating()) : h(options) {
    fast = h.add(executor_builder{}.cores(2).host("a"));
    slow = h.add(executor_builder{}.cores(2).host("b"));
    job = h.submit(job_builder{}.max_failures(2).stage("s", 4));
    for (const auto& a : h.attempts())
      if (a.partition != 3) h.succeed(a, {}, 1s);
    if (h.attempts(slow).empty()) std::swap(fast, slow);
    first = h.attempts(slow).at(0);
  }
  scheduler_harness h;
  executor_id fast, slow;
  job_id job;
  fake_attempt first;
};

TEST(speculation, gives_a_task_that_takes_long_a_second_attempt_elsewhere) {
  straggler s;
  s.h.tick(1800ms);
  EXPECT_THAT(s.h.attempts(s.fast), IsEmpty()) << "not yet five times the median";
  s.h.tick(200ms);
  ASSERT_THAT(s.h.attempts(s.fast), SizeIs(1));
  const auto copy = s.h.attempts(s.fast)[0];
  EXPECT_EQ(copy.partition, 3u);
  EXPECT_EQ(copy.attempt, 1u);
  EXPECT_THAT(s.h.events<events::speculative_task_submitted>(),
              ElementsAre(events::speculative_task_submitted{s.first.stage, 3, 0, s.slow, 0}));
  s.h.tick(10s);
  EXPECT_THAT(s.h.attempts(), SizeIs(2)) << "one copy, not more";
  s.h.succeed(copy);
  EXPECT_EQ(s.h.progress(s.job).state, job_state::succeeded);
  const auto placed = *s.h.scheduler.placements(s.job);
  EXPECT_EQ(placed.back().attempt, 1u);
  EXPECT_EQ(placed.back().executor, s.fast) << "where the accepted attempt ran";
  s.h.drain();
  s.h.check_idle();
}

TEST(speculation, the_first_attempt_may_be_faster_after_all) {
  straggler s;
  s.h.tick(2s);
  ASSERT_THAT(s.h.attempts(), SizeIs(2));
  s.h.succeed(s.first);
  EXPECT_EQ(s.h.progress(s.job).state, job_state::succeeded);
  EXPECT_EQ(s.h.progress(s.job).stages[0].failures, 0u);
  EXPECT_EQ(s.h.scheduler.placements(s.job)->back().attempt, 0u);
  s.h.drain();
  s.h.check_idle();
}

TEST(speculation, in_a_stage_that_goes_on_the_slower_attempt_is_killed) {
  scheduler_harness h{speculating()};
  const auto a = h.add(executor_builder{}.cores(2).host("a"));
  const auto b = h.add(executor_builder{}.cores(1).host("b"));
  const auto job = h.submit(job_builder{}.stage("map", 6).buckets(1).stage("reduce", 1).reads(0));
  // b's task takes long, and so does one of a's.
  const auto slow = h.attempts(b).at(0);
  h.tick(1s);
  for (int i = 0; i < 3; ++i) h.succeed(h.attempts(a)[0]);
  h.tick(3s);
  h.succeed(h.attempts(a)[0]);
  ASSERT_THAT(h.attempts(a), SizeIs(2)) << "the last task, and the copy";
  const auto copy = h.attempts(a)[0].partition == slow.partition ? h.attempts(a)[0] : h.attempts(a)[1];
  ASSERT_EQ(copy.partition, slow.partition);
  h.succeed(copy);
  EXPECT_EQ(h.last_orders.at(b).kills, (std::vector<kill_task>{{slow.stage, slow.partition, 0}}));
  EXPECT_EQ(h.progress(job).stages[0].done, 5u);
  h.end(slow, task_status::killed);
  EXPECT_EQ(h.progress(job).stages[0].done, 5u);
  EXPECT_EQ(h.progress(job).stages[0].failures, 0u);
  EXPECT_EQ(h.events<events::task_failed>().back().message, "another attempt of the task was faster");
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(speculation, a_success_that_comes_second_changes_nothing) {
  scheduler_harness h{speculating()};
  const auto a = h.add(executor_builder{}.cores(2).host("a"));
  const auto b = h.add(executor_builder{}.cores(1).host("b"));
  const auto job = h.submit(job_builder{}.stage("s", 6));
  const auto slow = h.attempts(b).at(0);
  h.tick(1s);
  for (int i = 0; i < 3; ++i) h.succeed(h.attempts(a)[0], "first");
  h.tick(3s);
  h.succeed(h.attempts(a)[0], "first");
  for (const auto& each : h.attempts(a))
    if (each.partition == slow.partition) h.succeed(each, "first");
  h.succeed(slow, "second"); // crossed the order to end it
  h.drain();
  ASSERT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.values(job)[slow.partition], "first");
  h.check_idle();
}

TEST(speculation, either_attempt_may_fail_and_the_other_goes_on) {
  for (const bool copy_fails : {true, false}) {
    straggler s;
    s.h.tick(2s);
    const auto copy = s.h.attempts(s.fast).at(0);
    s.h.fail(copy_fails ? copy : s.first, "bad luck");
    EXPECT_THAT(s.h.attempts(), SizeIs(1)) << "no third one";
    EXPECT_EQ(s.h.progress(s.job).stages[0].failures, 1u);
    s.h.fail(copy_fails ? s.first : copy, "worse");
    ASSERT_NE(s.h.end_of(s.job), nullptr) << "two failures of one task are too many";
    s.h.check_idle();
  }
}

TEST(speculation, a_task_that_lost_both_attempts_is_tried_again_under_a_new_number) {
  straggler s;
  s.h.tick(2s);
  s.h.lose(s.fast, "gone", false);
  s.h.end(s.first, task_status::killed);
  ASSERT_THAT(s.h.attempts(), SizeIs(1));
  EXPECT_EQ(s.h.attempts()[0].attempt, 2u) << "the copy has had 1";
  s.h.drain();
  EXPECT_EQ(s.h.progress(s.job).state, job_state::succeeded);
  s.h.check_idle();
}

TEST(speculation, the_executor_of_the_first_attempt_is_lost) {
  straggler s;
  s.h.tick(2s);
  const auto copy = s.h.attempts(s.fast).at(0);
  s.h.lose(s.slow);
  EXPECT_THAT(s.h.attempts(), SizeIs(1));
  s.h.succeed(copy);
  EXPECT_EQ(s.h.progress(s.job).state, job_state::succeeded);
  s.h.check_idle();
}

TEST(speculation, waits_for_an_executor_on_another_host_if_there_is_one) {
  straggler s;
  const auto busy = s.h.submit(job_builder{}.stage("busy", 3)); // one of them beside the straggler
  ASSERT_THAT(s.h.attempts(s.fast), SizeIs(2));
  const auto same = s.h.add(executor_builder{}.cores(2).host(s.h.executor(s.slow).info().host));
  s.h.tick(2s);
  EXPECT_THAT(s.h.events<events::speculative_task_submitted>(), SizeIs(1));
  EXPECT_THAT(s.h.attempts(same), IsEmpty()) << "there is another host";
  s.h.succeed(s.h.attempts(s.fast)[0]);
  ASSERT_THAT(s.h.attempts(s.fast), SizeIs(2));
  EXPECT_TRUE(s.h.attempts(s.fast)[0].partition == 3 || s.h.attempts(s.fast)[1].partition == 3);
  s.h.drain();
  EXPECT_EQ(s.h.progress(busy).state, job_state::succeeded);
  s.h.check_idle();
}

TEST(speculation, on_one_host_takes_another_executor) {
  scheduler_harness h{speculating()};
  const auto a = h.add(executor_builder{}.cores(1).host("same"));
  const auto b = h.add(executor_builder{}.cores(1).host("same"));
  h.submit(job_builder{}.stage("s", 2));
  h.tick(1s);
  h.succeed(h.attempts(a)[0]);
  h.tick(5s);
  ASSERT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_EQ(h.attempts(a)[0].partition, h.attempts(b)[0].partition);
  h.drain();
  h.check_idle();
}

TEST(speculation, has_no_place_on_the_executor_of_the_first_attempt) {
  scheduler_harness h{speculating()};
  const auto a = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 2));
  h.tick(1s);
  h.succeed(h.attempts(a)[0]);
  h.tick(5s);
  EXPECT_THAT(h.attempts(), SizeIs(1));
  const auto more = h.submit(job_builder{}.stage("later", 1));
  EXPECT_THAT(h.attempts(), SizeIs(2)) << "what comes later is not kept waiting";
  h.drain();
  EXPECT_EQ(h.progress(more).state, job_state::succeeded);
  h.check_idle();
}

TEST(speculation, needs_a_part_of_the_stage_done_a_minimum_of_time_and_to_be_wanted) {
  for (const int which : {0, 1, 2}) {
    auto options = speculating();
    if (which == 0) options.speculation.quantile = share::whole(1);
    if (which == 1) options.speculation.min_task_runtime = 1h;
    if (which == 2) options.speculation.enabled = false;
    straggler s{options};
    s.h.tick(10s);
    EXPECT_THAT(s.h.attempts(), SizeIs(1)) << which;
    s.h.drain();
    s.h.check_idle();
  }
}

TEST(speculation, that_has_no_place_keeps_nobody_waiting_where_pools_share) {
  auto options = speculating();
  options.sharing.mode = sharing_mode::fair;
  scheduler_harness h{options};
  const auto a = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 2));
  h.succeed(h.attempts(a)[0]);
  h.tick(9s);
  ASSERT_THAT(h.events<events::speculative_task_submitted>(), SizeIs(1));
  const auto more = h.submit(job_builder{}.stage("later", 1));
  EXPECT_THAT(h.attempts_of(more, 0), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(speculation, a_copy_that_ends_without_blame_is_made_again) {
  straggler s;
  s.h.tick(2s);
  s.h.end(s.h.attempts(s.fast).at(0), task_status::killed);
  ASSERT_THAT(s.h.attempts(s.fast), SizeIs(1));
  EXPECT_EQ(s.h.attempts(s.fast)[0].attempt, 2u) << "a number of its own";
  s.h.succeed(s.h.attempts(s.fast)[0]);
  EXPECT_EQ(s.h.progress(s.job).state, job_state::succeeded);
  s.h.drain();
  s.h.check_idle();
}

TEST(speculation, a_wish_for_a_copy_fails_nobody) {
  auto options = speculating();
  options.exclusion.enabled = true;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{}.cores(3));
  const auto job = h.submit(job_builder{}.stage("s", 4));
  const auto slow = h.attempts(e).at(0);
  for (int i = 0; i < 3; ++i) h.succeed(h.attempts(e).at(1));
  const auto other = h.submit(job_builder{}.max_failures(9).stage("fails", 2));
  for (const auto& a : h.attempts_of(other, 0)) h.fail(a, "broken");
  ASSERT_THAT(h.events<events::executor_excluded>(), SizeIs(1));
  h.tick(9s);
  ASSERT_THAT(h.events<events::speculative_task_submitted>(), SizeIs(1));
  h.tick(10min);
  EXPECT_NE(h.end_of(other), nullptr) << "nobody is left for it";
  EXPECT_EQ(h.end_of(job), nullptr) << "its task runs";
  h.succeed(slow);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST(speculation, a_wish_for_a_copy_claims_no_slot_that_it_cannot_use) {
  scheduler_harness h{speculating()};
  const auto e = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 2));
  h.succeed(h.attempts(e).at(1));
  const auto wide = make_profile({}, {{"cpus", "1"}, {"memory", "1"}});
  const auto later = h.submit(job_builder{}.profile(wide).stage("later", 9).with(1));
  h.tick(9s);
  ASSERT_THAT(h.events<events::speculative_task_submitted>(), SizeIs(1));
  for (int i = 0; i < 3; ++i) {
    ASSERT_THAT(h.attempts_of(later, 0), SizeIs(1)) << i;
    h.succeed(h.attempts_of(later, 0)[0]);
  }
  h.drain();
  h.check_idle();
}

TEST(speculation, of_a_job_that_ends_is_forgotten) {
  straggler s;
  s.h.tick(2s);
  s.h.cancel(s.job);
  s.h.drain();
  s.h.check_idle();
}

} // namespace
} // namespace troupe::testing
