// Inputs that are found missing: what is made again, when, and how often (spec 8.2), under both policies.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

dag_scheduler::options options_of(profile_matching matching, std::uint32_t max_stage_attempts = 4) {
  dag_scheduler::options o;
  o.matching = matching;
  o.max_stage_attempts = max_stage_attempts;
  if (matching == profile_matching::exact) o.resubmit_delay = 200ms;
  return o;
}

constexpr auto exact = profile_matching::exact;
constexpr auto compatible = profile_matching::compatible;

job_builder shuffled(std::uint32_t maps, std::uint32_t reducers) {
  return job_builder{}.stage("map", maps).buckets(reducers).stage("reduce", reducers).reads(0);
}

/// Two executors of two slots, maps shared out evenly and done, reducers running.
struct two_executors {
  explicit two_executors(dag_scheduler::options options, std::uint32_t maps, std::uint32_t reducers)
    : h(options), a(h.add(executor_builder{}.cores(2))), b(h.add(executor_builder{}.cores(2))),
      job(h.submit(shuffled(maps, reducers))) {
    for (const auto& m : h.attempts_of(job, 0)) (h.executor_of(m) == a ? on_a : on_b).push_back(m.partition);
    h.succeed_all(a);
    h.succeed_all(b);
    reducers_ = h.attempts_of(job, 1);
  }
  const fake_attempt& reducer(std::size_t i) { return reducers_.at(i); }
  void miss(std::size_t i, partition_index map) { h.fetch_fail(reducer(i), h.stage_of(job, 0), map); }
  attempt_number attempt(std::uint32_t stage) { return h.progress(job).stages.at(stage).attempt; }

  scheduler_harness h;
  executor_id a;
  executor_id b;
  std::vector<partition_index> on_a;
  std::vector<partition_index> on_b;
  job_id job;

private:
  std::vector<fake_attempt> reducers_;
};

// DG-7
TEST(exact_stage_attempts, what_is_missing_is_made_again_in_one_go_200_ms_after_the_first_failure) {
  two_executors t{options_of(exact), 4, 3};
  auto& h = t.h;
  t.miss(0, t.on_a[0]);
  EXPECT_EQ(h.progress(t.job).stages[1].state, stage_state::waiting);
  h.tick(100ms);
  t.miss(1, t.on_b[0]);
  h.tick(99ms);
  EXPECT_THAT(h.attempts_of(t.job, 0), SizeIs(0)) << "not before its time";
  EXPECT_THAT(h.attempts_of(t.job, 1), SizeIs(1)) << "what runs of the failed attempt runs on";
  h.tick(1ms);
  EXPECT_THAT(h.attempts_of(t.job, 0), SizeIs(3)) << "one slot is still taken";
  h.succeed(t.reducer(2));
  EXPECT_EQ(h.progress(t.job).stages[1].done, 1u) << "and counts";
  h.drain();
  EXPECT_EQ(h.progress(t.job).state, job_state::succeeded);
  EXPECT_EQ(t.attempt(0), 1u) << "one attempt for all that was missing";
  EXPECT_EQ(t.attempt(1), 1u);
  h.check_idle();
}

TEST(stage_attempts, what_is_missing_is_made_again_at_once) {
  two_executors t{options_of(compatible), 4, 3};
  t.miss(0, t.on_a[0]);
  EXPECT_THAT(t.h.attempts_of(t.job, 0), SizeIs(1));
  t.h.drain();
  t.h.check_idle();
}

// DG-9, and DESIGN section 5: losing a block reruns the task that made it, no more.
TEST(exact_stage_attempts, what_the_executor_of_a_missing_output_has_made_is_given_up_together) {
  for (const auto matching : {exact, compatible}) {
    two_executors t{options_of(matching), 4, 1};
    t.miss(0, t.on_a[0]);
    EXPECT_THAT(t.h.events<events::map_output_lost>(), SizeIs(matching == exact ? 2 : 1));
    t.h.tick(200ms);
    EXPECT_THAT(t.h.attempts_of(t.job, 0), SizeIs(matching == exact ? 2 : 1));
    t.h.drain();
    EXPECT_EQ(t.h.progress(t.job).state, job_state::succeeded);
    t.h.check_idle();
  }
}

