// Executors that die, leave, or come back as somebody else.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;

job_builder maps_and_reducers(std::uint32_t maps, std::uint32_t reducers) {
  return job_builder{}.stage("map", maps).buckets(reducers).stage("reduce", reducers).reads(0);
}

TEST(executor_loss, in_the_map_stage_its_tasks_and_its_outputs_are_made_elsewhere) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto b = h.add(executor_builder{});
  const auto job = h.submit(maps_and_reducers(4, 1));
  h.succeed_all(a, 20ms); // partition 0
  h.lose(a);              // while it runs another
  h.succeed_all(b, 20ms);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(1));
  h.drain(20ms);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, in_the_reduce_stage_lost_outputs_are_made_again_and_reducers_get_new_inputs) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(maps_and_reducers(4, 4));
  h.succeed_all(a);
  h.succeed_all(b);
  ASSERT_THAT(h.attempts_of(job, 1), SizeIs(4));
  h.succeed(h.attempts(b)[0]); // one reducer is done and stays done
  h.lose(a);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(1)) << "one slot of b is free for the two lost outputs";
  EXPECT_EQ(h.progress(job).stages[1].state, stage_state::waiting);
  h.succeed(h.attempts_of(job, 1).at(0)); // a reducer that has fetched already may finish meanwhile
  h.succeed_all(b);
  ASSERT_THAT(h.attempts_of(job, 1), SizeIs(2)) << "those of the lost executor";
  for (const auto& r : h.attempts_of(job, 1)) {
    EXPECT_EQ(r.stage_attempt, 1u);
    for (const auto& endpoint : h.executor(b).installed(r.stage)->inputs[0].endpoints) EXPECT_EQ(endpoint.executor, b);
  }
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, is_told_to_those_who_may_wait_for_its_outputs) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(2));
  const auto idle = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(maps_and_reducers(6, 4));
  for (const auto e : {a, b, idle}) h.succeed_all(e);
  ASSERT_THAT(h.attempts_of(job, 1), SizeIs(4));
  const auto reader = h.attempts(a).empty() ? b : a;
  const auto other = h.attempts(idle).empty() ? idle : b;
  const auto lost = reader == a ? (other == b ? idle : b) : a;
  h.lose(lost);
  EXPECT_THAT(h.executor(reader).told_gone(), ::testing::ElementsAre(lost));
  EXPECT_THAT(h.executor(other).told_gone(), SizeIs(h.attempts(other).empty() ? 0 : 1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, that_kept_nothing_is_told_to_nobody) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto b = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("work", 2));
  h.lose(a);
  EXPECT_THAT(h.executor(b).told_gone(), SizeIs(0));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST(executor_loss, that_is_announced_keeps_new_tasks_away_until_it_is_told) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  h.lose_connection(a);
  h.lose_connection(a); // as harmless as once
  const auto job = h.submit(job_builder{}.stage("work", 1));
  EXPECT_THAT(h.attempts(a), SizeIs(0));
  const auto b = h.add(executor_builder{});
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  h.lose(a, "it was killed");
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, outputs_that_nobody_needs_any_more_are_not_made_again) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto job = h.submit(maps_and_reducers(1, 1).stage("last", 1).after(1));
  h.succeed_all(a); // map
  const auto b = h.add(executor_builder{});
  h.succeed(h.attempts_of(job, 1).at(0)); // reduce
  const auto last = h.attempts_of(job, 2).at(0);
  if (h.executor_of(last) == a)
    h.lose(b); // keep the one that runs
  else
    h.lose(a);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(0));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.progress(job).stages[0].attempt, 0u);
  h.check_idle();
}

