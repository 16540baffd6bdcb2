// Executors with addresses that a task does not ask for, and which of several executors gets a task.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

resource_profile one_gpu() { return make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "1"}}); }
job_builder cpu_job(std::uint32_t tasks) { return job_builder{}.stage("cpu", tasks); }
job_builder gpu_job(std::uint32_t tasks) { return job_builder{}.profile(one_gpu()).stage("gpu", tasks).with(1); }

dag_scheduler::options waiting(duration wait) {
  dag_scheduler::options o;
  o.scarce_resource_wait = wait;
  return o;
}

TEST(scarce_resources, are_for_whoever_comes_where_nobody_asks_for_them) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2).gpus(1));
  h.submit(cpu_job(2));
  EXPECT_THAT(h.attempts(e), SizeIs(2));
  h.drain();
  h.check_idle();
}

TEST(scarce_resources, are_kept_for_those_who_ask_until_others_have_waited) {
  scheduler_harness h;
  const auto plain = h.add(executor_builder{}.cores(1));
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  const auto asking = h.submit(gpu_job(2));
  const auto job = h.submit(cpu_job(3));
  EXPECT_THAT(h.attempts(gpus), SizeIs(1)) << "the gpu task alone, although three cores are free";
  EXPECT_THAT(h.attempts(plain), SizeIs(1));
  h.tick(2900ms);
  EXPECT_THAT(h.attempts(gpus), SizeIs(1));
  EXPECT_THAT(h.scheduler.progress(asking, h.now)->waiting_for, IsEmpty());
  h.tick(200ms);
  EXPECT_THAT(h.attempts(gpus), SizeIs(3)) << "three seconds without room";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.progress(asking).state, job_state::succeeded);
  h.check_idle();
}

TEST(scarce_resources, a_stage_that_has_room_elsewhere_does_not_wait) {
  scheduler_harness h;
  const auto plain = h.add(executor_builder{}.cores(1));
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  h.submit(gpu_job(1));
  h.submit(cpu_job(6));
  for (int i = 0; i < 5; ++i) {
    h.tick(2s);
    EXPECT_THAT(h.attempts(gpus), SizeIs(1)) << i;
    h.succeed_all(plain);
  }
  h.drain();
  h.check_idle();
}

TEST(scarce_resources, are_free_when_the_last_who_asked_has_ended) {
  scheduler_harness h{waiting(never)};
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  h.submit(gpu_job(1));
  const auto job = h.submit(cpu_job(2));
  h.tick(1h);
  EXPECT_THAT(h.attempts(gpus), SizeIs(1)) << "never";
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("1 of the 1 executor that fit is kept for stages that ask for gpu "
                                                     "(troupe.scheduler.scarce-resource-wait)"));
  h.succeed_all(gpus);
  EXPECT_THAT(h.attempts(gpus), SizeIs(2));
  h.drain();
  h.check_idle();
}

TEST(scarce_resources, are_not_kept_at_all_where_the_wait_is_0) {
  scheduler_harness h{waiting(0s)};
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  h.submit(gpu_job(1));
  h.submit(cpu_job(2));
  EXPECT_THAT(h.attempts(gpus), SizeIs(3));
  h.drain();
  h.check_idle();
}

