// Gangs that run: they meet, and fail as a whole.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <csignal>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

dag_scheduler::options with(profile_matching matching) {
  dag_scheduler::options o;
  o.matching = matching;
  if (matching == profile_matching::exact) o.resubmit_delay = 200ms;
  return o;
}

/// Reports what was killed as such.
void end_killed(scheduler_harness& h) {
  for (const auto& a : h.attempts())
    if (a.doomed) h.end(a, task_status::killed);
}

TEST(gang_attempts, meet_in_one_round_after_the_other) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("gang", 3).barrier());
  const auto tasks = h.attempts_of(job, 0);
  ASSERT_THAT(tasks, SizeIs(3));
  h.arrive(tasks[0]);
  h.arrive(tasks[2]);
  EXPECT_THAT(h.last_orders, IsEmpty());
  h.arrive(tasks[1]);
  ASSERT_THAT(h.last_orders[a].barriers, SizeIs(1));
  EXPECT_THAT(h.last_orders[a].barriers[0].partitions, ElementsAre(0, 1)) << "one message for each executor";
  EXPECT_THAT(h.last_orders[b].barriers[0].partitions, ElementsAre(2));
  EXPECT_EQ(h.last_orders[b].barriers[0].texts, nullptr);
  for (const auto& t : tasks) h.arrive(t, 1, sync_kind::all_gather, "from " + std::to_string(t.partition));
  ASSERT_TRUE(h.last_orders[b].barriers[0].texts);
  EXPECT_EQ((*h.last_orders[b].barriers[0].texts)[1], "from 1");
  EXPECT_EQ(h.last_orders[b].barriers[0].round, 1u);
  h.drain();
  h.check_idle();
}

TEST(gang_attempts, ignore_who_is_not_of_them) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 1));
  const auto tasks = h.attempts_of(job, 0);
  const auto stale = h.scheduler.stale_messages();
  auto forged = tasks[0];
  forged.attempt = 7;
  h.arrive(forged);
  forged = tasks[0];
  forged.partition = 99;
  h.arrive(forged);
  forged = tasks[0];
  forged.stage_attempt = 1;
  h.arrive(forged);
  h.arrive(tasks[0], 0, sync_kind::all_gather, std::string(max_gather_text + 1, 'x'));
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 4);
  const auto other = h.add(executor_builder{}.cores(1)); // runs nothing of the gang
  executor_report lie;
  lie.executor = other;
  lie.epoch = h.scheduler.pool()[h.scheduler.pool().find(other)].info.epoch;
  for (const auto& t : tasks) {
    barrier_arrival arrival;
    arrival.stage = t.stage;
    arrival.stage_attempt = t.stage_attempt;
    arrival.partition = t.partition;
    arrival.attempt = t.attempt;
    lie.arrivals.push_back(arrival);
  }
  h.deliver(lie);
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 6) << "nobody may arrive for tasks of another executor";
  h.succeed_all(e);
  h.arrive(h.attempts_of(plain, 0).front());
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 7) << "of no gang";
  h.drain();
  h.check_idle();
}

TEST(gang_attempts, each_has_a_clock_of_its_own) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(2));
  const auto one = h.submit(job_builder{}.stage("gang", 2).barrier(10s));
  const auto two = h.submit(job_builder{}.stage("gang", 2).barrier(20s));
  h.arrive(h.attempts_of(one, 0)[0]);
  h.arrive(h.attempts_of(two, 0)[0]);
  h.tick(9s);
  EXPECT_THAT(h.last_orders, IsEmpty());
  h.tick(1s);
  ASSERT_THAT(h.last_orders[a].barriers, SizeIs(1));
  EXPECT_THAT(h.last_orders[a].barriers[0].failure, HasSubstr("within 10000ms"));
  EXPECT_THAT(h.last_orders[b].barriers, IsEmpty());
  h.arrive(h.attempts_of(two, 0)[1]); // in time
  h.tick(30s);
  EXPECT_THAT(h.last_orders[b].barriers, IsEmpty()) << "it has met: nobody waits";
  h.drain();
  h.check_idle();
}

