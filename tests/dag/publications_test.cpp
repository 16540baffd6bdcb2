// Output files of commands: who publishes an attempt, and when its task is done.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/command_arguments.hpp>
#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A scheduler whose wishes are answered by the test.
struct by_hand : scheduler_harness {
  explicit by_hand(dag_scheduler::options opts = {}) : scheduler_harness(opts) { publishes_at_once = false; }

  /// The only attempt that waits to be published.
  effects::staged_attempt only() {
    if (to_publish.size() != 1) throw std::logic_error(std::to_string(to_publish.size()) + " are to be published");
    return to_publish.front();
  }
  /// The right that the last input has given to the executor.
  publication_right right_of(executor_id e) { return last_orders[e].rights.at(0); }
};

constexpr auto not_seen = publication_outcome::not_seen;
constexpr auto published = publication_outcome::published;

/// The one task of a job has an accepted attempt, whose outputs wait.
struct accepted_one : by_hand {
  accepted_one() {
    e = add(executor_builder{}.cores(1));
    job = submit(job_builder{}.stage("make", 1).outputs());
    succeed(attempts(e)[0]);
    what = only();
  }

  executor_id e;
  job_id job;
  effects::staged_attempt what;
};

TEST(publications, dependants_wait_for_them) {
  by_hand h;
  h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}
                                .stage("make", 2)
                                .outputs()
                                .stage("read", 2)
                                .command()
                                .after(0, dependency_kind::one_to_one)
                                .stage("all", 1)
                                .command()
                                .after(0));
  const auto made = h.attempts_of(job, 0);
  h.succeed(made[0]);
  EXPECT_THAT(h.attempts_of(job, 1), IsEmpty());
  EXPECT_EQ(h.progress(job).stages[0].done, 0u);
  EXPECT_EQ(h.only().partition, 0u);
  h.publish(h.only());
  EXPECT_EQ(h.progress(job).stages[0].done, 1u);
  ASSERT_THAT(h.attempts_of(job, 1), SizeIs(1)) << "task by task";
  EXPECT_THAT(h.attempts_of(job, 2), IsEmpty());
  h.succeed(made[1]);
  EXPECT_THAT(h.attempts_of(job, 2), IsEmpty());
  h.publish(h.only());
  h.publishes_at_once = true;
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(publications, tasks_without_outputs_need_none) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("plain", 1).command());
  h.succeed(h.attempts(e)[0]);
  EXPECT_THAT(h.to_publish, IsEmpty());
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_THAT(h.end_of(job)->failure.message, IsEmpty());
}

TEST(publications, of_a_late_attempt_are_discarded) {
  dag_scheduler::options o;
  o.speculation.enabled = true;
  o.speculation.quantile = share{share::units_per_whole / 2};
  by_hand h{o};
  const auto a = h.add(executor_builder{}.cores(2).host("a"));
  const auto b = h.add(executor_builder{}.cores(2).host("b"));
  const auto job = h.submit(job_builder{}.stage("make", 4).outputs());
  for (const auto& each : h.attempts())
    if (each.partition != 3) h.succeed(each, {}, 1s);
  for (const auto& each : std::vector{h.to_publish}) h.publish(each);
  const auto slow = h.attempts().at(0);
  const auto first = h.executor_of(slow);
  h.tick(20s);
  const auto copies = h.attempts(first == a ? b : a);
  ASSERT_THAT(copies, SizeIs(1));
  h.succeed(copies[0]);
  EXPECT_EQ(h.only().attempt, 1u);
  h.end(slow, task_status::succeeded, {}); // it crossed the order to end
  ASSERT_THAT(h.discarded, SizeIs(1));
  EXPECT_EQ(h.discarded[0].attempt, 0u);
  EXPECT_EQ(h.discarded[0].executor, first);
  EXPECT_THAT(h.to_publish, SizeIs(1)) << "one attempt of a task at a time";
  h.publish(h.only());
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(publications, that_the_driver_does_not_see_are_their_executors_right_once) {
  accepted_one h;
  h.publish(h.what, not_seen);
  const auto right = h.right_of(h.e);
  EXPECT_EQ(right.partition, 0u);
  EXPECT_THAT(right.outputs, ElementsAre("out-0"));
  EXPECT_EQ(h.progress(h.job).state, job_state::running);
  const auto stale = h.scheduler.stale_messages();
  h.publish(h.what, not_seen); // a repeated answer gives no second right
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 1);
  EXPECT_FALSE(h.release(h.e).granted);
  h.report_publication(h.e, right, published);
  EXPECT_EQ(h.progress(h.job).state, job_state::succeeded);
  h.report_publication(h.e, right, published);
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 2);
  h.check_idle();
}

