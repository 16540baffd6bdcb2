// Which executor gets which tasks, how many at once, and under which leases.

#include <algorithm>
#include <set>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const auto gpu_half = make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "0.5"}});

std::size_t leases(const scheduler_harness& h) { return h.scheduler.pool().lease_count(); }

TEST(placement, compatible_executor_runs_tasks_of_every_profile_that_it_satisfies) {
  dag_scheduler::options options;
  options.scarce_resource_wait = 0s;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{}.cores(4).gpus(2));
  const auto job = h.submit(job_builder{}.profile(gpu_half).stage("plain", 1).stage("gpu", 1).with(1));
  EXPECT_THAT(h.attempts(e), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(placement, exact_matching_takes_executors_of_the_very_profile_alone) {
  dag_scheduler::options exact;
  exact.matching = profile_matching::exact;
  scheduler_harness h{exact};
  const auto plain = h.add(executor_builder{}.started_for(default_test_profile()));
  const auto rich = h.add(executor_builder{}.started_for(gpu_half));
  const auto job = h.submit(job_builder{}.profile(gpu_half).stage("plain", 1).stage("gpu", 1).with(1));
  ASSERT_THAT(h.attempts(plain), SizeIs(1));
  ASSERT_THAT(h.attempts(rich), SizeIs(1));
  EXPECT_EQ(h.attempts(plain)[0].stage, h.stage_of(job, 0));
  EXPECT_EQ(h.attempts(rich)[0].stage, h.stage_of(job, 1));
  h.drain();
  h.check_idle();
}

TEST(placement, shares_of_one_address_are_given_out_up_to_the_whole) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(8).gpus(1));
  h.submit(job_builder{}.profile(gpu_half).stage("gpu", 5).with(1));
  EXPECT_THAT(h.attempts(e), SizeIs(2));
  const auto index = h.scheduler.pool().find(e);
  EXPECT_TRUE(h.scheduler.pool()[index].book.free_of("gpu", "0").is_zero());
  h.drain();
  h.check_idle();
}

TEST(placement, scarce_executor_is_the_last_choice_for_tasks_that_do_not_need_it) {
  scheduler_harness h;
  const auto rich = h.add(executor_builder{}.cores(2).gpus(1));
  const auto plain = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("plain", 2));
  EXPECT_THAT(h.attempts(plain), SizeIs(2));
  EXPECT_THAT(h.attempts(rich), SizeIs(0));
  h.submit(job_builder{}.stage("more", 1));
  EXPECT_THAT(h.attempts(rich), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(placement, a_counted_size_is_one_scarce_thing_however_large) {
  scheduler_harness h;
  auto sized = default_test_profile();
  sized.executor["gpu-memory"] = {share::max_whole, "", "", true};
  const auto gpus = h.add(executor_builder{}.cores(2).gpus(2));
  const auto memory = h.add(executor_builder{}.started_for(sized).cores(2));
  h.submit(job_builder{}.stage("plain", 2));
  EXPECT_THAT(h.attempts(memory), SizeIs(2));
  EXPECT_THAT(h.attempts(gpus), SizeIs(0));
  h.drain();
  h.check_idle();
}

TEST(placement, tasks_are_spread_over_equal_executors) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(4));
  const auto b = h.add(executor_builder{}.cores(4));
  h.submit(job_builder{}.stage("s", 4));
  EXPECT_THAT(h.attempts(a), SizeIs(2));
  EXPECT_THAT(h.attempts(b), SizeIs(2));
  h.drain();
  h.check_idle();
}

TEST(placement, one_task_at_a_time_until_the_mean_is_known_then_the_window_of_no_ops) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 10'000));
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  h.succeed_all(e, 100ns);
  EXPECT_THAT(h.attempts(e), SizeIs(1024));
  // The next refill waits until a batch has room, and keeps the queue full from then on.
  auto all = h.attempts(e);
  std::vector<fake_end> ends;
  for (int i = 0; i < 256; ++i) ends.push_back(h.executor(e).success(all[static_cast<std::size_t>(i)]));
  h.deliver(h.executor(e).report(ends, 100ns));
  EXPECT_THAT(h.attempts(e), SizeIs(1024));
  ASSERT_EQ(h.last_orders.size(), 1u);
  EXPECT_THAT(h.last_orders[e].batches, SizeIs(1));
  EXPECT_EQ(h.last_orders[e].batches[0].count, 256u);
  h.drain(100ns);
  h.check_idle();
}

