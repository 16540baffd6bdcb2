// Executors and hosts that get no tasks of a profile for a while, and stages that nobody is left for.

#include <csignal>

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

dag_scheduler::options excluding(std::uint32_t tasks = 2, std::uint32_t executors = 2) {
  dag_scheduler::options o;
  o.exclusion.enabled = true;
  o.exclusion.max_failed_tasks_per_executor = tasks;
  o.exclusion.max_failed_executors_per_node = executors;
  return o;
}

executor_builder on(const std::string& host, std::int64_t cores = 2) {
  return executor_builder{}.cores(cores).host(host);
}
job_builder tasks(std::uint32_t n) { return job_builder{}.stage("work", n).max_failures(9); }
resource_profile one_gpu() { return make_profile({{"cores", 1}, {"gpu", 1}}, {{"gpu", "1"}}); }

/// Everything that runs there fails.
void fail_all(scheduler_harness& h, executor_id e) {
  for (const auto& a : h.attempts(e)) h.fail(a, "the gpu is broken");
}

/// Tasks fail there until nothing runs there any more.
void ruin(scheduler_harness& h, executor_id e) {
  while (!h.attempts(e).empty()) fail_all(h, e);
}

TEST(exclusion, an_executor_where_two_tasks_failed_gets_no_more_of_their_profile) {
  scheduler_harness h{excluding()};
  const auto bad = h.add(on("alpha"));
  const auto good = h.add(on("beta"));
  const auto job = h.submit(tasks(8));
  ASSERT_THAT(h.attempts(bad), SizeIs(2));
  h.fail(h.attempts(bad)[0], "first");
  EXPECT_THAT(h.attempts(bad), SizeIs(2)) << "one is not enough";
  h.fail(h.attempts(bad)[1], "second");
  ASSERT_THAT(h.events<events::executor_excluded>(), SizeIs(1));
  const auto told = h.events<events::executor_excluded>()[0];
  EXPECT_EQ(told.executor, bad);
  EXPECT_EQ(told.host, "alpha");
  EXPECT_EQ(told.profile, default_profile_id);
  EXPECT_EQ(told.failed_tasks, 2u);
  EXPECT_EQ(told.nanoseconds, 3'600'000'000'000u);
  EXPECT_THAT(told.failure, HasSubstr("second"));
  EXPECT_THAT(h.attempts(bad), SizeIs(1)) << "what runs there runs on";
  h.succeed_all(bad);
  EXPECT_THAT(h.attempts(bad), IsEmpty()) << "and nothing follows";
  EXPECT_THAT(h.attempts(good), SizeIs(2));
  EXPECT_EQ(h.scheduler.executors()[0].excluded, 1u);
  EXPECT_EQ(h.scheduler.executors()[1].excluded, 0u);
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  // The job's end changes nothing for the next one.
  const auto next = h.submit(tasks(4));
  EXPECT_THAT(h.attempts(bad), IsEmpty());
  EXPECT_THAT(h.events<events::node_excluded>(), IsEmpty());
  h.drain();
  EXPECT_EQ(h.progress(next).state, job_state::succeeded);
  h.check_idle();
}

TEST(exclusion, one_task_that_always_fails_excludes_nobody) {
  scheduler_harness h{excluding()};
  const auto e = h.add(on("alpha"));
  h.submit(tasks(1));
  for (int i = 0; i < 8; ++i) h.fail(h.attempts(e).at(0), "its own fault");
  EXPECT_THAT(h.events<events::executor_excluded>(), IsEmpty());
  EXPECT_THAT(h.attempts(e), SizeIs(1));
}

TEST(exclusion, does_not_happen_unless_it_is_enabled) {
  scheduler_harness h;
  const auto e = h.add(on("alpha"));
  h.submit(tasks(4));
  for (int i = 0; i < 5; ++i) fail_all(h, e);
  EXPECT_THAT(h.events<events::executor_excluded>(), IsEmpty());
  EXPECT_THAT(h.attempts(e), SizeIs(2));
}