TEST(publications, are_reported_by_who_has_the_right_alone) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("make", 1).outputs());
  const auto other = h.add(executor_builder{}.cores(1));
  h.succeed(h.attempts(e)[0]);
  const auto what = h.only();
  const publication_right right{what.stage, 0, 0, {"out-0"}};
  const auto stale = h.scheduler.stale_messages();
  h.report_publication(e, right, published); // before it has the right
  h.publish(what, not_seen);
  h.report_publication(other, right, published);
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 2);
  EXPECT_EQ(h.progress(job).state, job_state::running);
  h.report_publication(e, right, published);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST(publications, no_second_attempt_runs_while_a_right_is_out) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(1).host("away"));
  h.add(executor_builder{}.cores(1).host("here"));
  const auto job = h.submit(job_builder{}.stage("make", 1).outputs());
  const auto runs = h.attempts().at(0);
  const auto maker = h.executor_of(runs);
  h.succeed(runs);
  h.publish(h.only(), not_seen);
  h.lose(maker, "silent for 10s");
  EXPECT_THAT(h.attempts(), IsEmpty());
  ASSERT_EQ(h.progress(job).state, job_state::failed);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("stage 0 (make), partition 0, attempt 0"),
                    HasSubstr("had the right to publish its outputs"), HasSubstr("/out"), HasSubstr("silent for 10s"),
                    HasSubstr("end that process")));
  static_cast<void>(e);
  h.check_idle();
}

TEST(publications, a_dead_executors_right_passes_on) {
  by_hand h;
  h.add(executor_builder{}.cores(1));
  h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("make", 1).outputs());
  const auto runs = h.attempts().at(0);
  h.succeed(runs);
  h.publish(h.only(), not_seen);
  executor_exit dead;
  dead.cause = exit_cause::signal;
  h.lose(h.to_publish.empty() ? executor_id{h.last_orders.begin()->first} : executor_id{}, "killed by signal 9", true,
         dead, true);
  const auto again = h.attempts();
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].attempt, 1u);
  h.publishes_at_once = true;
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.progress(job).stages[0].failures, 0u) << "nobody is to blame";
  h.check_idle();
}

TEST(publications, of_an_accepted_attempt_survive_its_executor) {
  accepted_one h;
  h.lose(h.e);
  EXPECT_EQ(h.progress(h.job).state, job_state::running);
  h.publish(h.what);
  EXPECT_EQ(h.progress(h.job).state, job_state::succeeded);
  EXPECT_EQ(h.scheduler.placements(h.job)->at(0).attempt, 0u);
}

TEST(publications, that_went_with_their_executor_are_made_again) {
  accepted_one h;
  h.lose(h.e);
  const auto other = h.add(executor_builder{}.cores(1));
  h.publish(h.what, not_seen);
  ASSERT_THAT(h.attempts(other), SizeIs(1));
  EXPECT_EQ(h.attempts(other)[0].attempt, 1u);
  h.publishes_at_once = true;
  h.drain();
  EXPECT_EQ(h.progress(h.job).state, job_state::succeeded);
  h.check_idle();
}

TEST(publications, that_fail_fail_their_job_and_no_command_runs_again) {
  for (const bool gang : {false, true}) {
    by_hand h;
    const auto e = h.add(executor_builder{}.cores(1));
    auto builder = job_builder{}.max_failures(2).stage("make", 1).outputs();
    const auto job = h.submit(gang ? builder.barrier() : builder);
    h.succeed(h.attempts(e)[0]);
    h.publish(h.only(), publication_outcome::failed, "a directory is in its place");
    EXPECT_THAT(h.attempts(e), IsEmpty());
    EXPECT_EQ(h.events<events::task_failed>().back().message, "a directory is in its place");
    EXPECT_EQ(h.events<events::task_failed>().back().cause, failure_cause::certain);
    ASSERT_EQ(h.progress(job).state, job_state::failed);
    EXPECT_THAT(h.end_of(job)->failure.message,
                AllOf(HasSubstr("partition 0"), HasSubstr("a directory is in its place")));
    h.check_idle();
  }
}