TEST(executor_loss, only_the_task_at_the_front_of_a_lease_is_to_blame) {
  scheduler_harness h;
  auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.max_failures(3).stage("s", 2000));
  h.succeed_all(e, 100ns);
  ASSERT_GT(h.attempts(e).size(), 1000u);
  h.lose(e);
  ASSERT_THAT(h.events<events::task_failed>(), SizeIs(1));
  EXPECT_EQ(h.events<events::task_failed>()[0].partition, 1u);
  EXPECT_EQ(h.events<events::task_failed>()[0].status, task_status::lost);
  EXPECT_EQ(h.progress(job).stages[0].failures, 1u);
  e = h.add(executor_builder{});
  h.drain(100ns);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, a_task_that_takes_its_executors_with_it_fails_the_job) {
  scheduler_harness h;
  const auto job = h.submit(job_builder{}.stage("poison", 1));
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(h.end_of(job), nullptr);
    h.lose(h.add(executor_builder{}.host("alpha")), "killed by signal 11");
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("stage 0 (poison)"), HasSubstr("partition 0"), HasSubstr("attempt 3"),
                    HasSubstr("executor 4 on alpha"), HasSubstr("killed by signal 11"), HasSubstr("failure 4 of 4")));
  h.check_idle();
}

TEST(executor_loss, one_that_left_on_purpose_is_nobody_s_fault) {
  scheduler_harness h;
  const auto job = h.submit(job_builder{}.max_failures(1).stage("s", 1));
  h.lose(h.add(executor_builder{}), "stopped", false);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.add(executor_builder{});
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, news_of_an_older_incarnation_are_ignored) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1));
  effects::list out;
  h.scheduler.on_executor_gone(e, h.executor(e).info().epoch - 1, "old", true, h.now, out);
  h.scheduler.on_executor_gone({99}, 1, "unknown", true, h.now, out);
  EXPECT_TRUE(out.empty());
  EXPECT_EQ(h.scheduler.stale_messages(), 2u);
  h.drain();
  h.check_idle();
}

TEST(executor_loss, a_second_admission_is_ignored_and_a_new_incarnation_replaces_the_old_one) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  effects::list out;
  auto info = h.executor(e).info();
  h.scheduler.on_executor_added(info, h.now, out);
  EXPECT_TRUE(out.empty());
  info.epoch += 1;
  h.scheduler.on_executor_added(info, h.now, out);
  EXPECT_EQ(h.scheduler.fault(), std::nullopt);
  EXPECT_EQ(h.scheduler.executors().size(), 1u);
  EXPECT_EQ(h.scheduler.executors()[0].info->epoch, info.epoch);
  EXPECT_EQ(h.progress(job).stages[0].running, 1u) << "the task runs again, under the new incarnation";
}

TEST(executor_loss, a_place_in_the_pool_is_used_again_without_mixing_up_the_two) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 3));
  h.succeed_all(a, 20ms);
  const auto old = h.attempts(a).at(0);
  const auto epoch = h.executor(a).info().epoch;
  const auto late = h.executor(a).report({h.executor(a).success(old)});
  h.lose(a);
  const auto b = h.add(executor_builder{}); // takes the same place
  EXPECT_EQ(h.scheduler.pool().find(b), 0u);
  h.deliver(late);
  EXPECT_EQ(h.scheduler.stale_messages(), 1u);
  EXPECT_EQ(late.epoch, epoch);
  EXPECT_EQ(h.progress(job).stages[0].done, 1u);
  h.drain();
  h.check_idle();
}

TEST(executor_loss, all_executors_may_go_and_the_job_goes_on_with_new_ones) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(maps_and_reducers(6, 3));
  h.succeed_all(a);
  h.succeed_all(b);
  h.lose(b);
  h.lose(a);
  EXPECT_EQ(h.progress(job).stages[0].done, 0u);
  h.add(executor_builder{}.cores(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(executor_loss, leaves_what_its_commands_have_printed) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto commands = h.submit(job_builder{}.stage("c", 3).command());
  const auto program = h.submit(job_builder{}.stage("p", 1));
  const auto running = h.executor(a).running();
  ASSERT_THAT(running, SizeIs(2));
  h.lose(a, "killed by signal 9", true, {}, true);
  std::vector<effects::keep_printed> expected;
  for (const auto& attempt : running)
    expected.push_back({commands, attempt.stage, attempt.partition, attempt.attempt, "/"});
  EXPECT_THAT(h.printed_by_lost, UnorderedElementsAreArray(expected));
  const auto b = h.add(executor_builder{}.cores(2));
  h.lose(b, "silent");
  EXPECT_THAT(h.printed_by_lost, SizeIs(2)) << "its commands may still run, and print";
  h.cancel(commands);
  h.cancel(program);
}

} // namespace
} // namespace troupe::testing
