// Pools of jobs that share the slots of a cluster.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;

dag_scheduler::options fair(std::map<std::string, pool_options> pools = {}) {
  dag_scheduler::options o;
  o.sharing = {sharing_mode::fair, std::move(pools)};
  o.scarce_resource_wait = 0s;
  return o;
}
job_builder job_in(const std::string& pool, std::uint32_t tasks) {
  return job_builder{}.in_pool(pool).stage("s", tasks);
}
std::uint32_t running(const scheduler_harness& h, job_id job, std::uint32_t stage = 0) {
  return h.progress(job).stages[stage].running;
}

TEST(sharing, first_come_first_served_without_it) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(4));
  const auto first = h.submit(job_in("a", 10));
  const auto second = h.submit(job_in("b", 10));
  EXPECT_EQ(running(h, first), 4u);
  EXPECT_EQ(running(h, second), 0u);
  h.drain();
  h.check_idle();
}

TEST(sharing, a_pool_that_comes_later_gets_its_part_as_slots_come_back) {
  scheduler_harness h{fair()};
  const auto e = h.add(executor_builder{}.cores(4));
  const auto first = h.submit(job_in("a", 40));
  EXPECT_EQ(running(h, first), 4u);
  const auto second = h.submit(job_in("b", 40));
  EXPECT_EQ(running(h, second), 0u) << "nothing is taken away from what runs";
  h.succeed_all(e);
  EXPECT_EQ(running(h, first), 2u);
  EXPECT_EQ(running(h, second), 2u);
  for (int i = 0; i < 5; ++i) {
    h.succeed_all(e);
    EXPECT_EQ(running(h, first), 2u) << i;
    EXPECT_EQ(running(h, second), 2u) << i;
  }
  h.drain();
  h.check_idle();
}

TEST(sharing, goes_by_weight_and_minimum) {
  scheduler_harness h{fair({{"big", {sharing_mode::fifo, 3, 0}}, {"sure", {sharing_mode::fifo, 1, 2}}})};
  const auto e = h.add(executor_builder{}.cores(8));
  const auto small = h.submit(job_in("small", 50));
  const auto big = h.submit(job_in("big", 50));
  const auto sure = h.submit(job_in("sure", 50));
  for (int i = 0; i < 4; ++i) h.succeed_all(e);
  EXPECT_EQ(running(h, sure), 2u) << "its minimum, though its weight alone would give it less";
  EXPECT_EQ(running(h, big), 4u);
  EXPECT_EQ(running(h, small), 2u);
  h.drain();
  h.check_idle();
}

TEST(sharing, within_a_pool_goes_by_age_or_evenly) {
  for (const auto mode : {sharing_mode::fifo, sharing_mode::fair}) {
    scheduler_harness h{fair({{"p", {mode, 1, 0}}})};
    const auto e = h.add(executor_builder{}.cores(4));
    const auto first = h.submit(job_in("p", 40));
    const auto second = h.submit(job_in("p", 40));
    h.succeed_all(e);
    EXPECT_EQ(running(h, first), mode == sharing_mode::fair ? 2u : 4u);
    EXPECT_EQ(running(h, second), mode == sharing_mode::fair ? 2u : 0u);
    h.drain();
    h.check_idle();
  }
}

TEST(sharing, works_across_profiles) {
  scheduler_harness h{fair()};
  const auto e = h.add(executor_builder{}.cores(4).gpus(4));
  const auto gpu = make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "1"}});
  const auto plain = h.submit(job_in("a", 40));
  const auto gpus = h.submit(job_builder{}.in_pool("b").profile(gpu).stage("s", 40).with(1));
  EXPECT_EQ(running(h, plain), 4u);
  for (int i = 0; i < 4; ++i) h.succeed_all(e);
  EXPECT_EQ(running(h, plain), 2u);
  EXPECT_EQ(running(h, gpus), 2u);
  h.drain();
  EXPECT_EQ(h.progress(plain).state, job_state::succeeded);
  EXPECT_EQ(h.progress(gpus).state, job_state::succeeded);
  h.check_idle();
}

TEST(sharing, leaves_to_others_what_a_pool_cannot_use) {
  scheduler_harness h{fair()};
  const auto e = h.add(executor_builder{}.cores(4));
  const auto tiny = h.submit(job_in("a", 1));
  const auto large = h.submit(job_in("b", 40));
  EXPECT_EQ(running(h, tiny), 1u);
  EXPECT_EQ(running(h, large), 3u);
  h.succeed_all(e);
  EXPECT_EQ(running(h, large), 4u);
  h.drain();
  h.check_idle();
}

TEST(sharing, survives_the_loss_of_executors_and_jobs) {
  scheduler_harness h{fair()};
  const auto e = h.add(executor_builder{}.cores(4));
  const auto first = h.submit(job_in("a", 8));
  const auto second = h.submit(job_in("b", 8));
  h.succeed_all(e);
  h.cancel(first);
  h.lose(e);
  h.add(executor_builder{}.cores(2));
  h.drain();
  EXPECT_EQ(h.progress(second).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
