// Tasks that run out of memory are tried again with more.

#include <set>

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

constexpr std::int64_t gib = std::int64_t{1} << 30;

/// Tasks that take 1 GiB of executors of 4 GiB, and up to `ceiling` GiB.
resource_profile growing(std::int64_t ceiling) {
  auto profile = make_profile({{"cores", 4}, {"memory", 4 * gib}}, {{"memory", std::to_string(gib)}});
  profile.memory_ceiling = ceiling * gib;
  return profile;
}
executor_builder with_memory(std::int64_t gibibytes) { return executor_builder{}.cores(4).memory(gibibytes * gib); }
job_builder job_of(std::int64_t ceiling, std::uint32_t tasks) {
  return job_builder{}.profile(growing(ceiling)).stage("s", tasks).with(1).max_failures(1);
}
void run_out_of_memory(scheduler_harness& h, const fake_attempt& a) {
  task_failure why;
  why.cause = failure_cause::memory_limit;
  why.message = "took too much";
  h.end(a, task_status::failed, why);
}
/// What the only attempt holds of its executor's memory, in GiB.
std::int64_t held(const scheduler_harness& h) {
  const auto all = h.attempts();
  if (all.size() != 1) return -1;
  const auto lease = h.scheduler.pool().find_lease(all[0].lease);
  return lease->holding.resources.at("memory").at(0).amount.ceil() / gib;
}

TEST(escalation, gives_each_further_attempt_twice_the_memory) {
  scheduler_harness h;
  const auto e = h.add(with_memory(4));
  const auto job = h.submit(job_of(4, 1));
  EXPECT_EQ(held(h), 1);
  run_out_of_memory(h, h.attempts(e)[0]);
  EXPECT_EQ(held(h), 2) << "although one failure is one too many";
  run_out_of_memory(h, h.attempts(e)[0]);
  EXPECT_EQ(held(h), 4);
  const auto told = h.events<events::task_escalated>();
  ASSERT_THAT(told, SizeIs(2));
  EXPECT_EQ(told[1].attempt, 1u);
  EXPECT_EQ(told[1].executor, e);
  EXPECT_EQ(h.registry.find(told[1].profile)->content.task_amount("memory").ceil(), 4 * gib);
  run_out_of_memory(h, h.attempts(e)[0]);
  ASSERT_NE(h.end_of(job), nullptr) << "the ceiling";
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("failure 1 of 1 allowed: took too much"));
  h.check_idle();
}

TEST(escalation, concerns_the_task_alone) {
  scheduler_harness h;
  const auto e = h.add(with_memory(4));
  const auto job = h.submit(job_of(4, 6));
  ASSERT_THAT(h.attempts(e), SizeIs(4));
  run_out_of_memory(h, h.attempts(e)[0]);
  h.succeed(h.attempts(e)[0]);
  h.succeed(h.attempts(e)[0]);
  std::multiset<std::int64_t> amounts;
  for (const auto& a : h.attempts(e))
    amounts.insert(h.scheduler.pool().find_lease(a.lease)->holding.resources.at("memory").at(0).amount.ceil() / gib);
  EXPECT_EQ(amounts, (std::multiset<std::int64_t>{1, 1, 2})) << "one that was left, a new one, and the one tried again";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(escalation, asks_for_larger_executors_where_those_there_are_too_small) {
  scheduler_harness h;
  const auto e = h.add(with_memory(4));
  const auto job = h.submit(job_of(8, 1));
  for (int i = 0; i < 3; ++i) run_out_of_memory(h, h.attempts(e)[0]);
  EXPECT_THAT(h.attempts(), IsEmpty());
  ASSERT_FALSE(h.loads.back().loads.empty());
  const auto shape = h.loads.back().loads[0].shape;
  EXPECT_EQ(h.registry.find_shape(shape)->executor_amount("memory"), 8 * gib);
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("memory 8g"));
  const auto larger = h.add(with_memory(8));
  EXPECT_THAT(h.attempts(larger), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(escalation, to_what_can_never_be_had_fails_the_job) {
  scheduler_harness h;
  h.answer = [](const executor_shape& s) {
    return feasibility{s.profile.executor_amount("memory") <= 4 * gib, true, "hosts have 4g"};
  };
  const auto e = h.add(with_memory(4));
  const auto job = h.submit(job_of(8, 1));
  for (int i = 0; i < 3; ++i) run_out_of_memory(h, h.attempts(e)[0]);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::infeasible);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("hosts have 4g"));
  h.check_idle();
}

