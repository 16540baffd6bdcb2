// What executors report: failures, missing inputs, refusals, and what comes late, twice, or garbled.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;

job_builder map_reduce(std::uint32_t maps, std::uint32_t reducers) {
  return job_builder{}.stage("map", maps).buckets(reducers).stage("reduce", reducers).reads(0);
}

TEST(report, failed_task_is_tried_again_until_the_limit_and_the_error_tells_all) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.host("alpha"));
  const auto job = h.submit(job_builder{}.stage("first", 1).stage("second", 3).after(0));
  h.succeed_all(e, 20ms);
  for (attempt_number attempt = 0; attempt < 4; ++attempt) {
    ASSERT_EQ(h.end_of(job), nullptr);
    const auto running = h.attempts(e).at(0);
    ASSERT_EQ(running.partition, 0u);
    ASSERT_EQ(running.attempt, attempt);
    h.fail(running, "boom at line 7", "line a\nline b\n");
  }
  ASSERT_NE(h.end_of(job), nullptr);
  const auto& failure = h.end_of(job)->failure;
  EXPECT_EQ(failure.code, ec::task_failed);
  EXPECT_THAT(failure.message, AllOf(HasSubstr("stage 1 (second)"), HasSubstr("partition 0"), HasSubstr("attempt 3"),
                                     HasSubstr("executor 1 (alpha)"), HasSubstr("failure 4 of 4"),
                                     HasSubstr("boom at line 7"), EndsWith("line a\nline b")));
  EXPECT_EQ(h.end_of(job)->progress.state, job_state::failed);
  EXPECT_EQ(h.end_of(job)->progress.stages[1].failures, 4u);
  EXPECT_EQ(h.end_of(job)->progress.stages[1].state, stage_state::failed);
  h.check_idle();
}

TEST(report, the_job_says_how_many_failures_it_allows) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.max_failures(1).stage("s", 1));
  h.fail(h.attempts(e)[0], "once");
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("failure 1 of 1"));
  h.check_idle();
}

TEST(report, failures_of_different_tasks_are_counted_apart) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(8));
  const auto job = h.submit(job_builder{}.max_failures(2).stage("s", 8));
  for (const auto& a : h.attempts(e)) h.fail(a, "first time");
  EXPECT_EQ(h.end_of(job), nullptr);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, failure_of_one_job_leaves_others_alone) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(4));
  const auto bad = h.submit(job_builder{}.max_failures(1).stage("s", 2));
  const auto good = h.submit(job_builder{}.stage("s", 5));
  h.fail(h.attempts_of(bad, 0)[0], "boom");
  EXPECT_NE(h.end_of(bad), nullptr);
  EXPECT_EQ(h.end_of(good), nullptr);
  h.drain();
  EXPECT_EQ(h.progress(good).state, job_state::succeeded);
  EXPECT_EQ(h.scheduler.pool().find(e), 0u);
  h.check_idle();
}

TEST(report, killed_and_lost_attempts_are_not_blamed_but_do_not_go_round_for_ever) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  for (int i = 0; i < 20; ++i) h.end(h.attempts(e).at(0), i % 2 ? task_status::killed : task_status::lost);
  EXPECT_EQ(h.end_of(job), nullptr);
  for (int i = 0; i < 2000 && !h.end_of(job); ++i) h.end(h.attempts(e).at(0), task_status::lost);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("lost"));
  h.check_idle();
}

TEST(report, late_outcome_of_an_older_attempt_does_not_take_the_place_of_the_retry) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 1));
  const auto old = h.attempts(e)[0];
  h.fail(old, "boom");
  const auto retry = h.attempts(e).at(0);
  ASSERT_EQ(retry.lease, old.lease) << "the retry runs under the same lease";
  auto late = h.executor(e).success(old);
  h.deliver(h.executor(e).report({late}));
  EXPECT_EQ(h.scheduler.stale_messages(), 1u);
  EXPECT_EQ(h.end_of(job), nullptr);
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  h.succeed(retry);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, repeated_report_changes_nothing) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 3));
  const auto report = h.executor(e).report({h.executor(e).success(h.attempts(e)[0], "x")});
  h.deliver(report);
  const auto before = h.attempts();
  h.deliver(report);
  EXPECT_EQ(h.scheduler.stale_messages(), 1u);
  EXPECT_EQ(h.attempts(), before);
  EXPECT_EQ(h.progress(job).stages[0].done, 1u);
  h.drain();
  h.deliver(report);
  EXPECT_EQ(h.scheduler.stale_messages(), 2u);
  h.check_idle();
}