TEST(gang_attempts, nobody_waits_for_one_that_has_succeeded) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto tasks = h.attempts_of(job, 0);
  h.arrive(tasks[0]);
  h.succeed(tasks[1]);
  ASSERT_THAT(h.last_orders[e].barriers, SizeIs(1));
  EXPECT_THAT(h.last_orders[e].barriers[0].partitions, ElementsAre(0));
  EXPECT_THAT(h.last_orders[e].barriers[0].failure, HasSubstr("the task of partition 1 has ended"));
  h.drain();
  h.check_idle();
}

TEST(gang_attempts, one_that_fails_takes_the_others_along) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("gang", 3).barrier());
  auto tasks = h.attempts_of(job, 0);
  auto stored = h.executor(a).success(tasks[0]);
  stored.result = stored_result(1000); // in a block of the executor: the next attempt's value comes inline
  h.deliver(h.executor(a).report({stored}));
  h.arrive(tasks[2]);
  h.fail(tasks[1], "no luck");
  ASSERT_THAT(h.events<events::stage_restarted>(), SizeIs(1));
  EXPECT_THAT(h.events<events::stage_restarted>()[0].reason, HasSubstr("no luck"));
  EXPECT_THAT(h.last_orders[b].kills, ElementsAre(kill_task{tasks[2].stage, 2, 0}));
  EXPECT_THAT(h.attempts(a), IsEmpty()) << "they wait for the one that is being killed";
  end_killed(h);
  tasks = h.attempts_of(job, 0);
  ASSERT_THAT(tasks, SizeIs(3)) << "the one that had succeeded, too";
  for (const auto& t : tasks) {
    EXPECT_EQ(t.attempt, 1u);
    EXPECT_EQ(t.stage_attempt, 1u);
  }
  h.arrive(tasks[0]);
  h.arrive(tasks[1]);
  h.arrive(tasks[2]);
  EXPECT_THAT(h.last_orders[b].barriers, SizeIs(1)) << "who waited before waits no longer";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_THAT(h.values(job), ElementsAre("0", "1", "2"));
  EXPECT_EQ(h.progress(job).stages[0].failures, 1u);
  h.check_idle();
}

TEST(gang_attempts, failures_of_one_attempt_count_once) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.max_failures(2).stage("gang", 2).barrier());
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(h.end_of(job), nullptr);
    task_failure why;
    why.message = "both fail";
    std::vector<fake_end> ends;
    for (const auto& t : h.attempts_of(job, 0)) ends.push_back({t, task_status::failed, {}, why});
    ASSERT_THAT(ends, SizeIs(2));
    h.deliver(h.executor(e).report(ends));
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("partition 0, attempt 1"), HasSubstr("both fail (the whole barrier stage failed with it; "
                                                                   "failure 2 of 2 allowed)")));
  h.check_idle();
}

TEST(gang_attempts, forget_what_they_made_for_a_shuffle) {
  for (const auto matching : {profile_matching::compatible, profile_matching::exact}) {
    scheduler_harness h{with(matching)};
    h.add(executor_builder{}.cores(1));
    const auto b = h.add(executor_builder{}.cores(1));
    const auto job = h.submit(job_builder{}.stage("gang", 2).barrier().buckets(2).stage("reduce", 2).reads(0));
    h.succeed(h.attempts_of(job, 0)[0]);
    h.fail(h.attempts_of(job, 0)[0], "no luck");
    if (matching == profile_matching::exact) {
      EXPECT_THAT(h.attempts_of(job, 0), IsEmpty());
      h.tick(200ms);
    }
    EXPECT_THAT(h.attempts_of(job, 0), SizeIs(2)) << "spec BA-9";
    for (const auto& t : h.attempts_of(job, 0)) h.succeed(t);
    ASSERT_THAT(h.attempts_of(job, 1), SizeIs(2));
    // A part of what it has made is lost: nobody can make that part alone.
    h.lose(b);
    h.tick(200ms);
    EXPECT_THAT(h.attempts_of(job, 0), IsEmpty()) << "there is room for one";
    h.add(executor_builder{}.cores(1));
    for (const auto& t : h.attempts_of(job, 1)) h.end(t, task_status::killed);
    h.tick(200ms);
    h.drain();
    for (int i = 0; i < 3; ++i) {
      h.tick(200ms);
      h.drain();
    }
    EXPECT_EQ(h.progress(job).state, job_state::succeeded);
    EXPECT_EQ(h.progress(job).stages[0].attempt, 2u);
    h.check_idle();
  }
}

