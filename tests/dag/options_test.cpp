// What each option of the scheduler changes. The defaults are tested where they matter; here it is the option.

#include <algorithm>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;

/// How many attempts an executor of one slot has in hand once its tasks are known to take so long.
std::size_t in_hand(const dag_scheduler::options& options, duration run_time) {
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 10'000));
  h.succeed_all(e, run_time);
  return h.attempts(e).size();
}

TEST(scheduler_options, large_arguments_make_small_batches) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 100).arguments(std::vector<std::string>(100, std::string(300'000, 'a'))));
  h.succeed_all(e, 100ns);
  for (const auto& batch : h.last_orders.at(e).batches) EXPECT_LE(batch.count, 3u) << "about a megabyte at a time";
  h.drain(100ns);
  h.check_idle();
}

TEST(scheduler_options, max_batch_bounds_every_batch) {
  dag_scheduler::options options;
  options.max_batch = 10;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1000));
  h.succeed_all(e, 100ns);
  std::vector<std::uint32_t> sizes;
  for (const auto& batch : h.last_orders.at(e).batches) sizes.push_back(batch.count);
  EXPECT_THAT(sizes, SizeIs(4)) << "the window has four batches";
  EXPECT_THAT(sizes, Each(Le(10u)));
  h.drain(100ns);
  h.check_idle();
}

TEST(scheduler_options, window_batches_bound_what_is_in_flight) {
  dag_scheduler::options options;
  EXPECT_EQ(in_hand(options, 100ns), 4u * 256u);
  options.window_batches = 2;
  EXPECT_EQ(in_hand(options, 100ns), 2u * 256u);
}

TEST(scheduler_options, queue_ahead_is_so_much_work) {
  dag_scheduler::options options;
  options.queue_ahead = 2ms;
  EXPECT_EQ(in_hand(options, 100us), 21u) << "the running one and two milliseconds' worth";
  options.queue_ahead = 0ms;
  EXPECT_EQ(in_hand(options, 100us), 1u);
}

TEST(scheduler_options, infeasible_timeout_is_how_long_a_growing_cluster_is_waited_for) {
  dag_scheduler::options options;
  options.infeasible_timeout = 5s;
  scheduler_harness h{options};
  h.answer = [](const executor_shape&) { return feasibility{false, false, "no host is so large today"}; };
  h.add(executor_builder{});
  const auto job = h.submit(job_builder{}
                                .profile(make_profile({{"cores", 1}, {"gpu", 2}}, {{"cpus", "1"}, {"gpu", "1"}}))
                                .stage("s", 1)
                                .with(1));
  h.tick(4s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(2s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::infeasible);
  h.check_idle();
}

TEST(scheduler_options, max_stage_attempts_is_how_often_inputs_may_be_missing) {
  dag_scheduler::options options;
  options.max_stage_attempts = 2;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("map", 1).buckets(1).stage("reduce", 1).reads(0));
  for (attempt_number i = 0; i < 2; ++i) {
    ASSERT_EQ(h.end_of(job), nullptr) << i;
    h.succeed_all(e);
    h.fetch_fail(h.attempts_of(job, 1).at(0), h.stage_of(job, 0), 0, i);
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("2 stage attempts in a row"));
  h.check_idle();
}

// -- what the history says

TEST(history, tells_which_attempt_failed_and_why) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  h.fail(h.attempts(e).at(0), "bad luck");
  const auto failed = h.events<events::task_failed>();
  ASSERT_THAT(failed, SizeIs(1));
  EXPECT_EQ(failed[0].stage, h.stage_of(job, 0));
  EXPECT_EQ(failed[0].executor, e);
  EXPECT_EQ(failed[0].status, task_status::failed);
  EXPECT_THAT(failed[0].message, HasSubstr("bad luck"));
  h.drain();
}

