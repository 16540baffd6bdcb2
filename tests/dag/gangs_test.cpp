// Tasks that start together or not at all.

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

dag_scheduler::options exact() {
  dag_scheduler::options o;
  o.matching = profile_matching::exact;
  return o;
}

TEST(gangs, start_when_there_is_room_for_all) {
  for (const auto matching : {profile_matching::compatible, profile_matching::exact}) {
    dag_scheduler::options o;
    o.matching = matching;
    scheduler_harness h{o};
    const auto first = h.add(executor_builder{}.cores(1));
    const auto second = h.add(executor_builder{}.cores(2));
    const auto plain = h.submit(job_builder{}.stage("plain", 1));
    const auto gang = h.submit(job_builder{}.stage("gang", 3).barrier());
    EXPECT_THAT(h.attempts_of(gang, 0), IsEmpty()) << "two of three slots are free";
    EXPECT_THAT(h.progress(gang).waiting_for,
                HasSubstr("stage 0 (gang): its 3 tasks start together, and 2 of 3 slots are free for it"));
    h.succeed(h.attempts_of(plain, 0).front());
    EXPECT_THAT(h.attempts_of(gang, 0), SizeIs(3));
    EXPECT_THAT(h.attempts(first), SizeIs(1));
    EXPECT_THAT(h.attempts(second), SizeIs(2));
    h.drain();
    EXPECT_EQ(h.progress(gang).state, job_state::succeeded);
    h.check_idle();
  }
}

TEST(gangs, know_where_all_of_them_are) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2).host("alpha"));
  h.add(executor_builder{}.cores(2).host("beta"));
  const auto job = h.submit(job_builder{}.stage("gang", 4).barrier());
  ASSERT_THAT(h.attempts_of(job, 0), SizeIs(4));
  const auto* install = h.executor(e).installed(h.stage_of(job, 0));
  ASSERT_TRUE(install && install->gang);
  ASSERT_EQ(install->gang->size(), 4u);
  for (const auto& a : h.attempts_of(job, 0)) {
    const auto& info = h.executor(h.executor_of(a)).info();
    EXPECT_EQ((*install->gang)[a.partition],
              info.blocks.port == 0 ? info.host : info.blocks.host + ":" + std::to_string(info.blocks.port));
  }
  EXPECT_EQ((*install->gang)[0], (*install->gang)[1]) << "neighbours share an executor";
  EXPECT_NE((*install->gang)[1], (*install->gang)[2]);
  h.drain();
  const auto plain = h.submit(job_builder{}.stage("plain", 1));
  EXPECT_EQ(h.executor(h.executor_of(h.attempts_of(plain, 0).front())).installed(h.stage_of(plain, 0))->gang, nullptr);
}

