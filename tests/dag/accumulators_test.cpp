// What tasks count: each task once, whatever happened to its attempts.

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

/// The attempt has succeeded and counted `amount`.
void succeed_with(scheduler_harness& h, const fake_attempt& a, std::int64_t amount,
                  const std::string& accumulator = "read") {
  auto end = h.executor(h.executor_of(a)).success(a);
  end.counted = {{accumulator, amount}};
  h.deliver(h.executor(h.executor_of(a)).report({std::move(end)}));
}

TEST(accumulators, are_summed_over_tasks_and_stages) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(4));
  const auto job = h.submit(job_builder{}.stage("map", 2).stage("last", 1).after(0));
  EXPECT_THAT(h.progress(job).counted, IsEmpty());
  std::vector<fake_end> ends;
  for (const auto& a : h.attempts(e)) {
    ends.push_back(h.executor(e).success(a));
    ends.back().counted = {{"bad", -1}, {"read", 1 + a.partition}};
  }
  h.deliver(h.executor(e).report(std::move(ends)));
  EXPECT_THAT(h.progress(job).counted, ElementsAre(accumulated{"bad", -2}, accumulated{"read", 3})) << "so far";
  succeed_with(h, h.attempts(e).at(0), 10);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->progress.counted, ElementsAre(accumulated{"bad", -2}, accumulated{"read", 13}));
  h.check_idle();
}

TEST(accumulators, of_many_tasks_in_one_batch_are_told_apart) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("s", 7).stage("last", 1).after(0));
  h.succeed(h.attempts(e).at(0), {}, 1us); // from now on several are under way
  const auto all = h.attempts(e);
  ASSERT_THAT(all, SizeIs(6));
  std::vector<fake_end> ends;
  for (const auto& a : all) ends.push_back(h.executor(e).success(a));
  ends[0] = {all[0], task_status::failed, {}, {}};
  ends[1].counted = {{"a", 1}, {"b", 2}};
  ends[3].counted = {{"b", 4}};
  ends[5].counted = {{"a", 8}};
  const auto report = h.executor(e).report(std::move(ends), 1us);
  ASSERT_THAT(report.outcomes, SizeIs(1));
  h.deliver(report);
  EXPECT_THAT(h.progress(job).counted, ElementsAre(accumulated{"a", 9}, accumulated{"b", 6}));
}

TEST(accumulators, count_the_accepted_one_of_two_attempts) {
  dag_scheduler::options options;
  options.speculation.enabled = true;
  options.speculation.quantile = share{share::units_per_whole / 2};
  options.speculation.multiplier = share::whole(5);
  for (const bool copy_wins : {false, true}) {
    scheduler_harness h{options};
    h.add(executor_builder{}.cores(2).host("a"));
    h.add(executor_builder{}.cores(2).host("b"));
    const auto job = h.submit(job_builder{}.stage("s", 4).stage("last", 1).after(0));
    for (const auto& a : h.attempts())
      if (a.partition != 3) succeed_with(h, a, 1);
    h.tick(10s);
    const auto both = h.attempts();
    ASSERT_THAT(both, SizeIs(2));
    const auto& first = both[both[0].attempt == 0 ? 0 : 1];
    const auto& copy = both[both[0].attempt == 0 ? 1 : 0];
    ASSERT_EQ(copy.attempt, 1u);
    // The loser crossed the order to end.
    const auto loser = h.executor_of(copy_wins ? first : copy);
    auto late = h.executor(loser).success(copy_wins ? first : copy);
    late.counted = {{"read", 1000}};
    succeed_with(h, copy_wins ? copy : first, copy_wins ? 20 : 10);
    h.deliver(h.executor(loser).report({std::move(late)}));
    ASSERT_EQ(h.end_of(job), nullptr);
    EXPECT_THAT(h.progress(job).counted, ElementsAre(accumulated{"read", copy_wins ? 23 : 13}));
  }
}

TEST(accumulators, of_a_gang_that_starts_again_are_not_added_up) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier().stage("last", 1).after(0));
  auto members = h.attempts(e);
  ASSERT_THAT(members, SizeIs(2));
  succeed_with(h, members[0], 5);
  h.fail(members[1], "no");
  members = h.attempts(e);
  ASSERT_THAT(members, SizeIs(2)) << "both run again";
  for (const auto& member : members) succeed_with(h, member, 5);
  EXPECT_THAT(h.progress(job).counted, ElementsAre(accumulated{"read", 10}));
}

TEST(accumulators, forget_what_failed_attempts_have_counted) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("s", 2));
  succeed_with(h, h.attempts(e).at(0), 5);
  h.fail(h.attempts(e).at(0), "no");
  const auto again = h.attempts(e).at(0);
  EXPECT_EQ(again.attempt, 1u);
  succeed_with(h, again, 7);
  EXPECT_THAT(h.end_of(job)->progress.counted, ElementsAre(accumulated{"read", 12}));
}

TEST(accumulators, count_a_task_that_runs_again_in_place_of_what_it_had_counted) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("map", 1).buckets(1).stage("reduce", 1).reads(0));
  succeed_with(h, h.attempts(a).at(0), 5);
  EXPECT_THAT(h.progress(job).counted, ElementsAre(accumulated{"read", 5}));
  h.lose(a);
  const auto b = h.add(executor_builder{}.cores(1));
  succeed_with(h, h.attempts(b).at(0), 7, "other");
  EXPECT_THAT(h.progress(job).counted, ElementsAre(accumulated{"other", 7}, accumulated{"read", 0}));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST(accumulators, tell_of_a_failed_job_what_was_counted_by_then) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.max_failures(1).stage("s", 2));
  succeed_with(h, h.attempts(e).at(0), 5);
  h.fail(h.attempts(e).at(0), "no");
  ASSERT_TRUE(h.end_of(job)->failure);
  EXPECT_THAT(h.end_of(job)->progress.counted, ElementsAre(accumulated{"read", 5}));
}

TEST(accumulators, beyond_what_a_job_may_have_fail_it) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("count", max_accumulators + 1));
  for (std::size_t i = 0; i < max_accumulators; ++i) succeed_with(h, h.attempts(e).at(0), 1, std::to_string(i));
  EXPECT_EQ(h.end_of(job), nullptr);
  succeed_with(h, h.attempts(e).at(0), 1, "one more");
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, AllOf(HasSubstr("stage 0 (count)"), HasSubstr("reduce_by_key")));
  EXPECT_THAT(h.end_of(job)->progress.counted, SizeIs(max_accumulators));
  h.check_idle();
}

TEST(accumulators, of_a_task_beyond_the_batch_make_it_worthless) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("s", 1));
  auto forged = h.executor(e).report({h.executor(e).success(h.attempts(e).at(0))});
  auto batch = *forged.outcomes.at(0);
  batch.accumulators = {"read"};
  batch.counted = {{7, 0, 1}};
  forged.outcomes = {std::make_shared<const outcome_batch>(batch)};
  h.deliver(forged);
  EXPECT_EQ(h.end_of(job), nullptr);
}

} // namespace
} // namespace troupe::testing
