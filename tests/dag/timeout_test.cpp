// Time-outs of stages.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(stage_timeout, fails_the_job_of_a_stage_that_takes_longer) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("quick", 1).stage("slow", 3).after(0).timeout(10s));
  h.tick(1h);
  EXPECT_EQ(h.end_of(job), nullptr) << "the first stage has none, and the second has not begun";
  h.succeed_all(e);
  const auto slow = h.stage_of(job, 1);
  h.succeed(h.attempts(e)[0]);
  h.tick(7s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(3s);
  EXPECT_EQ(h.last_orders[e].late_stages, std::vector{slow}) << "not the quick one";
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::timed_out);
  EXPECT_THAT(h.end_of(job)->failure.message,
              HasSubstr("stage 1 (slow) did not end within its time-out of 10000ms: 1 of 3 tasks are done"));
  h.drain();
  h.check_idle();
}

TEST(stage_timeout, says_where_its_commands_have_left_what_they_printed) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("slow", 2).command().timeout(10s));
  h.tick(10s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("/.troupe/logs for what those that ran have printed"));
  h.drain();
  h.check_idle();
}

TEST(stage_timeout, says_what_it_waited_for) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{true, false, {}}; };
  const auto job = h.submit(job_builder{}.stage("s", 1).timeout(10s));
  h.tick(10s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("0 of 1 tasks are done; stage 0 (s): no executor satisfies its profile"),
                    HasSubstr("there is no executor yet")));
  h.check_idle();
}

TEST(stage_timeout, is_of_each_attempt_of_the_stage) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("map", 1).buckets(1).timeout(10s).stage("reduce", 1).reads(0));
  h.tick(9s);
  h.succeed_all(a);
  h.tick(1h);
  EXPECT_EQ(h.end_of(job), nullptr) << "it has ended in time";
  h.lose(a);
  const auto b = h.add(executor_builder{}.cores(1));
  h.tick(9s);
  EXPECT_EQ(h.end_of(job), nullptr) << "its second attempt has its own time";
  h.succeed_all(b);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(stage_timeout, goes_with_its_job) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("a", 1).timeout(10s));
  h.cancel(job);
  h.drain();
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