TEST(gang_attempts, a_result_stage_fails_its_job_under_the_exact_policy) {
  scheduler_harness h{with(profile_matching::exact)};
  h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier());
  h.fail(h.attempts_of(job, 0)[0], "no luck");
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("Could not recover from a failed barrier ResultStage."), HasSubstr("no luck")));
  EXPECT_THAT(h.events<events::stage_restarted>(), IsEmpty()) << "it does not run again";
  end_killed(h);
  h.check_idle();
}

TEST(gang_attempts, have_so_many_attempts_under_the_exact_policy) {
  auto o = with(profile_matching::exact);
  o.max_stage_attempts = 3;
  scheduler_harness h{o};
  h.add(executor_builder{}.cores(2));
  const auto job =
      h.submit(job_builder{}.max_failures(1).stage("gang", 2).barrier().buckets(1).stage("reduce", 1).reads(0));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(h.end_of(job), nullptr) << i;
    h.fail(h.attempts_of(job, 0)[0], "no luck");
    end_killed(h);
    h.tick(200ms);
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              HasSubstr("has failed the maximum allowable number of times: 3. Most recent failure reason: Stage failed "
                        "because a barrier task finished unsuccessfully"));
  h.check_idle();
}

TEST(gang_attempts, a_lost_executor_ends_them_all_and_accuses_nobody_of_them) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.max_failures(2).stage("gang", 3).barrier());
  executor_exit crash;
  crash.cause = exit_cause::signal;
  crash.signal = SIGSEGV;
  h.lose(a, "it was ended by signal 11 (SIGSEGV)", true, crash);
  for (const auto& t : h.attempts(b)) EXPECT_TRUE(t.doomed);
  end_killed(h);
  EXPECT_THAT(h.attempts_of(job, 0), IsEmpty());
  h.add(executor_builder{}.cores(2));
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(3)) << "together, not alone";
  // One that leaves in peace costs no failure.
  h.lose(b, "it left", false);
  h.add(executor_builder{}.cores(2));
  end_killed(h);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(3));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gang_attempts, a_lost_result_of_one_that_runs_ends_them_all) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier().buckets(1).stage("reduce", 1).reads(0));
  h.succeed_all(a);
  h.lose(a, "it left", false);
  EXPECT_THAT(h.events<events::stage_restarted>(), SizeIs(1));
  end_killed(h);
  h.add(executor_builder{}.cores(1));
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gang_attempts, one_that_is_refused_ends_them_all) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto b = h.add(executor_builder{}.cores(1));
  h.executor(a).refuse_batches("no space left");
  const auto job = h.submit(job_builder{}.max_failures(1).stage("gang", 2).barrier());
  h.deliver_refusals(a);
  h.executor(a).refuse_batches({});
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  end_killed(h);
  EXPECT_THAT(h.attempts_of(job, 0), IsEmpty()) << "the one is not tried again at once";
  h.tick(1s);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gang_attempts, that_miss_an_input_run_again_without_blame) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2));
  const auto job =
      h.submit(job_builder{}.max_failures(1).stage("map", 1).buckets(2).stage("gang", 2).barrier().reads(0));
  h.succeed(h.attempts_of(job, 0)[0]);
  h.fetch_fail(h.attempts_of(job, 1)[0], h.stage_of(job, 0), 0);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(1));
  end_killed(h);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.progress(job).stages[1].attempt, 1u);
  h.check_idle();
}

