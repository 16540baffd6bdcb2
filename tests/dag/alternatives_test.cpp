// Stages whose tasks may run as one profile or another.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// One GPU a task, else eight cores.
resource_profile gpu_else_cpus() {
  auto profile = make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "1"}});
  profile.alternatives.push_back(make_profile({{"cores", 8}}, {{"cpus", "8"}}));
  return profile;
}
job_builder one_stage(std::uint32_t tasks) { return job_builder{}.profile(gpu_else_cpus()).stage("s", tasks).with(1); }

dag_scheduler::options waiting(duration wait) {
  dag_scheduler::options o;
  o.alternative_wait = wait;
  return o;
}

/// The shapes for which the last load report asks for executors, by whether they have a GPU.
std::vector<std::string> asked_for(const scheduler_harness& h) {
  std::vector<std::string> names;
  std::map<shape_id, resource_profile> known;
  for (const auto& load : h.loads)
    for (const auto& s : load.new_shapes) known.emplace(s.shape, s.profile);
  for (const auto& l : h.loads.back().loads)
    names.push_back(known.at(l.shape).executor_amount("gpu") > 0 ? "gpu" : "cpus");
  return names;
}

TEST(alternatives, what_is_free_is_taken_at_once_the_first_choice_first) {
  scheduler_harness h;
  const auto gpus = h.add(executor_builder{}.cores(1).gpus(1));
  const auto cores = h.add(executor_builder{}.cores(8));
  const auto job = h.submit(one_stage(3));
  ASSERT_THAT(h.attempts(gpus), SizeIs(1));
  ASSERT_THAT(h.attempts(cores), SizeIs(1));
  EXPECT_EQ(h.attempts(gpus)[0].partition, 0u) << "the first choice is served first";
  h.succeed_all(cores);
  EXPECT_THAT(h.attempts(cores), SizeIs(1)) << "who is free goes on";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  std::set<profile_id> granted;
  for (const auto& lease : h.events<events::lease_granted>()) granted.insert(lease.profile);
  EXPECT_THAT(granted, SizeIs(2)) << "each lease says as what its tasks run";
  h.check_idle();
}

TEST(alternatives, executors_are_asked_for_one_choice_after_the_other) {
  scheduler_harness h{waiting(3s)};
  const auto job = h.submit(one_stage(2));
  h.tick(200ms);
  EXPECT_THAT(asked_for(h), ElementsAre("gpu"));
  h.tick(2700ms);
  EXPECT_THAT(asked_for(h), ElementsAre("gpu"));
  h.tick(200ms);
  EXPECT_THAT(asked_for(h), ElementsAre("gpu", "cpus")) << "three seconds without room";
  h.add(executor_builder{}.cores(8));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(alternatives, a_stage_that_gets_room_now_and_then_asks_for_no_others) {
  scheduler_harness h{waiting(3s)};
  const auto gpus = h.add(executor_builder{}.cores(1).gpus(1));
  h.submit(one_stage(5));
  for (int i = 0; i < 4; ++i) {
    h.tick(2s);
    EXPECT_THAT(asked_for(h), ElementsAre("gpu")) << i;
    h.succeed_all(gpus);
  }
  h.drain();
  h.check_idle();
}

TEST(alternatives, what_can_never_be_had_is_not_waited_for) {
  scheduler_harness h{waiting(1h)};
  h.answer = [](const executor_shape& s) {
    return s.profile.executor_amount("gpu") > 0 ? feasibility{false, true, "no host has a gpu"} : feasibility{};
  };
  const auto job = h.submit(one_stage(2));
  h.tick(200ms);
  EXPECT_EQ(h.progress(job).state, job_state::running);
  EXPECT_THAT(asked_for(h), ElementsAre("cpus"));
  h.add(executor_builder{}.cores(8));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(alternatives, a_job_is_infeasible_only_when_every_choice_is) {
  scheduler_harness h;
  h.answer = [](const executor_shape& s) {
    return feasibility{false, true, s.profile.executor_amount("gpu") > 0 ? "no host has a gpu" : "no host has 8 cores"};
  };
  const auto job = h.submit(one_stage(2));
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::infeasible);
  EXPECT_THAT(h.end_of(job)->failure.message, AllOf(HasSubstr("no executor satisfies its profile (executor: cores 1"),
                                                    HasSubstr("nor its alternative (executor: cores 8"),
                                                    HasSubstr("no host has a gpu"), HasSubstr("no host has 8 cores")));
  h.check_idle();
}

TEST(alternatives, the_infeasible_timeout_is_over_when_it_is_for_every_choice) {
  auto options = waiting(1s);
  options.infeasible_timeout = 10s;
  scheduler_harness h{options};
  h.answer = [](const executor_shape&) { return feasibility{false, false, "not now"}; };
  const auto job = h.submit(one_stage(1));
  h.tick(9s);
  EXPECT_EQ(h.end_of(job), nullptr);
  const auto cores = h.add(executor_builder{}.cores(8));
  h.tick(2s);
  EXPECT_EQ(h.end_of(job), nullptr) << "one choice is satisfied";
  h.succeed_all(cores);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);

  const auto late = h.submit(one_stage(1));
  h.lose(cores);
  h.tick(11s);
  ASSERT_NE(h.end_of(late), nullptr);
  EXPECT_THAT(h.end_of(late)->failure.message, HasSubstr("troupe.scheduler.infeasible-timeout"));
  h.check_idle();
}

TEST(alternatives, a_retry_may_run_as_another_choice) {
  scheduler_harness h;
  const auto gpus = h.add(executor_builder{}.cores(1).gpus(1));
  const auto job = h.submit(one_stage(1));
  h.fail(h.attempts(gpus).at(0), "out of memory");
  h.lose(gpus);
  const auto cores = h.add(executor_builder{}.cores(8));
  ASSERT_THAT(h.attempts(cores), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
