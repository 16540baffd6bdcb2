// Profiles that bound their tasks per executor, or want it for themselves.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::SizeIs;

resource_profile one_cpu(std::int64_t most, bool exclusive) {
  auto profile = make_profile({}, {{"cpus", "1"}});
  profile.max_tasks_per_executor = most;
  profile.exclusive = exclusive;
  return profile;
}
job_builder job_of(const resource_profile& profile, std::uint32_t tasks) {
  return job_builder{}.profile(profile).stage("s", tasks).with(1);
}

TEST(tenancy, leaves_the_rest_of_an_executor_to_others) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(4));
  const auto bounded = h.submit(job_of(one_cpu(1, false), 3));
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  const auto others = h.submit(job_of(one_cpu(0, false), 5));
  EXPECT_THAT(h.attempts(e), SizeIs(4)) << "three cores are free";
  h.drain();
  EXPECT_EQ(h.progress(bounded).state, job_state::succeeded);
  EXPECT_EQ(h.progress(others).state, job_state::succeeded);
  h.check_idle();
}

TEST(tenancy, spreads_one_task_to_each_executor) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(4));
  const auto b = h.add(executor_builder{}.cores(4));
  h.submit(job_of(one_cpu(1, false), 3));
  EXPECT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(tenancy, an_exclusive_stage_waits_until_others_have_left_and_then_keeps_them_out) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto first = h.submit(job_of(one_cpu(0, false), 1));
  const auto alone = h.submit(job_of(one_cpu(0, true), 2));
  const auto last = h.submit(job_of(one_cpu(0, false), 2));
  EXPECT_THAT(h.attempts(e), SizeIs(2)) << "the later job may use what the exclusive one cannot";
  h.succeed_all(e);
  h.succeed_all(e);
  EXPECT_EQ(h.progress(first).state, job_state::succeeded);
  h.drain();
  EXPECT_EQ(h.progress(alone).state, job_state::succeeded);
  EXPECT_EQ(h.progress(last).state, job_state::succeeded);
  std::map<lease_id, profile_id> held;
  for (const auto& lease : h.events<events::lease_granted>()) held[lease.lease] = lease.profile;
  EXPECT_GE(held.size(), 4u);
  h.check_idle();
}

TEST(tenancy, an_earlier_exclusive_stage_gets_its_executor_before_later_jobs_go_on) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto blocker = h.submit(job_of(one_cpu(0, false), 1));
  const auto alone = h.submit(job_of(one_cpu(0, true), 1));
  const auto flood = h.submit(job_of(one_cpu(0, false), 50));
  int rounds = 0;
  while (h.progress(alone).state == job_state::running && ++rounds < 10) h.succeed_all(e);
  EXPECT_EQ(h.progress(alone).state, job_state::succeeded) << "it is not starved by fifty small tasks";
  EXPECT_EQ(h.progress(flood).state, job_state::running);
  h.drain();
  EXPECT_EQ(h.progress(blocker).state, job_state::succeeded);
  EXPECT_EQ(h.progress(flood).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