TEST(gang_attempts, that_run_out_of_memory_get_more_as_a_whole) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2).memory(std::int64_t{8} << 30));
  h.add(executor_builder{}.cores(2).memory(std::int64_t{8} << 30));
  auto small = make_profile({}, {{"memory", "1073741824"}});
  small.memory_ceiling = std::int64_t{2} << 30;
  const auto job = h.submit(job_builder{}.max_failures(1).profile(small).stage("gang", 2).with(1).barrier());
  ASSERT_THAT(h.attempts_of(job, 0), SizeIs(2));
  task_failure why;
  why.cause = failure_cause::memory_limit;
  h.end(h.attempts_of(job, 0)[0], task_status::failed, why);
  ASSERT_THAT(h.events<events::task_escalated>(), SizeIs(1));
  end_killed(h);
  ASSERT_THAT(h.attempts_of(job, 0), SizeIs(2));
  h.end(h.attempts_of(job, 0)[0], task_status::failed, why);
  ASSERT_NE(h.end_of(job), nullptr) << "there is no further step";
  end_killed(h);
  h.check_idle();
}

TEST(gang_attempts, one_that_does_not_end_costs_its_executor) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto tasks = h.attempts_of(job, 0);
  h.fail(tasks[1], "no luck");
  auto report = h.executor(a).report({});
  report.overdue.push_back(
      {tasks[0].stage, tasks[0].partition, tasks[0].attempt, tasks[0].lease, job, "gang", 1, false});
  h.deliver(report);
  EXPECT_THAT(h.given_up, SizeIs(1)) << "the gang needs its slot";
  h.lose(a);
  h.add(executor_builder{}.cores(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

/// map on one executor without a gpu, gang on one with two, which waits 10s for itself.
struct gang_with_input {
  gang_with_input() {
    m = h.add(executor_builder{}.cores(1));
    g = h.add(executor_builder{}.cores(2).gpus(2));
    job = h.submit(job_builder{}
                       .max_failures(2)
                       .profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}))
                       .stage("map", 1)
                       .buckets(2)
                       .stage("gang", 2)
                       .with(1)
                       .barrier(10s)
                       .reads(0));
    h.succeed_all(m);
  }
  scheduler_harness h;
  executor_id m;
  executor_id g;
  job_id job;
};

TEST(gang_attempts, whose_input_is_lost_while_they_run_run_again_when_it_is_there) {
  for (const bool one_fails : {false, true}) {
    gang_with_input s;
    auto& h = s.h;
    ASSERT_THAT(h.attempts_of(s.job, 1), SizeIs(2));
    h.arrive(h.attempts_of(s.job, 1)[0]);
    h.add(executor_builder{}.cores(2).gpus(2));
    h.lose(s.m, "it left", false);
    if (one_fails) {
      h.fail(h.attempts_of(s.job, 1)[1], "no luck");
      ASSERT_THAT(h.attempts_of(s.job, 1), SizeIs(1));
      EXPECT_TRUE(h.attempts_of(s.job, 1)[0].doomed) << "it would wait in vain";
    }
    const auto map = h.attempts_of(s.job, 0);
    ASSERT_THAT(map, SizeIs(1));
    h.succeed(map[0]);
    end_killed(h);
    const auto again = h.attempts_of(s.job, 1);
    ASSERT_THAT(again, SizeIs(2));
    for (const auto& t : again) EXPECT_EQ(t.stage_attempt, 1u);
    h.drain();
    EXPECT_EQ(h.progress(s.job).state, job_state::succeeded);
    h.check_idle();
  }
}