/// Nobody sees what it has made: somebody has removed it.
TEST(publications, of_files_that_are_gone_count_as_failures_of_their_task) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.max_failures(2).stage("make", 1).outputs());
  for (const attempt_number attempt : {0u, 1u}) {
    ASSERT_THAT(h.attempts(e), SizeIs(1));
    EXPECT_EQ(h.attempts(e)[0].attempt, attempt);
    h.succeed(h.attempts(e)[0]);
    h.publish(h.only(), not_seen);
    h.report_publication(e, h.right_of(e), not_seen, "nothing is there");
  }
  ASSERT_EQ(h.progress(job).state, job_state::failed);
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("failure 2 of 2 allowed"), HasSubstr("nothing is there")));
  h.check_idle();
}

TEST(publications, answers_for_a_job_that_is_over_are_stale) {
  accepted_one h;
  h.cancel(h.job);
  h.check_idle();
  const auto stale = h.scheduler.stale_messages();
  h.publish(h.what);
  EXPECT_EQ(h.scheduler.stale_messages(), stale + 1);
}

TEST(publications, the_end_of_a_job_says_where_files_may_be_staged) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("make", 1).outputs().stage("plain", 1).command().after(0));
  const auto stage = h.stage_of(job, 0);
  effects::list out;
  ASSERT_TRUE(h.scheduler.on_job_cancelled(job, "by request", h.now, out));
  std::vector<std::pair<stage_id, std::string>> staged;
  for (const auto& effect : out)
    if (const auto* done = std::get_if<effects::complete_job>(&effect)) staged = done->staged;
  EXPECT_THAT(staged, ElementsAre(std::pair{stage, std::string{"/out"}}));
  static_cast<void>(e);
}

TEST(publications, a_gang_publishes_together_or_not_at_all) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.max_failures(2).stage("gang", 2).outputs().barrier());
  auto tasks = h.attempts(e);
  h.succeed(tasks[0]);
  EXPECT_THAT(h.to_publish, IsEmpty());
  h.fail(tasks[1], "broken");
  EXPECT_THAT(h.to_publish, IsEmpty());
  EXPECT_THAT(h.discarded, SizeIs(1)) << "what the other one has staged";
  tasks = h.attempts(e);
  ASSERT_THAT(tasks, SizeIs(2));
  h.succeed(tasks[0]);
  h.succeed(tasks[1]);
  EXPECT_THAT(h.to_publish, SizeIs(2));
  for (const auto& each : std::vector{h.to_publish}) h.publish(each);
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(publications, a_gang_of_which_the_last_leaves_no_files_publishes_the_others) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(2));
  auto one = encode_command_arguments({{}, {"out-0"}});
  const auto job = h.submit(job_builder{}.stage("gang", 2).outputs().arguments({one, ""}).barrier());
  const auto tasks = h.attempts(e);
  h.succeed(tasks[0]);
  EXPECT_THAT(h.to_publish, IsEmpty());
  h.succeed(tasks[1]);
  h.publish(h.only());
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(publications, a_gang_that_failed_waits_for_what_is_being_published) {
  by_hand h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.max_failures(2).stage("gang", 2).outputs().barrier());
  for (const auto& task : h.attempts(e)) h.succeed(task);
  const auto all = h.to_publish;
  ASSERT_THAT(all, SizeIs(2));
  h.publish(all[0], not_seen);
  h.report_publication(e, h.right_of(e), not_seen, "somebody has removed it");
  EXPECT_THAT(h.attempts(e), IsEmpty()) << "the other one is still being published";
  h.publish(all[1]);
  const auto again = h.attempts(e);
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(again[1].attempt, 1u);
  h.publishes_at_once = true;
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