TEST(scarce_resources, are_not_kept_for_what_comes_after_the_stage_itself) {
  scheduler_harness h;
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  const auto job = h.submit(job_builder{}.profile(one_gpu()).stage("cpu", 2).stage("gpu", 1).with(1).after(0));
  EXPECT_THAT(h.attempts(gpus), SizeIs(2)) << "its gpu stage cannot run before it";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(scarce_resources, leases_of_others_end_when_somebody_asks) {
  scheduler_harness h{waiting(never)};
  const auto gpus = h.add(executor_builder{}.cores(2).gpus(1));
  const auto first = h.submit(cpu_job(10));
  EXPECT_THAT(h.attempts(gpus), SizeIs(2));
  const auto second = h.submit(gpu_job(2));
  h.succeed_all(gpus);
  h.succeed_all(gpus);
  EXPECT_EQ(h.progress(second).stages[0].done, 1u) << "of the later job";
  EXPECT_EQ(h.progress(first).stages[0].done, 2u) << "nothing new was begun";
  h.drain();
  EXPECT_EQ(h.progress(first).state, job_state::succeeded);
  h.check_idle();
}

TEST(scarce_resources, are_free_when_the_job_that_asked_is_given_up) {
  auto options = waiting(never);
  options.infeasible_timeout = 5s;
  scheduler_harness h{options};
  h.answer = [](const executor_shape&) { return feasibility{false, false, "not now"}; };
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  const auto first = h.submit(job_builder{}
                                  .profile(one_gpu())
                                  .profile(make_profile({{"cores", 1}, {"gpu", 4}}, {{"gpu", "4"}}))
                                  .stage("never", 1)
                                  .with(2)
                                  .stage("gpu", 1)
                                  .with(1)
                                  .after(0));
  const auto job = h.submit(cpu_job(2));
  EXPECT_THAT(h.attempts(gpus), IsEmpty()) << "kept for the stage that comes after one that waits";
  h.tick(6s);
  ASSERT_NE(h.end_of(first), nullptr);
  EXPECT_THAT(h.attempts(gpus), SizeIs(2)) << "in the same tick";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(scarce_resources, are_not_kept_for_who_cannot_use_them) {
  scheduler_harness h{waiting(never)};
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  h.submit(job_builder{}.profile(make_profile({{"cores", 1}, {"gpu", 4}}, {{"gpu", "4"}})).stage("s", 1).with(1));
  h.submit(cpu_job(2));
  EXPECT_THAT(h.attempts(gpus), SizeIs(2)) << "it asks for four";
}

TEST(scarce_resources, two_that_wait_do_not_wait_for_each_other) {
  scheduler_harness h{waiting(never)};
  h.add(executor_builder{}.cores(1).gpus(1));
  const auto pipelines = h.submit(job_builder{}
                                      .profile(one_gpu())
                                      .stage("a", 2)
                                      .stage("b", 2)
                                      .with(1)
                                      .after(0)
                                      .stage("c", 2)
                                      .stage("d", 2)
                                      .with(1)
                                      .after(2));
  const auto another = h.submit(job_builder{}.profile(one_gpu()).stage("e", 2).stage("f", 2).with(1).after(0));
  h.drain();
  EXPECT_EQ(h.progress(pipelines).state, job_state::succeeded);
  EXPECT_EQ(h.progress(another).state, job_state::succeeded);
  h.check_idle();
}

TEST(scarce_resources, what_is_kept_from_a_stage_is_not_claimed_for_it) {
  scheduler_harness h{waiting(never)};
  const auto gpus = h.add(executor_builder{}.cores(2).gpus(1));
  const auto small = h.submit(cpu_job(2)); // both cores
  const auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  // Of better rank than the third job, whose tasks make way for it.
  const auto second = h.submit(job_builder{}.profile(wide).stage("wide", 2).with(1));
  const auto third = h.submit(cpu_job(10));
  h.succeed(h.attempts(gpus)[0]);
  const auto asking = h.submit(gpu_job(1));
  h.succeed_all(gpus);
  h.succeed_all(gpus);
  EXPECT_EQ(h.progress(asking).state, job_state::succeeded) << "the executor was kept for it, and for nobody else";
  h.drain();
  for (const auto job : {small, second, third}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(scarce_resources, are_kept_on_an_executor_that_comes_later) {
  scheduler_harness h{waiting(never)};
  h.submit(gpu_job(1));
  h.submit(cpu_job(2));
  const auto gpus = h.add(executor_builder{}.cores(4).gpus(1));
  EXPECT_THAT(h.attempts(gpus), SizeIs(1)) << "from its first moment";
}

TEST(scarce_resources, are_free_when_the_only_executor_goes_that_could_serve_who_asked) {
  scheduler_harness h{waiting(never)};
  const auto large = h.add(executor_builder{}.cores(1).gpus(4));
  const auto small = h.add(executor_builder{}.cores(4).gpus(1));
  const auto four = make_profile({{"cores", 1}, {"gpu", 4}}, {{"gpu", "4"}});
  h.submit(job_builder{}.profile(four).stage("s", 2).with(1));
  h.submit(cpu_job(2));
  EXPECT_THAT(h.attempts(small), IsEmpty());
  h.lose(large);
  EXPECT_THAT(h.attempts(small), SizeIs(2)) << "in the same event";
}

TEST(scarce_resources, are_free_when_the_only_executor_drains_that_could_serve_who_asked) {
  scheduler_harness h{waiting(never)};
  const auto large = h.add(executor_builder{}.cores(1).gpus(4));
  const auto small = h.add(executor_builder{}.cores(4).gpus(1));
  const auto four = make_profile({{"cores", 1}, {"gpu", 4}}, {{"gpu", "4"}});
  h.submit(job_builder{}.profile(four).stage("s", 2).with(1));
  h.submit(cpu_job(2));
  h.lose_connection(large);
  EXPECT_THAT(h.attempts(small), SizeIs(2)) << "in the same event";
}

// -- policies

/// Leases on executors of 2, 4 and 4 cores, one lease on the third at first.
std::vector<std::size_t> spread_of(placement_policy policy, std::uint32_t tasks) {
  dag_scheduler::options o;
  o.placement = policy;
  scheduler_harness h{o};
  const auto third = h.add(executor_builder{}.cores(4));
  h.submit(cpu_job(1));
  const auto first = h.add(executor_builder{}.cores(2));
  const auto second = h.add(executor_builder{}.cores(4));
  h.submit(cpu_job(tasks));
  return {h.attempts(first).size(), h.attempts(second).size(), h.attempts(third).size()};
}

TEST(placement_policies, choose_among_executors_with_room) {
  EXPECT_THAT(spread_of(placement_policy::spread, 4), ElementsAre(2, 1, 2)) << "fewest leases";
  EXPECT_THAT(spread_of(placement_policy::pack, 3), ElementsAre(2, 0, 2)) << "fewest free cores";
  EXPECT_THAT(spread_of(placement_policy::balance, 4), ElementsAre(1, 2, 2)) << "smallest part busy";
}

} // namespace
} // namespace troupe::testing