TEST(gang_attempts, each_has_one_end_in_the_history) {
  gang_with_input s;
  auto& h = s.h;
  h.lose(s.m, "it left", false); // and no room for the map again: the gang waits
  h.fail(h.attempts_of(s.job, 1)[1], "no luck");
  h.cancel(s.job);
  const auto gang = h.events<events::stage_restarted>();
  ASSERT_THAT(gang, SizeIs(1));
  for (const auto& e : h.events<events::stage_completed>())
    EXPECT_FALSE(e.stage == gang[0].stage && e.attempt == gang[0].attempt);
}

TEST(gang_attempts, that_nobody_needs_any_more_are_ended) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto b = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}
                                .stage("gang", 2)
                                .barrier()
                                .buckets(1)
                                .stage("reduce", 1)
                                .buckets(3)
                                .reads(0)
                                .stage("last", 3)
                                .reads(1));
  for (const auto& t : h.attempts_of(job, 0)) h.succeed(t);
  const auto reduce = h.attempts_of(job, 1);
  ASSERT_THAT(reduce, SizeIs(1));
  h.lose(h.executor_of(reduce[0]) == a ? b : a, "it left", false);
  h.add(executor_builder{}.cores(2));
  const auto again = h.attempts_of(job, 0);
  ASSERT_THAT(again, SizeIs(2));
  h.arrive(again[0]);
  h.succeed(reduce[0]);
  for (const auto& t : h.attempts_of(job, 0)) EXPECT_TRUE(t.doomed) << "who waits would wait for nothing";
  end_killed(h);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gang_attempts, a_crash_counts_although_it_takes_outputs_along) {
  scheduler_harness h;
  const auto job =
      h.submit(job_builder{}.max_failures(3).stage("gang", 2).barrier().buckets(1).stage("reduce", 1).reads(0));
  executor_exit crash;
  crash.cause = exit_cause::signal;
  crash.signal = SIGSEGV;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(h.end_of(job), nullptr) << i;
    const auto e = h.add(executor_builder{}.cores(2));
    h.succeed(h.attempts(e)[0]);
    h.lose(e, "signal 11", true, crash);
  }
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("failure 3 of 3 allowed"));
  h.check_idle();
}

TEST(gang_attempts, count_missing_inputs_and_failures_together_under_the_exact_policy) {
  scheduler_harness h{with(profile_matching::exact)};
  h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}
                                .stage("map", 1)
                                .buckets(2)
                                .stage("gang", 2)
                                .barrier()
                                .reads(0)
                                .buckets(1)
                                .stage("reduce", 1)
                                .reads(1));
  int attempts = 0;
  for (; attempts < 20 && !h.end_of(job); ++attempts) {
    for (const auto& t : h.attempts_of(job, 0)) h.succeed(t);
    const auto tasks = h.attempts_of(job, 1);
    ASSERT_THAT(tasks, SizeIs(2));
    if (attempts % 2 == 0)
      h.fail(tasks[0], "no luck");
    else
      h.fetch_fail(tasks[0], h.stage_of(job, 0), 0, static_cast<attempt_number>(attempts / 2));
    end_killed(h);
    h.tick(200ms);
  }
  EXPECT_EQ(attempts, 4);
  end_killed(h);
  h.drain();
  h.check_idle();
}

TEST(gang_attempts, one_that_took_too_long_and_does_not_end_failed_for_that) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.max_failures(1).stage("gang", 1).barrier());
  const auto task = h.attempts_of(job, 0).at(0);
  auto report = h.executor(a).report({});
  report.overdue.push_back({task.stage, task.partition, task.attempt, task.lease, job, "gang", 1, true});
  h.deliver(report);
  h.lose(a, "it was replaced", false);
  ASSERT_THAT(h.events<events::task_failed>(), SizeIs(1));
  EXPECT_EQ(h.events<events::task_failed>()[0].cause, failure_cause::time_limit);
  EXPECT_NE(h.end_of(job), nullptr);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
