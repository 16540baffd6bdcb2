// Profiles that nothing satisfies: what is asked, what is waited for, and what is said.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const auto gpu = make_profile({{"cores", 1}, {"gpu", 2}}, {{"gpu", "1"}});
const feasibility never{false, true, "gpu: 2 wanted, no host has any (troupe.master = local-cluster[2,4,8g])"};
const feasibility not_now{false, false, "no node has a gpu"};

job_builder three_stages() {
  return job_builder{}.profile(gpu).stage("a", 2).stage("b", 2).after(0).stage("c", 1).with(1).after(1);
}

TEST(feasibility, hopeless_stage_fails_the_job_before_its_first_task) {
  scheduler_harness h;
  h.answer = nullptr;
  const auto e = h.add(executor_builder{}.cores(4).host("alpha"));
  const auto job = h.submit(three_stages());
  ASSERT_THAT(h.questions, SizeIs(1)) << "the default profile is satisfied already";
  EXPECT_EQ(h.questions[0].profile.executor_amount("gpu"), 2);
  EXPECT_THAT(h.attempts(e), SizeIs(0)) << "not before the answer";
  EXPECT_EQ(h.progress(job).state, job_state::accepted);
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("asking whether"));
  h.answer_feasibility(h.questions[0].shape, never);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::infeasible);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("stage 2 (c)"), HasSubstr("the nearest, executor 1 on alpha"), HasSubstr("gpu 2"),
                    HasSubstr("has 0"), HasSubstr(never.sentence)));
  EXPECT_THAT(h.events<events::lease_granted>(), SizeIs(0));
  h.check_idle();
}

TEST(feasibility, what_a_fixed_cluster_said_once_is_not_asked_again) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return never; };
  h.add(executor_builder{});
  h.submit(three_stages());
  const auto again = h.submit(three_stages());
  EXPECT_NE(h.end_of(again), nullptr);
  EXPECT_THAT(h.questions, SizeIs(1));
  h.check_idle();
}

TEST(feasibility, job_starts_when_its_executors_can_be_had) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(three_stages());
  EXPECT_THAT(h.attempts(e), SizeIs(1));
  h.drain();
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("no executor satisfies its profile"));
  h.add(executor_builder{}.gpus(2));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(feasibility, job_starts_without_an_answer_when_an_executor_comes_or_time_is_up) {
  scheduler_harness h;
  h.answer = nullptr;
  const auto first = h.submit(job_builder{}.stage("s", 1));
  EXPECT_EQ(h.progress(first).state, job_state::accepted);
  h.add(executor_builder{});
  EXPECT_EQ(h.progress(first).state, job_state::running);
  const auto second = h.submit(three_stages());
  EXPECT_EQ(h.progress(second).state, job_state::accepted);
  h.tick(1900ms);
  EXPECT_EQ(h.progress(second).state, job_state::accepted);
  h.tick(200ms);
  EXPECT_EQ(h.progress(second).state, job_state::running);
  h.cancel(second);
  h.drain();
  h.check_idle();
}

TEST(feasibility, waiting_job_can_be_cancelled) {
  scheduler_harness h;
  h.answer = nullptr;
  const auto job = h.submit(three_stages());
  h.cancel(job);
  h.answer_feasibility(h.questions.at(0).shape, feasibility{});
  EXPECT_EQ(h.progress(job).state, job_state::cancelled);
  h.check_idle();
}

TEST(feasibility, elastic_cluster_gets_its_time) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return not_now; };
  h.add(executor_builder{}.host("alpha"));
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick(29s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(2s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::infeasible);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("stage 0 (s)"), HasSubstr("alpha"), HasSubstr("gpu 2"), HasSubstr(not_now.sentence),
                    HasSubstr("30000ms"), HasSubstr("troupe.scheduler.infeasible-timeout")));
  h.check_idle();
}

TEST(feasibility, clock_starts_anew_when_an_executor_has_been_there) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return not_now; };
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick(29s);
  const auto e = h.add(executor_builder{}.gpus(2));
  h.lose(e, "gone", false);
  h.tick(29s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(2s);
  EXPECT_NE(h.end_of(job), nullptr);
  h.check_idle();
}