TEST(placement, about_a_millisecond_of_work_is_queued_ahead_of_short_tasks) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1000));
  h.succeed_all(e, 100us);
  EXPECT_THAT(h.attempts(e), SizeIs(11));
  h.drain(100us);
  h.check_idle();
}

TEST(placement, nothing_is_queued_behind_long_tasks) {
  dag_scheduler::options far;
  far.queue_ahead = 1s;
  scheduler_harness h{far};
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 10));
  for (int i = 0; i < 10; ++i) {
    ASSERT_THAT(h.attempts(e), SizeIs(1)) << i;
    h.succeed_all(e, 20ms);
  }
  h.check_idle();
}

TEST(placement, window_closes_at_once_when_short_tasks_are_followed_by_long_ones) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 2'000));
  h.succeed_all(e, 1us);
  const auto queued = h.attempts(e);
  ASSERT_GT(queued.size(), 256u);
  std::vector<fake_end> ends;
  for (std::size_t i = 0; i < 256; ++i) ends.push_back(h.executor(e).success(queued[i]));
  h.deliver(h.executor(e).report(ends, 1s));
  EXPECT_EQ(h.attempts(e).size(), queued.size() - 256) << "no more is queued behind long tasks";
  h.drain();
  h.check_idle();
}

TEST(placement, tasks_of_another_stage_are_not_queued_behind_a_long_one) {
  scheduler_harness h;
  const auto gate = h.add(executor_builder{}.build("gate"));
  const auto first = h.submit(job_builder{}.stage("gate", 1).build_id("gate").stage("long", 1).after(0));
  const auto a = h.add(executor_builder{});
  const auto second = h.submit(job_builder{}.stage("short", 2000));
  h.succeed_all(a, 100ns);
  ASSERT_GT(h.attempts(a).size(), 1000u);
  h.succeed_all(gate);
  const auto b = h.add(executor_builder{});
  ASSERT_THAT(h.attempts(b), SizeIs(1)) << "of the long task nothing is known yet";
  EXPECT_EQ(h.attempts(b)[0].stage, h.stage_of(first, 1));
  h.drain(100ns);
  EXPECT_EQ(h.progress(second).state, job_state::succeeded);
  h.check_idle();
}

TEST(placement, tasks_of_another_stage_are_not_queued_behind_one_that_has_become_long) {
  scheduler_harness h;
  const auto gate = h.add(executor_builder{}.build("gate"));
  const auto first = h.submit(job_builder{}.stage("gate", 1).build_id("gate").stage("short", 10'000).after(0));
  const auto a = h.add(executor_builder{});
  h.submit(job_builder{}.stage("turns long", 4000));
  h.succeed_all(a, 100ns);
  ASSERT_GT(h.attempts(a).size(), 1000u);
  h.succeed_all(gate);
  const auto b = h.add(executor_builder{});
  h.succeed_all(b, 100ns);
  ASSERT_GT(h.attempts(b).size(), 1000u) << "of the first job, known to be short";
  for (int i = 0; i < 700; ++i) h.succeed(h.attempts(a)[0], {}, 10s);
  for (const auto& attempt : h.attempts(a)) ASSERT_NE(attempt.stage, h.stage_of(first, 1));
  h.drain(100ns);
  h.check_idle();
}

TEST(placement, what_is_left_is_split_evenly) {
  scheduler_harness h;
  std::vector<executor_id> all;
  for (int i = 0; i < 4; ++i) all.push_back(h.add(executor_builder{}));
  h.submit(job_builder{}.stage("s", 404));
  for (const auto e : all) h.deliver(h.executor(e).report({h.executor(e).success(h.attempts(e)[0])}, 5us));
  for (const auto e : all) EXPECT_NEAR(static_cast<double>(h.attempts(e).size()), 100., 70.);
  for (const auto e : all) EXPECT_GE(h.attempts(e).size(), 30u);
  h.drain(5us);
  h.check_idle();
}

TEST(placement, fresh_leases_share_the_tasks_of_a_known_stage_evenly) {
  scheduler_harness h;
  const auto first = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 5000));
  h.succeed_all(first, 100ns); // 1024 on the first
  const auto second = h.add(executor_builder{});
  EXPECT_THAT(h.attempts(second), SizeIs(1024));
  h.drain(100ns);
  h.check_idle();
}