TEST(exclusion, kills_missing_inputs_and_refusals_do_not_count) {
  scheduler_harness h{excluding(1)};
  const auto e = h.add(on("alpha"));
  const auto job = h.submit(job_builder{}.stage("map", 1).buckets(2).stage("reduce", 2).reads(0));
  h.succeed_all(e);
  h.fetch_fail(h.attempts(e)[0], h.stage_of(job, 0), 0);
  h.end(h.attempts(e)[0], task_status::killed);
  h.executor(e).refuse_grants("no such address");
  h.drain();
  h.deliver_refusals(e);
  h.executor(e).refuse_grants({});
  h.tick(2s);
  h.drain();
  EXPECT_THAT(h.events<events::executor_excluded>(), IsEmpty());
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST(exclusion, other_profiles_still_use_the_executor) {
  scheduler_harness h{excluding()};
  const auto e = h.add(on("alpha").gpus(2));
  h.submit(job_builder{}.profile(one_gpu()).stage("gpu", 4).with(1).max_failures(9));
  ruin(h, e);
  const auto other = h.submit(tasks(2));
  EXPECT_THAT(h.attempts(e), SizeIs(2));
  h.succeed_all(e);
  EXPECT_EQ(h.progress(other).state, job_state::succeeded);
}

TEST(exclusion, a_profile_s_other_programs_are_excluded_too_also_those_that_come_later) {
  scheduler_harness h{excluding()};
  const auto bad = h.add(on("alpha").build("b"));
  h.add(on("beta").build("b"));
  h.submit(job_builder{}.stage("native", 4).build_id("b").max_failures(9));
  fail_all(h, bad);
  h.drain();
  h.submit(job_builder{}.stage("commands", 2).command());
  EXPECT_THAT(h.attempts(bad), IsEmpty());
}

TEST(exclusion, is_over_after_its_time) {
  scheduler_harness h{excluding()};
  const auto e = h.add(on("alpha"));
  h.add(on("beta"));
  h.submit(tasks(2));
  h.submit(tasks(20));
  ruin(h, e);
  h.tick(1h - 1s);
  EXPECT_THAT(h.attempts(e), IsEmpty());
  EXPECT_THAT(h.events<events::executor_readmitted>(), IsEmpty());
  h.tick(2s);
  EXPECT_THAT(h.attempts(e), SizeIs(2)) << "in the same tick";
  EXPECT_THAT(h.events<events::executor_readmitted>(),
              ElementsAre(events::executor_readmitted{e, default_profile_id,
                                                      "its time is over (troupe.exclude-on-failure.timeout)"}));
  h.drain();
  h.check_idle();
}

TEST(exclusion, failures_of_a_job_that_fails_itself_cost_others_nothing) {
  scheduler_harness h{excluding()};
  const auto e = h.add(on("alpha"));
  const auto wrong = h.submit(job_builder{}.stage("ok", 2).stage("wrong", 4).after(0).max_failures(2));
  const auto right = h.submit(tasks(2));
  h.succeed_all(e);
  fail_all(h, e);
  EXPECT_EQ(h.events<events::executor_excluded>().size(), 1u);
  h.tick(2min);
  ASSERT_NE(h.end_of(wrong), nullptr) << "unschedulable";
  EXPECT_THAT(h.events<events::executor_readmitted>(), SizeIs(1));
  EXPECT_THAT(h.events<events::executor_readmitted>()[0].cause,
              HasSubstr("stage 1 (wrong) of job 1 has ended without"));
  EXPECT_THAT(h.attempts(e), SizeIs(2)) << "of the other job, at once";
  h.drain();
  EXPECT_EQ(h.progress(right).state, job_state::succeeded);
  h.check_idle();
}

TEST(exclusion, failures_of_a_stage_that_is_complete_count_on_when_its_job_fails) {
  scheduler_harness h{excluding()};
  const auto bad = h.add(on("alpha"));
  const auto good = h.add(on("beta"));
  const auto job = h.submit(job_builder{}.stage("ok", 4).stage("wrong", 1).after(0).max_failures(2));
  fail_all(h, bad);
  h.succeed_all(bad);
  for (int i = 0; i < 2; ++i) h.succeed_all(good);
  h.fail(h.attempts(good).at(0), "wrong");
  h.fail(h.attempts(good).at(0), "wrong");
  ASSERT_EQ(h.progress(job).state, job_state::failed);
  EXPECT_THAT(h.events<events::executor_readmitted>(), IsEmpty());
  h.submit(tasks(4));
  EXPECT_THAT(h.attempts(bad), IsEmpty());
}

TEST(exclusion, the_options_say_how_many_and_how_long) {
  dag_scheduler::options o;
  o.exclusion.enabled = true;
  o.exclusion.max_failed_tasks_per_executor = 1;
  o.exclusion.max_failed_executors_per_node = 3;
  o.exclusion.timeout = 10s;
  o.unschedulable_timeout = 5s;
  scheduler_harness h{o};
  const auto job = h.submit(tasks(9));
  for (std::size_t i = 1; i <= 3; ++i) {
    const auto e = h.add(on("alpha", 1));
    h.fail(h.attempts(e).at(0), "one is enough");
    EXPECT_THAT(h.attempts(e), IsEmpty());
    EXPECT_THAT(h.events<events::node_excluded>(), SizeIs(i / 3));
  }
  h.tick(4s);
  EXPECT_EQ(h.end_of(job), nullptr);
  const auto other = h.add(on("beta", 1));
  h.tick(5s);
  EXPECT_THAT(h.attempts(), SizeIs(1));
  h.tick(1s);
  EXPECT_THAT(h.attempts(), SizeIs(4)) << "all of them are back";
  h.lose(other, "it left", false);
  for (const auto& a : h.attempts()) h.fail(a, "again");
  h.tick(4s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(1s);
  EXPECT_NE(h.end_of(job), nullptr);
}

// -- hosts

TEST(exclusion, a_host_with_two_excluded_executors_is_excluded_with_all_that_it_has) {
  scheduler_harness h{excluding()};
  const auto first = h.add(on("alpha"));
  const auto second = h.add(on("alpha"));
  const auto elsewhere = h.add(on("beta"));
  h.submit(tasks(40));
  const auto third = h.add(on("alpha"));
  EXPECT_THAT(h.attempts(third), SizeIs(2));
  ruin(h, first);
  EXPECT_THAT(h.events<events::node_excluded>(), IsEmpty());
  h.lose(first, "it left", false); // it counts on
  fail_all(h, second);
  const auto told = h.events<events::node_excluded>();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].host, "alpha");
  EXPECT_EQ(told[0].excluded_executors, 2u);
  EXPECT_EQ(told[0].profile, default_profile_id);
  EXPECT_EQ(told[0].nanoseconds, 3'600'000'000'000u);
  h.succeed_all(third);
  EXPECT_THAT(h.attempts(third), IsEmpty()) << "although nothing has failed there";
  const auto fourth = h.add(on("alpha"));
  EXPECT_THAT(h.attempts(fourth), IsEmpty()) << "it came later";
  EXPECT_THAT(h.attempts(elsewhere), SizeIs(2));
  h.tick(1h);
  EXPECT_THAT(h.events<events::node_readmitted>(),
              ElementsAre(events::node_readmitted{"alpha", default_profile_id,
                                                  "its time is over (troupe.exclude-on-failure.timeout)"}));
  EXPECT_THAT(h.events<events::executor_readmitted>(), SizeIs(1)) << "of one that is gone nothing is told";
  for (const auto e : {second, third, fourth}) EXPECT_THAT(h.attempts(e), SizeIs(2));
  h.drain();
  h.check_idle();
}

