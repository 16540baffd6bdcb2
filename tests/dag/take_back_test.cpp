// Work that was queued behind a task which turns out to be long goes where a slot is free for it.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// One executor that has worked off some short tasks and has a queue of `queue` behind the one that runs, the last ones
/// of the stage; another executor comes later.
struct take_back : ::testing::Test {
  static constexpr std::uint32_t queue = 10;
  scheduler_harness h;
  executor_id first = h.add(executor_builder{});
  job_id job;
  executor_id second;

  void SetUp() override {
    job = h.submit(job_builder{}.stage("s", 2 + queue));
    h.succeed_all(first, 100us); // a millisecond's worth is queued ahead from here on
    ASSERT_THAT(h.attempts(first), SizeIs(1 + queue));
  }
  void recall() {
    second = h.add(executor_builder{});
    h.tick();
    ASSERT_THAT(h.last_orders, SizeIs(1));
    ASSERT_THAT(h.last_orders[first].recalled, ElementsAre(h.attempts(first)[0].lease));
    ASSERT_THAT(h.attempts(first), SizeIs(1)) << "the one that runs, runs on";
  }
  /// What the executor has to say of itself comes.
  void answer(executor_id e) { h.deliver(h.executor(e).report({})); }
};

TEST_F(take_back, what_waits_behind_a_long_task_runs_where_a_slot_is_free) {
  recall();
  EXPECT_THAT(h.attempts(second), IsEmpty()) << "it may have begun";
  answer(first);
  ASSERT_THAT(h.attempts(second), SizeIs(queue));
  EXPECT_THAT(h.attempts(first), SizeIs(1)) << "not put behind the same task again";
  for (const auto& a : h.attempts(second)) EXPECT_EQ(a.attempt, 1u);
  h.succeed_all(second, 100us);
  EXPECT_EQ(h.progress(job).state, job_state::running);
  h.succeed_all(first, 5s);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.values(job).size(), 2 + queue);
  h.check_idle();
}

TEST_F(take_back, it_is_nobodys_failure) {
  recall();
  answer(first);
  EXPECT_THAT(h.events<events::task_failed>(), IsEmpty());
  EXPECT_EQ(h.progress(job).stages[0].failures, 0u);
  EXPECT_EQ(h.progress(job).stages[0].executors, 1u) << "only where a task was done";
  h.drain();
  h.check_idle();
}

TEST_F(take_back, attempts_that_never_ran_say_nothing_about_the_run_time) {
  stage_spec spec;
  spec.tasks = 4;
  stage_run stage{stage_id{1}, job_id{1}, 0, spec, {0}};
  outcome_batch batch;
  batch.count = 4;
  batch.statuses = {task_status::succeeded, task_status::given_back, task_status::given_back, task_status::given_back};
  batch.run_nanoseconds = 100'000;
  stage.measure(batch);
  EXPECT_EQ(stage.mean_nanoseconds, 100'000u);
  batch.count = 1;
  batch.statuses = {task_status::given_back};
  batch.run_nanoseconds = 0;
  stage.measure(batch);
  EXPECT_EQ(stage.mean_nanoseconds, 100'000u);
}

TEST_F(take_back, a_queue_that_nobody_has_asked_for_goes_with_its_executor) {
  second = h.add(executor_builder{});
  h.lose(first);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(take_back, nothing_is_taken_back_while_no_slot_is_free) {
  h.tick();
  h.tick();
  EXPECT_THAT(h.last_orders, IsEmpty());
  EXPECT_THAT(h.attempts(first), SizeIs(1 + queue));
  h.drain();
  h.check_idle();
}

TEST_F(take_back, nor_from_a_lease_with_news) {
  second = h.add(executor_builder{});
  h.now += 200ms;
  h.succeed(h.attempts(first)[0], "x", 100us);
  h.tick(5ms);
  EXPECT_THAT(h.last_orders, IsEmpty());
  h.tick(6ms);
  EXPECT_THAT(h.last_orders[first].recalled, SizeIs(1));
  answer(first);
  h.drain();
  h.check_idle();
}

TEST_F(take_back, it_is_asked_for_once_until_there_is_news) {
  recall();
  h.tick();
  EXPECT_THAT(h.last_orders, IsEmpty()) << "the answer is on its way";
  // The task was not that long after all; the answer crosses its outcome, and the lease is like any other.
  h.succeed(h.attempts(first)[0], "x", 100us); // together with what was given back
  EXPECT_THAT(h.attempts(), SizeIs(queue));
  h.drain(100us);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(take_back, a_slot_on_the_same_executor_will_do) {
  scheduler_harness one;
  const auto e = one.add(executor_builder{}.cores(2));
  const auto id = one.submit(job_builder{}.stage("s", 12));
  const auto running = one.attempts(e);
  ASSERT_THAT(running, SizeIs(2));
  for (const auto& a : running) one.succeed(a, "x", 100us);
  // One lease is done with its share, the other one with nothing.
  const auto of_first = [&] {
    auto all = one.attempts(e);
    std::erase_if(all, [&](const fake_attempt& a) { return a.lease != running[0].lease; });
    return all;
  };
  for (auto all = of_first(); !all.empty(); all = of_first()) one.succeed(all[0], "x", 100us);
  const auto left = one.attempts(e);
  ASSERT_THAT(left, SizeIs(::testing::Gt(1)));
  one.tick();
  EXPECT_THAT(one.last_orders[e].recalled, ElementsAre(left[0].lease));
  one.deliver(one.executor(e).report({}));
  EXPECT_THAT(one.executor(e).running(), SizeIs(2));
  one.drain();
  EXPECT_EQ(one.progress(id).state, job_state::succeeded);
  one.check_idle();
}

TEST_F(take_back, an_attempt_that_began_meanwhile_simply_ends) {
  const auto all = h.attempts(first);
  // The first outcome and the order cross each other: by the time that this comes, the second task runs.
  const auto late = h.executor(first).report({h.executor(first).success(all[0], "x")}, 100us);
  recall();
  answer(first);
  h.deliver(late);
  EXPECT_THAT(h.attempts(second), SizeIs(queue - 1));
  EXPECT_THAT(h.attempts(first), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(take_back, late_news_of_what_was_given_back_are_ignored) {
  const auto given = h.attempts(first).back();
  recall();
  auto twice = h.executor(first).report({});
  h.deliver(twice);
  const auto stale = h.scheduler.stale_messages();
  h.deliver(twice);
  EXPECT_EQ(h.scheduler.stale_messages(), stale + queue);
  auto forged = h.executor(first).report({fake_end{given, task_status::succeeded, inline_result("x"), {}}}, 100us);
  h.deliver(forged);
  EXPECT_EQ(h.scheduler.stale_messages(), stale + queue + 1);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(take_back, the_job_may_end_in_the_meantime) {
  recall();
  h.cancel(job);
  answer(first);
  h.drain();
  h.check_idle();
}

TEST_F(take_back, the_executor_may_go_in_the_meantime) {
  recall();
  h.lose(first);
  EXPECT_THAT(h.attempts(second), SizeIs(::testing::Ge(1)));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(take_back, what_is_given_back_for_ever_ends_its_job) {
  for (int i = 0; i < 1500 && !h.end_of(job); ++i) {
    auto ends = std::vector<fake_end>{};
    for (const auto& a : h.attempts(first)) ends.push_back({a, task_status::given_back, {}, {}});
    h.deliver(h.executor(first).report(ends));
  }
  ASSERT_TRUE(h.end_of(job));
  EXPECT_EQ(h.progress(job).state, job_state::failed);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