// DG-9: once for a loss.
TEST(exact_stage_attempts, late_news_of_the_same_loss_do_not_lose_what_was_made_since) {
  two_executors t{options_of(exact), 2, 2};
  auto& h = t.h;
  t.miss(0, t.on_a[0]);
  h.tick(200ms);
  h.succeed(h.attempts_of(t.job, 0).at(0)); // made again
  ASSERT_EQ(t.attempt(1), 1u);
  t.miss(1, t.on_a[0]);
  EXPECT_THAT(h.attempts_of(t.job, 0), SizeIs(0));
  h.tick(1s);
  EXPECT_THAT(h.attempts_of(t.job, 0), SizeIs(0));
  h.drain();
  EXPECT_EQ(t.attempt(1), 1u);
  h.check_idle();
}

// DG-7: also where the output was known to be lost, and is made again already.
TEST(exact_stage_attempts, wait_for_their_time_although_their_input_is_there_again) {
  scheduler_harness h{options_of(exact)};
  const auto a = h.add(executor_builder{}.cores(1));
  h.add(executor_builder{}.cores(3));
  const auto job = h.submit(shuffled(1, 2));
  h.succeed_all(a);
  ASSERT_THAT(h.attempts_of(job, 1), SizeIs(2));
  h.lose(a, "it left", false);
  ASSERT_THAT(h.attempts_of(job, 0), SizeIs(1)) << "at once";
  h.fetch_fail(h.attempts_of(job, 1).at(0), h.stage_of(job, 0), 0);
  h.succeed(h.attempts_of(job, 0).at(0));
  EXPECT_THAT(h.attempts_of(job, 1), SizeIs(0));
  h.tick(200ms);
  EXPECT_THAT(h.attempts_of(job, 1), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

// DG-9 reaches every job; results, which nobody has missed, stay.
TEST(exact_stage_attempts, outputs_of_other_jobs_on_that_executor_are_made_again_and_results_are_not) {
  scheduler_harness h{options_of(exact)};
  const auto e = h.add(executor_builder{}.cores(4));
  const auto kept = h.submit(job_builder{}.stage("results", 1).stage("rest", 1).after(0));
  h.succeed_all(e);
  const auto holding = h.submit(job_builder{}.stage("large", 2)); // one of them is done, the other runs on
  auto end = h.executor(e).success(h.attempts_of(holding, 0).at(0));
  end.result = stored_result(1000);
  h.deliver(h.executor(e).report({end}));
  const auto other = h.submit(shuffled(1, 1));
  for (std::uint32_t stage = 0; stage < 2; ++stage) h.succeed(h.attempts_of(other, stage).at(0));
  const auto first = h.submit(shuffled(1, 1));
  h.succeed(h.attempts_of(first, 0).at(0));
  const auto second = h.submit(shuffled(1, 1));
  h.succeed(h.attempts_of(second, 0).at(0));
  ASSERT_THAT(h.attempts_of(second, 1), SizeIs(1));
  h.fetch_fail(h.attempts_of(first, 1).at(0), h.stage_of(first, 0), 0);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(2));
  EXPECT_EQ(h.progress(second).stages[1].state, stage_state::waiting);
  EXPECT_THAT(h.attempts_of(second, 0), SizeIs(0));
  h.tick(200ms);
  EXPECT_EQ(h.progress(second).stages[0].state, stage_state::running);
  h.drain();
  for (const auto job : {kept, holding, other, first, second}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.release_results(holding);
  h.check_idle();
}

// DG-5, DG-10
TEST(exact_stage_attempts, news_of_an_earlier_attempt_are_ignored) {
  for (const auto matching : {exact, compatible}) {
    two_executors t{options_of(matching), 2, 2};
    auto& h = t.h;
    t.miss(0, t.on_a[0]);
    h.tick(200ms);
    h.succeed(h.attempts_of(t.job, 0).at(0));
    ASSERT_EQ(t.attempt(1), 1u);
    t.miss(1, t.on_b[0]); // of attempt 0, and nobody has missed it before
    EXPECT_EQ(h.progress(t.job).stages[1].state, matching == exact ? stage_state::running : stage_state::waiting)
        << "compatible: whoever finds an output missing spares the next attempt from it";
    h.tick(1s);
    EXPECT_THAT(h.attempts_of(t.job, 0), SizeIs(matching == exact ? 0 : 1));
    h.drain();
    EXPECT_EQ(h.progress(t.job).state, job_state::succeeded);
    h.check_idle();
  }
}

// DG-6
TEST(exact_stage_attempts, an_attempt_fails_by_what_is_known_to_be_lost_too) {
  for (const auto matching : {exact, compatible}) {
    two_executors t{options_of(matching, 1), 2, 2};
    auto& h = t.h;
    const auto reader = h.executor_of(t.reducer(0)) == t.b ? 0u : 1u;
    h.lose(t.a);
    t.miss(reader, t.on_a[0]);
    if (matching == exact) {
      ASSERT_NE(h.end_of(t.job), nullptr);
      EXPECT_EQ(h.end_of(t.job)->failure.code, ec::fetch_failed);
    } else {
      EXPECT_EQ(h.end_of(t.job), nullptr) << "the executor's loss is no attempt's fault";
    }
    h.drain();
    h.check_idle();
  }
}

// DG-6: only attempts in a row count.
TEST(exact_stage_attempts, failed_attempts_are_forgotten_when_the_stage_completes) {
  for (const auto matching : {exact, compatible}) {
    scheduler_harness h{options_of(matching, 2)};
    const auto e = h.add(executor_builder{});
    const auto job = h.submit(
        job_builder{}.stage("first", 1).buckets(1).stage("second", 1).buckets(1).reads(0).stage("third", 1).reads(1));
    const auto work_until = [&](std::uint32_t stage) {
      while (h.attempts_of(job, stage).empty()) h.succeed_all(e);
    };
    const auto miss_input_of = [&](std::uint32_t stage) {
      const auto reader = h.attempts_of(job, stage).at(0);
      const auto input = h.executor(e).installed(reader.stage)->inputs.at(0);
      h.fetch_fail(reader, input.shuffle, 0, input.attempt_of_map.at(0));
      h.tick(200ms);
    };
    work_until(1);
    miss_input_of(1);
    work_until(2); // the second stage has completed
    miss_input_of(2);
    work_until(1); // and must run again
    miss_input_of(1);
    EXPECT_EQ(h.end_of(job), nullptr) << "its two failures were not in a row";
    h.drain();
    EXPECT_EQ(h.progress(job).state, job_state::succeeded);
    h.check_idle();
  }
}

TEST(exact_stage_attempts, a_job_that_ends_is_waited_for_no_longer) {
  two_executors t{options_of(exact), 2, 1};
  auto& h = t.h;
  t.miss(0, t.on_a[0]);
  EXPECT_THAT(h.progress(t.job).waiting_for, HasSubstr("stage 0 (map): its output or its input was lost; it runs "
                                                       "again in a moment"));
  h.tick(150ms);
  h.cancel(t.job);
  h.check_idle();
  const auto next = h.submit(shuffled(1, 1));
  h.drain(0s);
  EXPECT_EQ(h.progress(next).state, job_state::succeeded);
  const auto last = h.submit(shuffled(1, 1));
  h.succeed(h.attempts_of(last, 0).at(0), {}, 0s);
  h.fetch_fail(h.attempts_of(last, 1).at(0), h.stage_of(last, 0), 0);
  h.tick(100ms);
  EXPECT_THAT(h.attempts_of(last, 0), SizeIs(0)) << "the clock of the first job must not count for this one";
  h.tick(100ms);
  EXPECT_THAT(h.attempts_of(last, 0), SizeIs(1));
  h.drain();
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
