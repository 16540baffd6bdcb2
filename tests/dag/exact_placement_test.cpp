// Placement under policy exact: profiles by their identity, executors in Spark's order (spec MP-8, TS-2 to TS-6).

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

dag_scheduler::options by_identity() {
  dag_scheduler::options o;
  o.matching = profile_matching::exact;
  return o;
}

const auto gpu_shared = make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "0.5"}});
const resolved_profile defaults{{0}, {1}, default_test_profile()};

/// A task-only profile where nothing is allocated dynamically: it has the default one's shape and runs anywhere.
resolved_profile task_only(std::uint64_t id, shares task) {
  auto content = default_test_profile();
  for (const auto& [name, amount] : task) content.task[name] = *parse_share(amount);
  return {{id}, {1}, content, true};
}

executor_builder of_shape(std::uint64_t shape, const resource_profile& profile) {
  return executor_builder{}.started_for(profile).request(shape).shape({shape});
}

TEST(exact_placement, profiles_of_equal_content_run_on_executors_of_their_own) {
  scheduler_harness h{by_identity()};
  const auto second = h.add(of_shape(2, gpu_shared));
  const auto job =
      h.submit(job_builder{}.profile(gpu_shared).profile(gpu_shared).stage("a", 1).with(1).stage("b", 1).with(2),
               {defaults, {{1}, {2}, gpu_shared}, {{2}, {3}, gpu_shared}});
  ASSERT_THAT(h.attempts(second), SizeIs(1));
  EXPECT_EQ(h.attempts(second)[0].stage, h.stage_of(job, 0));
  h.succeed_all(second);
  EXPECT_THAT(h.attempts(second), SizeIs(0)) << "idle, large enough, and of another profile";
  EXPECT_THAT(h.progress(job).waiting_for,
              AllOf(HasSubstr("stage 1 (b): no executor satisfies its profile"),
                    HasSubstr("executor 1 on host, was started for another profile, though a large enough one")));
  const auto third = h.add(of_shape(3, gpu_shared));
  ASSERT_THAT(h.attempts(third), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

// TS-3: at most one task per executor and pass.
TEST(exact_placement, a_pass_gives_each_executor_one_task_however_busy_it_is) {
  for (const auto matching : {profile_matching::exact, profile_matching::compatible}) {
    dag_scheduler::options o;
    o.matching = matching;
    scheduler_harness h{o};
    const auto busy = h.add(executor_builder{}.cores(6));
    h.submit(job_builder{}.stage("before", 3));
    const auto idle = h.add(executor_builder{}.cores(6));
    const auto job = h.submit(job_builder{}.stage("two", 2));
    EXPECT_THAT(h.attempts_of(job, 0), SizeIs(2));
    EXPECT_THAT(h.attempts(idle), SizeIs(matching == profile_matching::exact ? 1 : 2));
    const auto more = h.submit(job_builder{}.stage("many", 9));
    EXPECT_THAT(h.attempts_of(more, 0), SizeIs(7)) << "until all room is gone";
    EXPECT_THAT(h.attempts(busy), SizeIs(6));
    h.drain();
    h.check_idle();
  }
}

// TS-3: by job, then by stage, whatever the profile.
TEST(placement, a_later_job_waits_for_an_earlier_one_of_another_profile) {
  scheduler_harness h;
  const auto other = make_profile({{"cores", 2}}, {{"cpus", "1"}});
  const auto first = h.submit(job_builder{}.stage("s", 1));
  const auto second = h.submit(job_builder{}.profile(other).stage("s", 1).with(1));
  const auto third = h.submit(job_builder{}.stage("s", 1));
  h.add(executor_builder{}.cores(2));
  EXPECT_THAT(h.attempts_of(first, 0), SizeIs(1));
  EXPECT_THAT(h.attempts_of(second, 0), SizeIs(1));
  EXPECT_THAT(h.attempts_of(third, 0), SizeIs(0));
  h.drain();
  h.check_idle();
}

TEST(exact_placement, a_task_only_profile_runs_on_whatever_executor_its_tasks_fit) {
  scheduler_harness h{by_identity()};
  auto small = gpu_shared;
  small.executor["memory"].amount = 1 << 20; // the default profile would not fit it
  const auto e = h.add(of_shape(5, small));
  const auto job = h.submit(job_builder{}.profile(gpu_shared).stage("t", 3).with(1),
                            {defaults, task_only(1, {{"cpus", "0.5"}, {"gpu", "0.5"}})});
  ASSERT_THAT(h.attempts(e), SizeIs(2));
  EXPECT_TRUE(h.scheduler.pool().demand_of(0).content->is_task_only()) << "the executor checks no more than that";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(exact_placement, for_a_task_only_profile_executors_of_the_default_shape_are_wanted) {
  scheduler_harness h{by_identity()};
  const auto wide = make_profile({{"cores", 4}}, {{"cpus", "1"}});
  h.submit(job_builder{}.profile(wide).stage("d", 1).stage("t", 8).with(1),
           {{{0}, {1}, wide}, {{1}, {1}, make_profile({{"cores", 4}}, {{"cpus", "2"}}), true}});
  ASSERT_FALSE(h.loads.empty());
  ASSERT_THAT(h.loads.back().loads, SizeIs(1));
  EXPECT_EQ(h.loads.back().loads[0].shape, shape_id{1});
  EXPECT_EQ(h.loads.back().loads[0].executors_wanted, 1u + 4u) << "two tasks of the second stage on each";
  EXPECT_EQ(h.loads.back().new_shapes.at(0).profile.executor_amount("cores"), 4);
}

TEST(exact_placement, a_task_only_profile_waits_for_executors_of_other_profiles) {
  scheduler_harness h{by_identity()};
  h.answer = [](const executor_shape&) { return feasibility{false, true, "no default executor is ever started"}; };
  const std::vector<resolved_profile> profiles{defaults, task_only(1, {{"cpus", "1"}})};
  const auto builder = job_builder{}.profile(gpu_shared).stage("t", 1).with(1);
  const auto lucky = h.submit(builder, profiles);
  EXPECT_EQ(h.end_of(lucky), nullptr);
  const auto e = h.add(of_shape(4, gpu_shared));
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(lucky).state, job_state::succeeded);
  h.lose(e);
  const auto unlucky = h.submit(builder, profiles);
  h.tick(31s);
  ASSERT_NE(h.end_of(unlucky), nullptr);
  EXPECT_EQ(h.end_of(unlucky)->failure.code, ec::infeasible);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