TEST(exclusion, executors_that_die_under_their_tasks_count_against_their_host) {
  scheduler_harness h{excluding()};
  h.add(on("beta", 1));
  h.submit(tasks(40));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(h.events<events::node_excluded>(), IsEmpty());
    const auto e = h.add(on("alpha"));
    ASSERT_THAT(h.attempts(e), SizeIs(2));
    if (i == 1) { // other tasks than those that died with the first
      h.succeed_all(e);
      ASSERT_THAT(h.attempts(e), SizeIs(2));
    }
    h.lose(e);
  }
  EXPECT_THAT(h.events<events::node_excluded>(), SizeIs(1));
  EXPECT_THAT(h.events<events::executor_excluded>(), IsEmpty()) << "they are gone";
  EXPECT_THAT(h.attempts(h.add(on("alpha"))), IsEmpty());
}

TEST(exclusion, tasks_that_may_have_crashed_an_executor_count_against_its_host) {
  scheduler_harness h{excluding()};
  const executor_exit crash{exit_cause::signal, SIGSEGV};
  h.submit(tasks(40));
  h.lose(h.add(on("alpha")), "it crashed", true, crash); // two suspects
  const auto next = h.add(on("alpha", 1));
  ASSERT_THAT(h.attempts(next), SizeIs(1)) << "each runs alone";
  h.lose(next, "it crashed", true, crash);
  EXPECT_THAT(h.events<events::node_excluded>(), IsEmpty()) << "the first of them may have done it all";
  const auto last = h.add(on("alpha"));
  h.succeed_all(last);
  ASSERT_THAT(h.attempts(last), SizeIs(2));
  h.lose(last, "it crashed", true, crash);
  EXPECT_THAT(h.events<events::node_excluded>(), SizeIs(1));
}