TEST(report, another_incarnation_lease_or_executor_is_not_heard) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto other = h.add(executor_builder{}.build("other"));
  const auto job = h.submit(job_builder{}.stage("s", 1));
  const auto a = h.attempts(e)[0];
  const auto honest = h.executor(e).report({h.executor(e).success(a)});
  auto report = honest;
  report.epoch += 1;
  h.deliver(report);
  report = honest;
  report.executor = {99};
  h.deliver(report);
  report = honest;
  report.executor = other;
  report.epoch = h.executor(other).info().epoch;
  h.deliver(report);
  report = honest;
  auto batch = std::make_shared<outcome_batch>(*report.outcomes[0]);
  batch->lease = {4711};
  report.outcomes = {batch};
  h.deliver(report);
  report.outcomes = {nullptr};
  h.deliver(report);
  EXPECT_EQ(h.scheduler.stale_messages(), 5u);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.deliver(honest);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, which_buckets_are_empty_travels_to_their_readers) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(map_reduce(2, 3));
  const auto first = encode_bucket_sizes(std::vector<std::uint64_t>{5, 0, 7});
  for (const auto& a : h.attempts(e))
    h.deliver(
        h.executor(e).report({fake_end{a, task_status::succeeded, map_result(12, a.partition == 0 ? first : ""), {}}}));
  const auto* install = h.executor(e).installed(h.stage_of(job, 1));
  ASSERT_TRUE(install);
  ASSERT_THAT(install->inputs, SizeIs(1));
  const auto& input = install->inputs[0];
  ASSERT_TRUE(input.empty_of_map);
  EXPECT_EQ((*input.empty_of_map)[0], "\2");
  EXPECT_EQ((*input.empty_of_map)[1], "");
  h.drain();
  h.check_idle();
}

TEST(report, malformed_results_count_as_failures_and_the_task_runs_again) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(map_reduce(1, 1));
  for (const auto& entry : {std::string{}, inline_result("x"), map_result(1).substr(0, 5)}) {
    const auto a = h.attempts(e).at(0);
    h.deliver(h.executor(e).report({fake_end{a, task_status::succeeded, entry, {}}}));
    ASSERT_THAT(h.attempts(e), SizeIs(1)) << "the task runs again";
    ASSERT_EQ(h.attempts(e)[0].attempt, a.attempt + 1);
  }
  h.deliver(h.executor(e).report({fake_end{h.attempts(e)[0], task_status::succeeded, map_result(1, "no sizes"), {}}}));
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("malformed result"));
  h.check_idle();
}

TEST(report, columns_of_wrong_length_change_nothing) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1));
  const auto honest = *h.executor(e).report({h.executor(e).success(h.attempts(e)[0])}).outcomes[0];
  const auto deliver = [&](auto change) {
    auto batch = std::make_shared<outcome_batch>(honest);
    change(*batch);
    executor_report r;
    r.executor = e;
    r.epoch = h.executor(e).info().epoch;
    r.outcomes = {batch};
    effects::list out;
    h.scheduler.on_report(r, h.now, out);
    EXPECT_TRUE(out.empty());
  };
  deliver([](outcome_batch& b) { b.partitions.push_back(1); });
  deliver([](outcome_batch& b) { b.attempts.push_back(1); });
  deliver([](outcome_batch& b) { b.statuses.push_back(task_status::succeeded); });
  deliver([](outcome_batch& b) { b.count = 4'000'000'000; });
  EXPECT_EQ(h.scheduler.stale_messages(), 4u);
  EXPECT_EQ(h.scheduler.fault(), std::nullopt);
}

TEST(report, results_column_that_lies_about_its_ends_is_a_failed_task) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1));
  auto report = h.executor(e).report({h.executor(e).success(h.attempts(e)[0])});
  auto batch = std::make_shared<outcome_batch>(*report.outcomes[0]);
  batch->results.ends = {4000};
  report.outcomes = {batch};
  h.deliver(report);
  EXPECT_EQ(h.events<events::task_failed>().size(), 1u);
  EXPECT_EQ(h.attempts(e).at(0).attempt, 1u);
  h.drain();
  h.check_idle();
}