TEST(placement, lease_is_used_again_by_the_next_stage_and_the_next_job_of_the_same_demand) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("a", 1).stage("b", 1).after(0));
  h.submit(job_builder{}.stage("c", 1));
  const auto lease = h.attempts(e)[0].lease;
  h.succeed_all(e);
  ASSERT_EQ(h.attempts(e)[0].stage, h.stage_of(job, 1));
  EXPECT_EQ(h.attempts(e)[0].lease, lease);
  EXPECT_THAT(h.last_orders[e].revoked, SizeIs(0));
  h.succeed_all(e);
  EXPECT_EQ(h.attempts(e).at(0).lease, lease);
  EXPECT_THAT(h.events<events::lease_granted>(), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(placement, a_lease_without_work_is_given_back_at_once) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 2));
  h.succeed(h.attempts(e)[0]);
  EXPECT_EQ(leases(h), 1u);
  EXPECT_THAT(h.last_orders[e].revoked, SizeIs(1));
  h.drain();
  EXPECT_EQ(leases(h), 0u);
  h.check_idle();
}

TEST(placement, earlier_job_takes_over_the_slots_of_a_later_one_of_another_profile) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto other = make_profile({}, {{"cpus", "1"}});
  const auto two = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  // The first job's second stage becomes ready while the second job holds the executor.
  const auto first = h.submit(job_builder{}.profile(two).stage("a", 1).stage("b", 1).with(1).after(0));
  const auto second = h.submit(job_builder{}.profile(other).stage("many", 100).with(1));
  EXPECT_THAT(h.attempts_of(second, 0), SizeIs(1));
  h.succeed(h.attempts_of(first, 0)[0]);
  EXPECT_THAT(h.attempts_of(first, 1), SizeIs(0)) << "one of two cpus is busy";
  // From here on the slots that come back are kept until both are free.
  for (int i = 0; i < 3 && h.attempts_of(first, 1).empty(); ++i) h.succeed(h.attempts_of(second, 0)[0]);
  EXPECT_THAT(h.attempts_of(first, 1), SizeIs(1)) << "small tasks must not starve a large one of a better rank";
  h.succeed(h.attempts_of(first, 1)[0]);
  EXPECT_THAT(h.attempts(e), SizeIs(2)) << "and get the slots back";
  h.drain();
  h.check_idle();
}

TEST(placement, no_more_slots_are_kept_than_the_waiting_stage_needs) {
  scheduler_harness h;
  std::vector<executor_id> all;
  for (int i = 0; i < 3; ++i) all.push_back(h.add(executor_builder{}.cores(2)));
  const auto two = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  const auto first = h.submit(job_builder{}.profile(two).stage("a", 1).stage("b", 1).with(1).after(0));
  const auto second = h.submit(job_builder{}.stage("many", 100));
  h.succeed(h.attempts_of(first, 0)[0]);
  for (const auto e : all)
    if (!h.attempts(e).empty()) h.succeed(h.attempts(e)[0]);
  EXPECT_GE(h.attempts_of(second, 0).size(), 4u) << "two executors go on as if nothing were";
  for (int i = 0; i < 12 && h.attempts_of(first, 1).empty(); ++i) {
    const auto running = h.attempts_of(second, 0);
    h.succeed(running[static_cast<std::size_t>(i) % running.size()]);
  }
  EXPECT_THAT(h.attempts_of(first, 1), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(placement, draining_executor_gets_no_lease_not_even_for_a_demand_that_is_new) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2).gpus(1));
  EXPECT_TRUE(h.release(e).granted);
  const auto known = h.submit(job_builder{}.stage("s", 1));
  const auto fresh = h.submit(job_builder{}.profile(gpu_half).stage("s", 1).with(1));
  EXPECT_THAT(h.attempts(), SizeIs(0));
  EXPECT_THAT(h.progress(known).waiting_for, HasSubstr("no executor satisfies its profile"));
  EXPECT_TRUE(h.scheduler.executors().at(0).draining);
  h.cancel(known);
  h.cancel(fresh);
  h.check_idle();
}