TEST(history, tells_a_job_from_its_submission_to_its_end) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.host("alpha"));
  const auto added = h.events<events::executor_added>();
  ASSERT_THAT(added, SizeIs(1));
  EXPECT_EQ(added[0].info.executor, e);
  EXPECT_EQ(added[0].info.host, "alpha");

  const auto job = h.submit(job_builder{"sums"}.stage("first", 2).stage("second", 1).after(0));
  const auto submitted = h.events<events::job_submitted>();
  ASSERT_THAT(submitted, SizeIs(1));
  EXPECT_EQ(submitted[0].job, job);
  EXPECT_EQ(submitted[0].name, "sums");
  EXPECT_EQ(submitted[0].stages, 2u);
  EXPECT_EQ(submitted[0].first_stage, h.stage_of(job, 0));
  EXPECT_THAT(h.events<events::job_ended>(), SizeIs(0));
  h.drain();

  const auto stages = h.events<events::stage_submitted>();
  ASSERT_THAT(stages, SizeIs(2));
  EXPECT_EQ(stages[0].name, "first");
  EXPECT_EQ(stages[0].tasks, 2u);
  EXPECT_EQ(stages[1].name, "second");
  std::uint32_t succeeded = 0;
  for (const auto& batch : h.events<events::tasks_succeeded>()) succeeded += batch.count;
  EXPECT_EQ(succeeded, 3u);
  // Every lease that was granted was given back.
  std::vector<lease_id> granted;
  std::vector<lease_id> released;
  for (const auto& g : h.events<events::lease_granted>()) granted.push_back(g.lease);
  for (const auto& r : h.events<events::lease_released>()) released.push_back(r.lease);
  std::sort(granted.begin(), granted.end());
  std::sort(released.begin(), released.end());
  EXPECT_FALSE(granted.empty());
  EXPECT_EQ(released, granted);
  const auto ended = h.events<events::job_ended>();
  ASSERT_THAT(ended, SizeIs(1));
  EXPECT_EQ(ended[0].state, job_state::succeeded);
  h.check_idle();
}

TEST(history, tells_of_the_end_of_a_stage_what_it_was) {
  scheduler_harness h;
  const auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  const auto e = h.add(executor_builder{}.started_for(wide));
  h.tick(std::chrono::minutes{1});
  h.submit(job_builder{}.profile(wide).stage("once", 3).with(1));
  h.tick(std::chrono::seconds{2});
  h.succeed_all(e);
  h.drain();
  const auto stages = h.events<events::stage_completed>();
  ASSERT_THAT(stages, SizeIs(1));
  EXPECT_EQ(stages[0].name, "once");
  EXPECT_EQ(stages[0].tasks, 3u);
  EXPECT_EQ(stages[0].profile, h.events<events::stage_submitted>()[0].profile);
  EXPECT_NE(stages[0].profile, default_profile_id);
  EXPECT_GE(stages[0].nanoseconds, 2'000'000'000u);
  EXPECT_LT(stages[0].nanoseconds, 60'000'000'000u) << "it was submitted after that";
}

TEST(history, names_the_profile_that_an_executor_was_asked_for_as) {
  scheduler_harness h;
  const auto wide = make_profile({{"cores", 2}}, {{"cpus", "2"}});
  h.add(executor_builder{}.started_for(wide));
  h.submit(job_builder{}.profile(wide).stage("s", 1).with(1));
  h.add(executor_builder{}.started_for(wide).shape(h.shape_of(wide)));
  const auto added = h.events<events::executor_added>();
  ASSERT_THAT(added, SizeIs(2));
  EXPECT_FALSE(added[0].profile);
  EXPECT_EQ(added[1].profile, h.events<events::stage_submitted>()[0].profile);
  h.drain();
}

TEST(history, tells_why_an_executor_went) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.lose(e, "silent for 10s");
  const auto removed = h.events<events::executor_removed>();
  ASSERT_THAT(removed, SizeIs(1));
  EXPECT_EQ(removed[0].executor, e);
  EXPECT_EQ(removed[0].cause, "silent for 10s");
  EXPECT_TRUE(removed[0].lost);
}

} // namespace
} // namespace troupe::testing