TEST(feasibility, waiting_for_room_is_not_infeasible) {
  scheduler_harness h; // the answer is: feasible
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick(1h);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.scheduler.on_launch_failed(h.shape_of(gpu), "exit code 127: no such file");
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("exit code 127"));
  h.tick();
  ASSERT_NE(h.end_of(job), nullptr) << "those that were started for it do not live";
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("exit code 127"));
  h.check_idle();
}

TEST(feasibility, nobody_waits_for_executors_that_are_certain_not_to_come) {
  scheduler_harness h; // the answer is: feasible
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick();
  const auto fail = [&](bool is_certain) {
    h.scheduler.on_launch_failed(h.shape_of(gpu), "exit code 2: a wrong setting", is_certain);
    h.tick();
  };
  for (const bool is_certain : {true, true, false, true, true}) fail(is_certain);
  EXPECT_EQ(h.end_of(job), nullptr) << "they may have met by chance";
  fail(true);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("exit code 2: a wrong setting"), Not(HasSubstr("infeasible-timeout"))));
  const auto later = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick();
  EXPECT_EQ(h.end_of(later), nullptr) << "it may have been mended";
  fail(true);
  EXPECT_EQ(h.end_of(later), nullptr) << "those of the job before do not count";
  h.scheduler.on_launch_failed(h.shape_of(gpu), "exit code 1", false);
  h.tick();
  EXPECT_EQ(h.end_of(later), nullptr);
  h.tick(31s);
  EXPECT_NE(h.end_of(later), nullptr);
  h.check_idle();
}

TEST(feasibility, executors_of_another_program_are_not_started_again_and_again) {
  scheduler_harness h; // the answer is: feasible
  h.add(executor_builder{}.request(1).commands_only().host("alpha"));
  const auto job = h.submit(job_builder{}.stage("native", 3));
  h.tick();
  ASSERT_THAT(h.loads.back().loads, SizeIs(1));
  EXPECT_EQ(h.loads.back().loads[0].waiting_tasks, 3u);
  EXPECT_EQ(h.loads.back().loads[0].executors_wanted, 0u);
  h.tick(31s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, AllOf(HasSubstr("alpha"), HasSubstr("runs commands only"),
                                                    HasSubstr("start one from the same executable")));
  h.check_idle();
}

TEST(feasibility, a_program_on_executors_of_others_is_told_at_once_which_there_are_and_what_to_start) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return not_now; };
  h.add(executor_builder{}.commands_only());
  h.add(executor_builder{}.commands_only());
  h.add(executor_builder{}.build("0123456789abcdef"));
  const auto job = h.submit(job_builder{}.stage("native", 3).build_id("fedcba9876543210"));
  const auto said =
      AllOf(HasSubstr("(2 the plain troupe program, 1 build 0123456789ab; the job is of build fedcba987654)"),
            HasSubstr("start one from the same executable"), Not(HasSubstr(not_now.sentence)));
  EXPECT_THAT(h.progress(job).waiting_for, said);
  h.tick(31s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, said);
  // Where the cluster starts some itself, nobody else has to.
  h.answer = [](const executor_shape&) { return feasibility{true, false, ""}; };
  const auto later = h.submit(job_builder{}.stage("native", 3).build_id("fedcba9876543210"));
  EXPECT_THAT(h.progress(later).waiting_for, Not(HasSubstr("start one")));
  h.cancel(later);
  h.check_idle();
}

TEST(feasibility, of_executors_that_lack_as_much_the_one_of_the_program_is_the_nearest) {
  for (const bool own_first : {false, true}) {
    scheduler_harness h;
    h.answer = [](const executor_shape&) { return not_now; };
    const auto small = executor_builder{}.cores(1).host("own");
    const auto plain = executor_builder{}.cores(2).commands_only().host("plain");
    h.add(own_first ? small : plain);
    h.add(own_first ? plain : small);
    const auto job =
        h.submit(job_builder{}.profile(make_profile({{"cores", 2}}, {{"cpus", "2"}})).stage("native", 1).with(1));
    EXPECT_THAT(h.progress(job).waiting_for, AllOf(HasSubstr(" on own, "), HasSubstr("1 the plain troupe program")));
    h.cancel(job);
    h.check_idle();
  }
}