TEST(gangs, of_two_thirds_of_the_cluster_each_run_one_after_the_other) {
  scheduler_harness h;
  for (int i = 0; i < 3; ++i) h.add(executor_builder{}.cores(1));
  const auto busy = h.submit(job_builder{}.stage("busy", 3));
  const auto one = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto two = h.submit(job_builder{}.stage("gang", 2).barrier());
  // Slots come back one by one: neither may keep the other from starting.
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(h.attempts_of(one, 0), IsEmpty());
    h.succeed(h.attempts_of(busy, 0).front());
  }
  EXPECT_THAT(h.attempts_of(one, 0), SizeIs(2));
  h.succeed(h.attempts_of(busy, 0).front());
  EXPECT_THAT(h.attempts_of(two, 0), IsEmpty());
  h.succeed(h.attempts_of(one, 0).front());
  EXPECT_THAT(h.attempts_of(two, 0), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(one).state, job_state::succeeded);
  EXPECT_EQ(h.progress(two).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, the_first_one_holds_what_it_cannot_use_yet) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto b = h.add(executor_builder{}.cores(1));
  const auto c = h.add(executor_builder{}.cores(1));
  const auto busy = h.submit(job_builder{}.stage("busy", 3));
  const auto gang = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 50));
  const auto of = [&](executor_id e) { return h.attempts(e).front(); };
  h.succeed(of(a));
  EXPECT_THAT(h.attempts(a), IsEmpty()) << "held for the gang";
  EXPECT_THAT(h.progress(gang).waiting_for, HasSubstr("1 of 3 slots are free for it; 2 executors are held for it"));
  EXPECT_FALSE(h.release(a).granted);
  h.succeed(of(c));
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(1)) << "no more than it needs";
  EXPECT_THAT(h.attempts(c), SizeIs(1));
  h.succeed(of(b));
  EXPECT_THAT(h.attempts_of(gang, 0), SizeIs(2));
  h.succeed_all(a);
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(2)) << "nothing is held any more";
  h.drain();
  EXPECT_EQ(h.progress(busy).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, behind_the_first_start_if_they_fit_whole_in_what_is_left) {
  scheduler_harness h;
  std::vector<executor_id> all;
  for (int i = 0; i < 4; ++i) all.push_back(h.add(executor_builder{}.cores(1)));
  const auto busy = h.submit(job_builder{}.stage("busy", 1));
  const auto large = h.submit(job_builder{}.stage("large", 4).barrier());
  const auto small = h.submit(job_builder{}.stage("small", 2).barrier());
  EXPECT_THAT(h.attempts_of(small, 0), IsEmpty()) << "all is held for the large one";
  EXPECT_THAT(h.progress(small).waiting_for, HasSubstr("0 of 4 slots are free for it; stage 0 of job 2 is before it"));
  h.add(executor_builder{}.cores(1));
  EXPECT_THAT(h.attempts_of(large, 0), SizeIs(4));
  EXPECT_THAT(h.attempts_of(small, 0), IsEmpty());
  h.cancel(large);
  h.drain();
  EXPECT_EQ(h.progress(busy).state, job_state::succeeded);
  EXPECT_EQ(h.progress(small).state, job_state::succeeded);
  h.check_idle();
  // Others are left to another profile.
  h.add(executor_builder{}.cores(2).gpus(1));
  const auto pair = h.submit(job_builder{}.stage("pair", 2));
  const auto six = h.submit(job_builder{}.stage("six", 6).barrier());
  EXPECT_THAT(h.attempts_of(six, 0), IsEmpty());
  const auto halves =
      h.submit(job_builder{}.profile(make_profile({{"gpu", 1}}, {{"gpu", "0.5"}})).stage("gpu", 2).with(1).barrier());
  h.tick();
  EXPECT_THAT(h.attempts_of(halves, 0), SizeIs(2));
  h.drain();
  for (const auto job : {pair, six, halves}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, hold_nothing_that_work_before_them_waits_for) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  const auto b = h.add(executor_builder{}.cores(1));
  const auto plain = h.submit(job_builder{}.stage("plain", 4));
  const auto gang = h.submit(job_builder{}.stage("gang", 2).barrier());
  h.succeed_all(a);
  EXPECT_THAT(h.attempts(a), SizeIs(1)) << "it comes first";
  h.succeed_all(a);
  h.succeed_all(a);
  EXPECT_THAT(h.attempts(a), IsEmpty()) << "nothing of it waits any more";
  h.succeed_all(b);
  EXPECT_THAT(h.attempts_of(gang, 0), SizeIs(2));
  h.drain();
  EXPECT_EQ(h.progress(plain).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, hold_more_and_more_where_what_they_hold_does_not_end) {
  scheduler_harness h;
  for (int i = 0; i < 3; ++i) h.add(executor_builder{}.cores(1));
  const auto busy = h.submit(job_builder{}.stage("busy", 3));
  const auto gang = h.submit(job_builder{}.stage("gang", 1).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 9));
  const auto tasks = h.attempts_of(busy, 0);
  h.tick();
  h.succeed(tasks[1]);
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(1)) << "one is held, another one than this";
  h.tick(1s);
  h.succeed(h.attempts_of(plain, 0).front());
  EXPECT_THAT(h.attempts_of(gang, 0), SizeIs(1)) << "a second later two are";
  h.drain();
  for (const auto job : {busy, gang, plain}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, leave_what_they_held_and_do_not_need_to_others_at_once) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(2));
  const auto b = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("busy", 4));
  const auto gang = h.submit(job_builder{}.stage("gang", 3).barrier());
  const auto next = h.submit(job_builder{}.stage("next", 3).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 2));
  h.succeed_all(a);
  EXPECT_THAT(h.attempts(a), IsEmpty());
  h.succeed_all(b);
  EXPECT_THAT(h.attempts_of(gang, 0), SizeIs(3));
  EXPECT_THAT(h.attempts_of(plain, 0), IsEmpty()) << "the next gang gathers";
  h.cancel(next);
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(1));
  h.drain();
  h.submit(job_builder{}.stage("busy", 4));
  const auto alone = h.submit(job_builder{}.stage("gang", 3).barrier());
  const auto other = h.submit(job_builder{}.stage("plain", 1));
  h.succeed_all(a);
  h.succeed_all(b);
  EXPECT_THAT(h.attempts_of(alone, 0), SizeIs(3));
  EXPECT_THAT(h.attempts_of(other, 0), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(gangs, hold_nothing_under_the_exact_policy) {
  scheduler_harness h{exact()};
  const auto a = h.add(executor_builder{}.cores(1));
  const auto b = h.add(executor_builder{}.cores(1));
  const auto busy = h.submit(job_builder{}.stage("busy", 2));
  const auto gang = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 2));
  h.succeed_all(a);
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(1)) << "spec BA-7";
  h.succeed_all(b);
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(2));
  EXPECT_THAT(h.attempts_of(gang, 0), IsEmpty());
  h.drain();
  for (const auto job : {busy, gang, plain}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, run_whole_under_one_of_their_alternatives) {
  scheduler_harness h;
  auto on_gpu = make_profile({{"gpu", 1}}, {{"gpu", "1"}});
  on_gpu.alternatives.push_back(make_profile({{"cores", 2}}, {{"cpus", "2"}}));
  h.add(executor_builder{}.cores(2).gpus(1));
  h.add(executor_builder{}.cores(4));
  const auto job = h.submit(job_builder{}.profile(on_gpu).stage("gang", 2).with(1).barrier());
  h.tick(4s);
  const auto running = h.attempts_of(job, 0);
  ASSERT_THAT(running, SizeIs(2));
  for (const auto& a : running)
    EXPECT_TRUE(h.executor(h.executor_of(a)).holding(a.lease)->resources.empty()) << "both as the second";
  h.drain();
  h.check_idle();
}

