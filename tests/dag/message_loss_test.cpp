// Messages that get lost between the scheduler and an executor that goes on sending heartbeats: nobody waits for ever.

#include <gmock/gmock.h>
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
  EXPECT_THAT(h.given_up[0].cause, HasSubstr("orders 1 to 1"));

  h.lose(e, h.given_up[0].cause);
  h.add(executor_builder{});
  h.drain();
  EXPECT_NE(h.end_of(job), nullptr) << "its task ran elsewhere";
}

TEST_F(message_loss, an_executor_whose_outcomes_got_lost_is_given_up) {
  h.submit(job_builder{}.stage("s", 1));
  beats(3);
  const auto attempt = h.attempts(e).at(0);
  static_cast<void>(h.executor(e).report({h.executor(e).success(attempt)}));
  beats(6);
  EXPECT_THAT(h.given_up, IsEmpty());
  beats(1);
  ASSERT_THAT(h.given_up, SizeIs(1));
  EXPECT_THAT(h.given_up[0].cause, HasSubstr("outcomes of 1"));
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