TEST(feasibility, without_an_allocator_the_time_out_still_ends_the_job) {
  scheduler_harness h;
  h.answer = nullptr;
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick(3s);
  h.tick(29s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(2s);
  EXPECT_NE(h.end_of(job), nullptr);
  h.check_idle();
}

TEST(feasibility, losing_the_last_executor_of_a_fixed_cluster_is_noticed_at_once) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return never; };
  const auto e = h.add(executor_builder{}.gpus(2));
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  EXPECT_THAT(h.questions, IsEmpty());
  h.lose(e);
  EXPECT_THAT(h.questions, SizeIs(1));
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::infeasible);
  h.check_idle();
}

TEST(feasibility, another_allocator_is_asked_and_told_anew) {
  scheduler_harness h;
  h.answer = nullptr;
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 1).with(1));
  h.tick(3s);
  ASSERT_FALSE(h.loads.empty());
  EXPECT_THAT(h.loads.front().new_shapes, SizeIs(1));
  EXPECT_THAT(h.loads.back().new_shapes, SizeIs(0));
  h.questions.clear();
  effects::list out;
  h.scheduler.on_allocator_added(h.now, out);
  bool asked = false;
  for (const auto& effect : out) asked = asked || std::holds_alternative<effects::ask_feasibility>(effect);
  EXPECT_TRUE(asked);
  h.tick();
  EXPECT_THAT(h.loads.back().new_shapes, SizeIs(1));
  h.cancel(job);
  h.check_idle();
}

TEST(load, totals_of_what_waits_and_what_is_idle) {
  scheduler_harness h;
  const auto idle = h.add(executor_builder{}.request(7).commands_only());
  const auto busy = h.add(executor_builder{}.request(8));
  h.submit(job_builder{}.profile(gpu).stage("gpu", 5).with(1).stage("plain", 4));
  h.tick(5s);
  const auto& load = h.loads.back();
  ASSERT_THAT(load.loads, SizeIs(2));
  const auto of = [&](const resource_profile& p) {
    for (const auto& l : load.loads)
      if (l.shape == h.shape_of(p)) return l;
    return shape_load{};
  };
  EXPECT_EQ(of(gpu).waiting_tasks, 5u);
  EXPECT_EQ(of(gpu).executors_wanted, 5u) << "one core each";
  EXPECT_TRUE(of(gpu).satisfied_by_none);
  EXPECT_EQ(of(default_test_profile()).waiting_tasks, 3u);
  EXPECT_FALSE(of(default_test_profile()).satisfied_by_none);
  ASSERT_THAT(load.idle, SizeIs(1));
  EXPECT_EQ(load.idle[0].executor, idle);
  EXPECT_EQ(load.idle[0].request, request_id{7});
  EXPECT_EQ(load.idle[0].idle_nanoseconds, 5'000'000'000u);
  EXPECT_FALSE(load.idle[0].serving);
  EXPECT_THAT(load.present, SizeIs(2));
  EXPECT_GT(load.number, h.loads.front().number);
  EXPECT_NE(idle, busy);
}

TEST(load, a_demand_that_nothing_satisfies_is_reported_without_waiting_for_a_tick) {
  scheduler_harness h;
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 3).with(1));
  ASSERT_THAT(h.loads, SizeIs(1));
  EXPECT_THAT(h.loads[0].loads, SizeIs(1));
  h.cancel(job);
  h.tick();
  EXPECT_THAT(h.loads.back().loads, IsEmpty());
}

TEST(load, executor_that_serves_output_is_reported_as_such) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.request(1));
  const auto job = h.submit(job_builder{}.profile(gpu).stage("map", 1).buckets(1).stage("reduce", 1).reads(0).with(1));
  h.drain();
  h.tick();
  ASSERT_THAT(h.loads.back().idle, SizeIs(1));
  EXPECT_TRUE(h.loads.back().idle[0].serving);
  EXPECT_FALSE(h.loads.back().idle[0].draining);
  EXPECT_TRUE(h.release(e).serving);
  h.tick();
  EXPECT_TRUE(h.loads.back().idle[0].draining);
  h.cancel(job);
  h.tick();
  EXPECT_FALSE(h.loads.back().idle[0].serving);
  EXPECT_THAT(h.end_of(job)->failure.message, Not(IsEmpty()));
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