TEST(gangs, too_large_for_a_cluster_that_does_not_grow_fail_before_their_first_task) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{true, true, {}, 3}; };
  h.add(executor_builder{}.cores(1));
  const auto fits = h.submit(job_builder{}.stage("gang", 4).barrier());
  EXPECT_EQ(h.end_of(fits), nullptr) << "three more can be had";
  ASSERT_FALSE(h.loads.empty());
  EXPECT_EQ(h.loads.back().loads.front().executors_wanted, 3u);
  EXPECT_TRUE(h.loads.back().loads.front().satisfied_by_none);
  const auto large = h.submit(job_builder{}.stage("first", 1).stage("gang", 5).barrier().after(0));
  ASSERT_NE(h.end_of(large), nullptr);
  EXPECT_EQ(h.end_of(large)->failure.code, ec::infeasible);
  EXPECT_THAT(h.end_of(large)->failure.message,
              AllOf(HasSubstr("stage 1 (gang): its 5 tasks start together, and the executors that fit have 1 slot"),
                    HasSubstr("at most 4 could run at once here: make fewer partitions, or a larger cluster")));
  h.cancel(fits);
  h.check_idle();
}

TEST(gangs, ask_for_executors_one_after_the_other) {
  scheduler_harness h;
  const auto one = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto two =
      h.submit(job_builder{}.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}})).stage("gang", 2).with(1).barrier());
  h.tick();
  ASSERT_THAT(h.loads.back().loads, SizeIs(1)) << "what another one got would stand idle";
  EXPECT_EQ(h.loads.back().loads.front().waiting_tasks, 2u);
  const auto a = h.add(executor_builder{}.cores(1).request(1));
  h.tick();
  EXPECT_EQ(h.loads.back().loads.front().executors_wanted, 1u) << "one has come";
  EXPECT_THAT(h.loads.back().idle, IsEmpty()) << "and is not idle";
  EXPECT_FALSE(h.release(a).granted);
  h.add(executor_builder{}.cores(1).request(2));
  EXPECT_THAT(h.attempts_of(one, 0), SizeIs(2));
  h.tick();
  ASSERT_THAT(h.loads.back().loads, SizeIs(1)) << "now it is the turn of the other one";
  h.add(executor_builder{}.cores(1).gpus(2));
  h.add(executor_builder{}.cores(1).gpus(2));
  EXPECT_THAT(h.attempts_of(two, 0), SizeIs(2));
  h.drain();
  h.check_idle();
}