TEST(placement, release_is_refused_while_anything_runs_or_waits_there) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1)); // granted, not yet reported
  const auto answer = h.release(e);
  EXPECT_FALSE(answer.granted);
  EXPECT_THAT(answer.reason, HasSubstr("1 attempt"));
  h.drain();
  EXPECT_TRUE(h.release(e).granted);
  EXPECT_FALSE(h.release(e).serving);
  EXPECT_TRUE(h.release(executor_id{77}).granted) << "what is gone may go";
  h.check_idle();
}

TEST(placement, parked_executor_serves_its_output_and_runs_nothing) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("map", 1).buckets(1).stage("reduce", 1).reads(0).build_id("other"));
  h.succeed_all(e);
  const auto answer = h.release(e);
  EXPECT_TRUE(answer.granted);
  EXPECT_TRUE(answer.serving);
  const auto other = h.add(executor_builder{}.build("other"));
  EXPECT_THAT(h.attempts(other), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_FALSE(h.release(e).serving);
  h.check_idle();
}

TEST(placement, build_decides_where_native_stages_run) {
  scheduler_harness h;
  const auto commands = h.add(executor_builder{}.commands_only());
  const auto other = h.add(executor_builder{}.build("another"));
  const auto job = h.submit(job_builder{}.stage("native", 1).stage("command", 2).command());
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(0));
  EXPECT_THAT(h.attempts(commands), SizeIs(1));
  EXPECT_THAT(h.attempts(other), SizeIs(1));
  h.drain();
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("runs commands only"));
  h.add(executor_builder{});
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(placement, jobs_get_their_slots_in_the_order_of_their_submission) {
  scheduler_harness h;
  const auto first = h.submit(job_builder{}.stage("s", 3));
  const auto second = h.submit(job_builder{}.stage("s", 3));
  h.add(executor_builder{}.cores(4));
  EXPECT_THAT(h.attempts_of(first, 0), SizeIs(3));
  EXPECT_THAT(h.attempts_of(second, 0), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(placement, stage_is_installed_once_per_executor_and_removed_at_the_end) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("s", 6).arguments({"a", "b", "c", "d", "e", "f"}));
  ASSERT_THAT(h.last_orders[e].installs, SizeIs(1));
  EXPECT_EQ(h.last_orders[e].installs[0].stage, h.stage_of(job, 0));
  EXPECT_EQ(h.last_orders[e].installs[0].tasks, 6u);
  EXPECT_EQ(h.last_orders[e].batches[1].argument(0), "b");
  h.succeed_all(e, 20ms);
  EXPECT_THAT(h.last_orders[e].installs, SizeIs(0));
  h.drain(20ms);
  EXPECT_THAT(h.last_orders[e].removed_stages, SizeIs(1));
  h.check_idle();
}

TEST(placement, candidates_examined_for_a_grant_do_not_grow_with_the_cluster) {
  for (const int executors : {10, 1000}) {
    scheduler_harness h;
    for (int i = 0; i < executors; ++i) {
      effects::list out;
      h.scheduler.on_executor_added(executor_builder{}.cores(1).gpus(i % 3).make(executor_id{i + 1u}, 1), h.now, out);
    }
    const auto job = job_builder{}.stage("s", 500).make();
    effects::list out;
    h.scheduler.on_job_submitted(job, {{default_profile_id, shape_id{1}, default_test_profile()}}, h.now, out);
    EXPECT_EQ(h.scheduler.pool().lease_count(), std::min<std::size_t>(500, static_cast<std::size_t>(executors)));
    EXPECT_LE(h.scheduler.pool().examined(), h.scheduler.pool().lease_count() + 1);
  }
}

} // namespace
} // namespace troupe::testing