TEST(escalation, follows_the_end_of_an_executor_at_its_memory_limit) {
  auto profile = make_profile({{"cores", 2}, {"memory", 4 * gib}}, {});
  profile.memory_ceiling = 8 * gib;
  executor_exit exit;
  exit.cause = exit_cause::memory_limit;
  scheduler_harness h;
  auto e = h.add(with_memory(4));
  const auto job = h.submit(job_builder{}.profile(profile).stage("s", 2).with(1).max_failures(1));
  ASSERT_THAT(h.attempts(e), SizeIs(2));
  h.lose(e, "memory", true, exit);
  EXPECT_THAT(h.events<events::task_escalated>(), IsEmpty()) << "either of them may have done it";
  e = h.add(with_memory(4));
  ASSERT_THAT(h.attempts(e), SizeIs(1));
  h.lose(e, "memory", true, exit);
  EXPECT_THAT(h.events<events::task_escalated>(), SizeIs(1));
  e = h.add(with_memory(4));
  ASSERT_THAT(h.attempts(e), SizeIs(1)) << "the innocent one; the other has no room here";
  EXPECT_EQ(h.attempts(e)[0].partition, 1u);
  const auto larger = h.add(with_memory(8));
  ASSERT_THAT(h.attempts(larger), SizeIs(1));
  EXPECT_EQ(h.attempts(larger)[0].partition, 0u);
  h.lose(larger, "memory", true, exit);
  ASSERT_NE(h.end_of(job), nullptr) << "the ceiling";
  h.drain();
  h.check_idle();
}

TEST(escalation, of_a_task_with_two_attempts_is_one_step) {
  dag_scheduler::options options;
  options.speculation = {true, share{share::units_per_whole / 2}, share::whole(2), 1ms};
  scheduler_harness h{options};
  const auto e = h.add(with_memory(4).host("a"));
  const auto job = h.submit(job_of(4, 2));
  const auto first = h.attempts(e).at(0);
  h.succeed(h.attempts(e).at(1));
  h.add(with_memory(4).host("b"));
  h.tick(9s);
  ASSERT_THAT(h.attempts(), SizeIs(2));
  const auto copy = h.attempts()[0].attempt == 1 ? h.attempts()[0] : h.attempts()[1];
  run_out_of_memory(h, first);
  EXPECT_THAT(h.attempts(), SizeIs(1));
  run_out_of_memory(h, copy);
  EXPECT_EQ(held(h), 2) << "it ran with as much as the first";
  ASSERT_THAT(h.events<events::task_escalated>(), SizeIs(1));
  EXPECT_EQ(h.events<events::task_escalated>()[0].attempt, 0u);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(escalation, of_a_choice_that_has_reached_its_ceiling_leaves_it_as_it_is) {
  auto small = make_profile({{"cores", 1}, {"memory", 4 * gib}}, {{"memory", std::to_string(gib)}});
  small.memory_ceiling = 4 * gib;
  auto profile = make_profile({{"cores", 1}, {"gpu", 1}, {"memory", 2 * gib}}, {{"gpu", "1"}}); // no ceiling
  profile.alternatives = {small};
  scheduler_harness h;
  const auto e = h.add(with_memory(4));
  const auto job = h.submit(job_builder{}.profile(profile).stage("s", 1).with(1).max_failures(1));
  for (const std::int64_t expected : {1, 2, 4}) {
    ASSERT_EQ(held(h), expected);
    if (expected < 4) run_out_of_memory(h, h.attempts(e)[0]);
  }
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(escalation, does_not_follow_another_end_of_an_executor) {
  executor_exit exit;
  exit.cause = exit_cause::exit_code;
  scheduler_harness h;
  const auto e = h.add(with_memory(4));
  const auto job = h.submit(job_of(4, 1));
  h.lose(e, "it ended", true, exit);
  EXPECT_THAT(h.events<events::task_escalated>(), IsEmpty());
  EXPECT_NE(h.end_of(job), nullptr);
  h.check_idle();
}

TEST(escalation, of_an_alternative_goes_on_from_there) {
  auto small = make_profile({{"cores", 1}, {"memory", 2 * gib}}, {{"memory", std::to_string(gib)}});
  small.memory_ceiling = 2 * gib;
  auto profile = make_profile({{"cores", 1}, {"gpu", 1}, {"memory", 2 * gib}}, {{"gpu", "1"}});
  profile.memory_ceiling = 4 * gib;
  profile.alternatives = {small};
  scheduler_harness h;
  const auto e = h.add(with_memory(2));
  const auto job = h.submit(job_builder{}.profile(profile).stage("s", 1).with(1).max_failures(1));
  EXPECT_EQ(held(h), 1);
  run_out_of_memory(h, h.attempts(e)[0]);
  EXPECT_EQ(held(h), 2);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