TEST(gangs, that_lack_something_do_not_speak_for_those_before_them) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("busy", 1));
  h.submit(job_builder{}.stage("gang", 2).barrier());
  h.submit(job_builder{}.stage("large", 9).barrier());
  h.tick();
  ASSERT_THAT(h.loads.back().loads, SizeIs(1));
  EXPECT_EQ(h.loads.back().loads[0].executors_wanted, 1u);
  EXPECT_FALSE(h.loads.back().loads[0].satisfied_by_none) << "what is there is enough for the first one";
}

TEST(gangs, that_can_no_longer_be_fail_after_a_time) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{false, false, "executors are started by hand", 0}; };
  h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier());
  h.tick();
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(31s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("its 2 tasks start together, and the executors that fit have 1 slot in all"),
                    HasSubstr("executors are started by hand"), HasSubstr("troupe.scheduler.infeasible-timeout")));
  h.check_idle();
}

TEST(gangs, are_looked_at_so_often_under_the_exact_policy) {
  auto o = exact();
  o.slot_check_interval = 15s;
  o.max_slot_check_failures = 3;
  scheduler_harness h{o};
  h.answer = [](const executor_shape&) { return feasibility{false, true, "the cluster does not grow", 0}; };
  h.add(executor_builder{}.cores(1));
  const auto grows = h.submit(job_builder{}.stage("first", 1).stage("gang", 2).barrier().after(0));
  EXPECT_THAT(h.attempts(), IsEmpty()) << "the job does not start before its gang could";
  const auto e = h.add(executor_builder{}.cores(1));
  h.drain();
  EXPECT_EQ(h.progress(grows).state, job_state::succeeded);
  h.lose(e, "it left", false);
  const auto stays = h.submit(job_builder{}.stage("gang", 2).barrier());
  for (int i = 0; i < 2; ++i) h.tick(15s);
  h.tick(14s);
  EXPECT_EQ(h.end_of(stays), nullptr);
  h.tick(1s);
  ASSERT_NE(h.end_of(stays), nullptr) << "the fourth look";
  EXPECT_THAT(h.end_of(stays)->failure.message,
              AllOf(HasSubstr("[SPARK-24819]: Barrier execution mode does not allow run a barrier stage that requires "
                              "more slots than the total number of slots"),
                    HasSubstr("it has 2 tasks, the cluster 1 slots")));
  h.check_idle();
}