TEST(exclusion, executors_that_are_stopped_are_not_held_against_anybody) {
  scheduler_harness h{excluding(1, 1)};
  h.submit(tasks(40));
  h.lose(h.add(on("alpha")), "it left", false);
  EXPECT_THAT(h.attempts(h.add(on("alpha"))), SizeIs(2));
}

// -- what waits

TEST(exclusion, what_waits_says_so) {
  scheduler_harness h{excluding()};
  const auto busy = h.add(on("beta", 1));
  const auto half = make_profile({}, {{"cpus", "0.5"}});
  h.submit(job_builder{}.profile(half).stage("other", 2).with(1));
  const auto bad = h.add(on("alpha"));
  const auto job = h.submit(tasks(4));
  ruin(h, bad);
  EXPECT_EQ(h.progress(job).waiting_for, "stage 0 (work): 1 of the 2 executors that fit is excluded after failures "
                                         "(troupe.exclude-on-failure.enabled), the other one is busy");
  h.lose(busy, "it left", false);
  EXPECT_THAT(h.progress(job).waiting_for,
              HasSubstr("stage 0 (work): the one executor that fits is excluded after failures "
                        "(troupe.exclude-on-failure.enabled): executor 2 (alpha); the last failure: stage 0 (work), "
                        "partition"));
}

TEST(exclusion, a_stage_that_nobody_is_left_for_fails_after_a_time) {
  scheduler_harness h{excluding(2, 9)};
  const auto a = h.add(on("alpha"));
  const auto b = h.add(on("beta"));
  h.add(on("gamma").gpus(1).started_for(one_gpu()).cores(0)); // of another profile (spec TS-19)
  const auto job = h.submit(tasks(8));
  ruin(h, a);
  EXPECT_THAT(h.events<events::stage_unschedulable>(), IsEmpty());
  ruin(h, b);
  const auto told = h.events<events::stage_unschedulable>();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].job, job);
  EXPECT_EQ(told[0].stage, h.stage_of(job, 0));
  EXPECT_EQ(told[0].profile, default_profile_id);
  EXPECT_THAT(told[0].reason, HasSubstr("all 2 executors that fit are excluded after failures"));
  h.tick(119s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(1s);
  ASSERT_NE(h.end_of(job), nullptr);
  const auto why = h.end_of(job)->failure;
  EXPECT_EQ(why.code, ec::infeasible);
  EXPECT_THAT(why.message, HasSubstr("stage 0 (work): all 2 executors that fit are excluded after failures"));
  EXPECT_THAT(why.message, HasSubstr("executor 1 (alpha), executor 2 (beta); the last failure: "));
  EXPECT_THAT(why.message, HasSubstr("the gpu is broken"));
  EXPECT_THAT(why.message, HasSubstr("(waited 120000ms: troupe.exclude-on-failure.unschedulable-timeout)"));
  h.check_idle();
}

TEST(exclusion, waits_for_ever_where_it_is_told_to) {
  auto options = excluding();
  options.unschedulable_timeout = never;
  options.infeasible_timeout = 1s;
  scheduler_harness h{options};
  h.answer = [](const executor_shape&) { return feasibility{false, true, "the cluster does not grow"}; };
  const auto e = h.add(on("alpha"));
  const auto job = h.submit(tasks(4));
  ruin(h, e);
  const auto later = h.submit(tasks(1));
  h.tick(59min);
  EXPECT_EQ(h.end_of(job), nullptr) << "nor does it count as infeasible";
  EXPECT_EQ(h.end_of(later), nullptr);
  h.tick(1min);
  EXPECT_THAT(h.attempts(e), SizeIs(2));
}

TEST(exclusion, the_clock_stops_when_somebody_comes) {
  scheduler_harness h{excluding()};
  const auto e = h.add(on("alpha"));
  const auto job = h.submit(tasks(8));
  ruin(h, e);
  h.tick(100s);
  const auto fresh = h.add(on("beta"));
  EXPECT_THAT(h.attempts(fresh), SizeIs(2));
  h.tick(100s);
  ruin(h, fresh);
  h.tick(100s);
  EXPECT_EQ(h.end_of(job), nullptr) << "it began anew";
  EXPECT_THAT(h.events<events::stage_unschedulable>(), SizeIs(2));
  h.tick(20s);
  EXPECT_NE(h.end_of(job), nullptr);
  h.check_idle();
}

