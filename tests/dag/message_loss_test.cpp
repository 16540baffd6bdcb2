// Messages that get lost between the scheduler and an executor that goes on sending heartbeats: nobody waits for ever.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class message_loss : public ::testing::Test {
protected:
  static dag_scheduler::options options() {
    dag_scheduler::options o;
    o.loss_timeout = 5s;
    return o;
  }
  void beats(int count) {
    for (int i = 0; i < count; ++i) h.beat(1s);
  }
  scheduler_harness h{options()};
  executor_id e = h.add(executor_builder{});
};

TEST_F(message_loss, an_executor_that_lacks_its_orders_is_given_up) {
  h.orders_get_lost = true;
  const auto job = h.submit(job_builder{}.stage("s", 1));
  h.orders_get_lost = false;
  beats(7); // the first one says which orders there were, the second one that they are not there
  EXPECT_THAT(h.given_up, IsEmpty());
  beats(1);
  ASSERT_THAT(h.given_up, SizeIs(1));
  EXPECT_EQ(h.given_up[0].executor, e);
  EXPECT_EQ(h.given_up[0].epoch, h.executor(e).info().epoch);
  EXPECT_THAT(h.given_up[0].cause, HasSubstr("orders from number 1 on"));

  h.lose(e, h.given_up[0].cause);
  h.add(executor_builder{});
  h.drain();
  EXPECT_NE(h.end_of(job), nullptr) << "its task ran elsewhere";
}

TEST_F(message_loss, what_comes_after_a_gap_does_not_hide_it) {
  h.submit(job_builder{}.stage("long", 1));
  const auto wide = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("long", 1));
  h.orders_get_lost = true;
  h.submit(job_builder{}.stage("lost", 1));
  h.orders_get_lost = false;
  h.cancel(job_id{3}); // orders again, which the executor leaves alone
  beats(8);
  ASSERT_THAT(h.given_up, SizeIs(1));
  EXPECT_EQ(h.given_up[0].executor, wide);
}

TEST_F(message_loss, an_executor_whose_reports_get_lost_is_given_up) {
  h.submit(job_builder{}.stage("s", 3));
  beats(3);
  const auto attempt = h.attempts(e).at(0);
  static_cast<void>(h.executor(e).report({h.executor(e).success(attempt)}));
  for (int i = 0; i < 7; ++i) {
    h.now += 1s;
    auto beat = h.executor(e).heartbeat();
    beat.running = 1; // it has other tasks
    effects::list out;
    h.scheduler.on_heartbeat(beat, h.now, out);
    EXPECT_EQ(out.size(), i < 6 ? 0u : 1u) << i;
  }
}

TEST_F(message_loss, an_executor_that_knows_of_no_task_is_given_up) {
  h.submit(job_builder{}.stage("s", 1));
  for (int i = 0; i < 8; ++i) {
    h.now += 1s;
    auto beat = h.executor(e).heartbeat();
    beat.running = 0;
    effects::list out;
    h.scheduler.on_heartbeat(beat, h.now, out);
    EXPECT_EQ(out.size(), i < 6 ? 0u : 1u) << i;
  }
}

TEST_F(message_loss, after_a_pause_counts_from_its_end) {
  h.orders_get_lost = true;
  h.submit(job_builder{}.stage("s", 1));
  h.orders_get_lost = false;
  beats(4);
  h.beat(30s);
  h.beat(0s);
  EXPECT_THAT(h.given_up, IsEmpty()) << "nobody could say anything meanwhile";
}

TEST_F(message_loss, what_is_only_late_is_waited_for) {
  h.orders_get_lost = true;
  h.submit(job_builder{}.stage("s", 2));
  h.orders_get_lost = false;
  const auto late = h.last_orders.at(e);
  beats(4);
  EXPECT_FALSE(h.executor(e).apply(late));
  beats(20);
  EXPECT_THAT(h.given_up, IsEmpty());
}

TEST_F(message_loss, long_tasks_and_idle_executors_are_left_alone) {
  const auto idle = h.add(executor_builder{}.cores(1));
  h.submit(job_builder{}.stage("s", 1));
  beats(100);
  EXPECT_THAT(h.given_up, IsEmpty()) << idle.value;
}

TEST_F(message_loss, heartbeats_of_nobody_are_counted) {
  auto beat = h.executor(e).heartbeat();
  ++beat.epoch;
  effects::list out;
  const auto before = h.scheduler.stale_messages();
  h.scheduler.on_heartbeat(beat, h.now, out);
  EXPECT_EQ(h.scheduler.stale_messages(), before + 1);
  EXPECT_THAT(out, IsEmpty());
}

} // namespace
} // namespace troupe::testing