TEST(gangs, let_go_of_what_they_hold_when_they_are_cancelled) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.cores(1));
  h.add(executor_builder{}.cores(1));
  const auto busy = h.submit(job_builder{}.stage("busy", 2));
  const auto gang = h.submit(job_builder{}.stage("gang", 2).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 1));
  h.succeed_all(a);
  EXPECT_THAT(h.attempts_of(plain, 0), IsEmpty());
  h.cancel(gang);
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(busy).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, gather_by_pool_where_pools_share) {
  dag_scheduler::options o;
  o.sharing = {sharing_mode::fair, {{"a", {}}, {"b", {}}}};
  scheduler_harness h{o};
  const auto e = h.add(executor_builder{}.cores(2));
  const auto busy = h.submit(job_builder{}.stage("busy", 2));
  const auto second = h.submit(job_builder{}.in_pool("b").stage("gang", 2).barrier());
  const auto first = h.submit(job_builder{}.in_pool("a").stage("gang", 2).barrier());
  EXPECT_THAT(h.progress(second).waiting_for, HasSubstr("of job 3 is before it"));
  h.succeed_all(e);
  EXPECT_THAT(h.attempts_of(first, 0), SizeIs(2));
  h.drain();
  for (const auto job : {busy, first, second}) EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(gangs, that_time_out_together_say_so) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("busy", 2));
  const auto one = h.submit(job_builder{}.stage("gang", 2).barrier().timeout(5s));
  const auto two = h.submit(job_builder{}.stage("gang", 2).barrier().timeout(5s));
  h.tick(6s);
  for (const auto job : {one, two}) {
    ASSERT_NE(h.end_of(job), nullptr);
    EXPECT_EQ(h.end_of(job)->failure.code, ec::timed_out);
  }
  h.drain();
  h.check_idle();
}

TEST(gangs, do_not_keep_what_is_there_for_ever_where_the_rest_does_not_come) {
  scheduler_harness h;
  h.answer = [](const executor_shape&) { return feasibility{true, true, "", 8}; };
  for (std::uint64_t i = 1; i <= 4; ++i) h.add(executor_builder{}.cores(1).request(i));
  const auto gang = h.submit(job_builder{}.stage("gang", 8).barrier());
  const auto plain = h.submit(job_builder{}.stage("plain", 1));
  EXPECT_THAT(h.attempts_of(plain, 0), IsEmpty());
  EXPECT_THAT(h.progress(plain).waiting_for, HasSubstr("or held (4) for stage 0 of job 1, whose tasks start together"));
  h.tick(31s);
  h.tick();
  EXPECT_THAT(h.attempts_of(plain, 0), SizeIs(1));
  h.cancel(gang);
  h.drain();
  h.check_idle();
}

TEST(gangs, of_which_too_few_executors_are_not_excluded_fail_after_a_time) {
  dag_scheduler::options o;
  o.exclusion.enabled = true;
  o.exclusion.max_failed_tasks_per_executor = 2;
  scheduler_harness h{o};
  h.answer = [](const executor_shape&) { return feasibility{true, true, "", 2}; };
  const auto bad = h.add(executor_builder{}.cores(2));
  h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.max_failures(9).stage("gang", 4).barrier());
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<fake_attempt> on_bad = h.attempts(bad);
    ASSERT_THAT(on_bad, SizeIs(2));
    h.fail(on_bad[i], "broken");
    for (const auto& a : h.attempts())
      if (a.doomed) h.end(a, task_status::killed);
  }
  EXPECT_THAT(h.attempts_of(job, 0), IsEmpty());
  EXPECT_THAT(h.progress(job).waiting_for, HasSubstr("excluded after failures"));
  h.tick(119s);
  EXPECT_EQ(h.end_of(job), nullptr);
  h.tick(2s);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->failure.message, HasSubstr("troupe.exclude-on-failure.unschedulable-timeout"));
  h.check_idle();
}

TEST(gangs, say_why_their_job_does_not_start_under_the_exact_policy) {
  scheduler_harness h{exact()};
  h.answer = [](const executor_shape&) { return feasibility{false, true, "the cluster does not grow", 0}; };
  h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("gang", 2).barrier());
  EXPECT_THAT(h.progress(job).waiting_for,
              AllOf(HasSubstr("its 2 tasks start together, and the executors that fit have 1 slot in all"),
                    ::testing::Not(HasSubstr("the nearest"))));
  h.cancel(job);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