TEST(report, reducers_wait_for_all_map_outputs_and_learn_where_they_are) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto b = h.add(executor_builder{});
  const auto job = h.submit(map_reduce(2, 1));
  h.succeed_all(b);
  EXPECT_THAT(h.attempts_of(job, 1), SizeIs(0));
  h.succeed_all(a);
  ASSERT_THAT(h.attempts_of(job, 1), SizeIs(1));
  const auto where = h.executor_of(h.attempts_of(job, 1)[0]);
  const auto* install = h.executor(where).installed(h.stage_of(job, 1));
  ASSERT_THAT(install->inputs, SizeIs(1));
  const auto& input = install->inputs[0];
  EXPECT_EQ(input.shuffle, h.stage_of(job, 0));
  ASSERT_THAT(input.endpoint_of_map, SizeIs(2));
  EXPECT_EQ(input.endpoints[input.endpoint_of_map[0]].executor, a);
  EXPECT_EQ(input.endpoints[input.endpoint_of_map[1]].executor, b);
  h.drain();
  h.check_idle();
}

TEST(report, missing_map_output_is_made_again_and_the_reducer_runs_with_new_inputs) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(map_reduce(2, 1));
  h.succeed_all(e);
  h.succeed_all(e);
  const auto reducer = h.attempts_of(job, 1).at(0);
  h.fetch_fail(reducer, h.stage_of(job, 0), 1);
  ASSERT_THAT(h.attempts_of(job, 0), SizeIs(1));
  EXPECT_EQ(h.attempts_of(job, 0)[0].partition, 1u);
  EXPECT_EQ(h.attempts_of(job, 0)[0].attempt, 1u);
  EXPECT_THAT(h.attempts_of(job, 1), SizeIs(0)) << "it waits for its input";
  EXPECT_EQ(h.progress(job).stages[1].state, stage_state::waiting);
  h.succeed_all(e);
  const auto again = h.attempts_of(job, 1).at(0);
  EXPECT_EQ(again.stage_attempt, 1u);
  EXPECT_EQ(h.executor(e).installed(again.stage)->inputs[0].attempt_of_map, (std::vector<attempt_number>{0, 1}));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded) << "a missing input is not the reducer's fault";
  h.check_idle();
}

TEST(report, stale_news_of_a_missing_output_do_not_lose_its_replacement) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(map_reduce(1, 2));
  h.succeed_all(e);
  const auto reducers = h.attempts_of(job, 1);
  ASSERT_THAT(reducers, SizeIs(2));
  h.fetch_fail(reducers[0], h.stage_of(job, 0), 0);
  h.succeed(h.attempts_of(job, 0).at(0));
  h.fetch_fail(reducers[1], h.stage_of(job, 0), 0); // of stage attempt 0
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(0)) << "the output was made again already";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.progress(job).stages[0].attempt, 1u);
  h.check_idle();
}

TEST(report, outputs_missing_in_one_stage_attempt_count_once) {
  scheduler_harness h;
  std::vector<executor_id> all;
  for (int i = 0; i < 8; ++i) all.push_back(h.add(executor_builder{}));
  const auto job = h.submit(map_reduce(8, 8));
  for (const auto e : all) h.succeed_all(e);
  const auto reducers = h.attempts_of(job, 1);
  ASSERT_THAT(reducers, SizeIs(8));
  for (partition_index p = 0; p < 8; ++p) h.fetch_fail(reducers[p], h.stage_of(job, 0), p);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, executor_that_cannot_serve_twice_in_a_row_loses_all_outputs_of_the_shuffle) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(8));
  const auto job = h.submit(map_reduce(8, 1));
  h.succeed_all(e);
  h.fetch_fail(h.attempts_of(job, 1).at(0), h.stage_of(job, 0), 0);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(1));
  h.succeed_all(e);
  h.fetch_fail(h.attempts_of(job, 1).at(0), h.stage_of(job, 0), 1);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(8));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, stage_attempts_that_miss_inputs_in_a_row_fail_the_job) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(map_reduce(1, 1));
  for (attempt_number i = 0; i < 4; ++i) {
    ASSERT_EQ(h.end_of(job), nullptr);
    h.succeed_all(e);
    h.fetch_fail(h.attempts_of(job, 1).at(0), h.stage_of(job, 0), 0, i);
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::fetch_failed);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("stage 1 (reduce)"),
                    HasSubstr("stage 1 (reduce) has failed the maximum allowable number of times: 4. Most recent "
                              "failure reason: stage 1 (reduce), partition 0"),
                    HasSubstr("no answer"), HasSubstr("troupe.scheduler.max-stage-attempts")));
  h.check_idle();
}