TEST(exclusion, an_alternative_that_somebody_satisfies_keeps_the_stage_going) {
  scheduler_harness h{excluding()};
  auto gpu = one_gpu();
  gpu.alternatives = {make_profile({{"cores", 4}}, {{"cpus", "2"}})};
  const auto e = h.add(on("alpha").gpus(2).cores(2));
  const auto job = h.submit(job_builder{}.profile(gpu).stage("either", 8).with(1).max_failures(9));
  h.tick(200ms);
  EXPECT_THAT(h.events<events::stage_unschedulable>(), IsEmpty());
  ruin(h, e);
  h.tick(1min);
  EXPECT_EQ(h.end_of(job), nullptr);
}

// -- fresh executors

std::vector<executor_id> draining(const scheduler_harness& h) {
  std::vector<executor_id> found;
  for (const auto& e : h.scheduler.executors())
    if (e.draining) found.push_back(e.info->executor);
  return found;
}

TEST(exclusion, idle_ones_that_were_asked_for_are_given_back_so_that_fresh_ones_can_be_had) {
  scheduler_harness h{excluding(2, 9)};
  const auto first = h.add(on("alpha").request(1));
  const auto by_hand = h.add(on("alpha"));
  const auto last = h.add(on("alpha").request(2));
  const auto job = h.submit(tasks(6));
  ruin(h, first);
  EXPECT_THAT(draining(h), IsEmpty()) << "others are left";
  ruin(h, by_hand);
  fail_all(h, last);
  EXPECT_THAT(h.events<events::executor_excluded>(), SizeIs(3));
  EXPECT_THAT(draining(h), ElementsAre(first))
      << "something still runs on the last one, nobody has asked for the other";
  ruin(h, last);
  EXPECT_THAT(draining(h), ElementsAre(first, last));
  const auto& load = h.loads.back();
  ASSERT_THAT(load.idle, SizeIs(3));
  for (const auto& idle : load.idle) EXPECT_EQ(idle.draining, idle.executor != by_hand);
  ASSERT_THAT(load.loads, SizeIs(1));
  EXPECT_TRUE(load.loads[0].satisfied_by_none);
  EXPECT_EQ(load.loads[0].executors_wanted, 6u) << "those that are excluded serve nobody";
  h.lose(first, "stopped", false);
  h.lose(last, "stopped", false);
  const auto fresh = h.add(on("alpha").request(3));
  EXPECT_THAT(h.attempts(fresh), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(exclusion, no_more_are_given_back_than_the_stage_has_use_for) {
  scheduler_harness h{excluding(1, 9)};
  std::vector<executor_id> all;
  for (std::uint64_t i = 1; i <= 3; ++i) all.push_back(h.add(on("alpha", 1).request(i)));
  const auto job = h.submit(tasks(1));
  for (const auto e : all) fail_all(h, e);
  for (int i = 0; i < 5; ++i) h.tick();
  EXPECT_THAT(draining(h), ElementsAre(all[0])) << "one task needs one";
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("all 2 executors that fit are excluded after failures"));
}

TEST(exclusion, none_is_given_back_on_a_host_where_the_next_would_be_excluded_too) {
  scheduler_harness h{excluding(1, 1)};
  const auto e = h.add(on("alpha", 1).request(1));
  h.submit(tasks(3));
  fail_all(h, e);
  h.tick();
  EXPECT_THAT(h.events<events::node_excluded>(), SizeIs(1));
  EXPECT_FALSE(h.scheduler.executors()[0].draining);
}

TEST(exclusion, one_that_was_given_back_and_never_replaced_fails_the_stage_by_the_same_clock) {
  auto options = excluding();
  options.infeasible_timeout = 10s;
  scheduler_harness h{options};
  h.answer = [](const executor_shape&) { return feasibility{false, false, "there is no room"}; };
  const auto e = h.add(on("alpha").request(1));
  const auto job = h.submit(tasks(4));
  ruin(h, e);
  h.lose(e, "stopped", false);
  h.tick(119s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(1s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("excluded after failures"));
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("the gpu is broken"));
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("troupe.exclude-on-failure.unschedulable-timeout"));
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