TEST(report, invented_missing_input_is_blamed_on_the_task) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(map_reduce(1, 1));
  h.succeed_all(e);
  const auto maps = h.stage_of(job, 0);
  h.fetch_fail(h.attempts_of(job, 1).at(0), maps, 0, 7);
  h.fetch_fail(h.attempts_of(job, 1).at(0), maps, 4'000'000'000);
  h.fetch_fail(h.attempts_of(job, 1).at(0), stage_id{4711}, 0);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(0));
  EXPECT_EQ(h.end_of(job), nullptr);
  h.end(h.attempts_of(job, 1).at(0), task_status::fetch_failed);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::task_failed);
  h.check_idle();
}

TEST(report, refused_grant_sends_the_tasks_elsewhere) {
  scheduler_harness h;
  const auto bad = h.add(executor_builder{});
  h.executor(bad).refuse_grants("no such address");
  const auto job = h.submit(job_builder{}.stage("s", 3));
  const auto good = h.add(executor_builder{});
  h.deliver_refusals(bad);
  EXPECT_THAT(h.events<events::lease_refused>(), SizeIs(1));
  EXPECT_THAT(h.attempts(bad), SizeIs(0));
  while (!h.attempts(good).empty()) h.succeed_all(good, 20ms);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, refusing_executor_is_asked_again_after_a_pause_not_in_a_loop) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.executor(e).refuse_batches("no space left");
  const auto job = h.submit(job_builder{}.stage("s", 1));
  h.deliver_refusals(e);
  EXPECT_THAT(h.attempts(), SizeIs(0));
  EXPECT_FALSE(h.executor(e).has_refusals()) << "it was not asked again at once";
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("no space left"));
  h.executor(e).refuse_batches("");
  h.tick(500ms);
  EXPECT_THAT(h.attempts(), SizeIs(0));
  h.tick(600ms);
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, what_is_refused_for_ever_fails_its_job_in_the_end) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.executor(e).refuse_batches("no space left");
  const auto job = h.submit(job_builder{}.stage("s", 1));
  for (std::uint32_t i = 0; i < task_set::free_attempts + 10 && h.end_of(job) == nullptr; ++i) {
    h.deliver_refusals(e);
    h.tick(1100ms);
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, AllOf(HasSubstr("refused"), HasSubstr("no space left")));
  h.check_idle();
}

TEST(report, executor_of_another_build_never_gets_the_stage_again) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  h.executor(e).refuse_batches("another build", true);
  const auto job = h.submit(job_builder{}.stage("s", 2));
  h.deliver_refusals(e);
  h.executor(e).refuse_batches("");
  h.tick(10s);
  EXPECT_THAT(h.attempts(e), SizeIs(0));
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("another build"));
  h.submit(job_builder{}.stage("command", 1).command());
  EXPECT_THAT(h.attempts(e), SizeIs(1)) << "commands may still run there";
  h.add(executor_builder{});
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(report, late_refusal_of_an_older_attempt_is_ignored) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  h.submit(job_builder{}.stage("s", 1));
  const auto old = h.attempts(e)[0];
  h.fail(old, "boom");
  executor_report r;
  r.executor = e;
  r.epoch = h.executor(e).info().epoch;
  r.refusals.push_back({old.lease, old.stage, {old.partition}, {old.attempt}, "late", false});
  h.deliver(r);
  EXPECT_EQ(h.scheduler.stale_messages(), 1u);
  r.refusals[0].attempts = {0, 1, 2};
  h.deliver(r);
  EXPECT_EQ(h.scheduler.stale_messages(), 2u);
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(report, failures_of_a_stage_that_nobody_needs_any_more_do_not_fail_the_job) {
  scheduler_harness h;
  const auto maps = h.add(executor_builder{});
  h.add(executor_builder{}.build("x").cores(2));
  const auto job = h.submit(job_builder{}
                                .max_failures(1)
                                .stage("map", 1)
                                .buckets(1)
                                .stage("reduce", 1)
                                .reads(0)
                                .build_id("x")
                                .stage("other", 1)
                                .build_id("x"));
  h.succeed_all(maps);
  h.lose(maps); // its output is lost while the reducer runs, so it is made again
  h.add(executor_builder{});
  const auto again = h.attempts_of(job, 0).at(0);
  h.succeed(h.attempts_of(job, 1).at(0)); // the reducer had read it in time
  h.fail(again, "too late to matter");
  EXPECT_EQ(h.end_of(job), nullptr);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(0));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
