// Executors that crash or run out of memory while several attempts run there.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <csignal>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::SizeIs;

executor_exit crash() {
  executor_exit exit;
  exit.cause = exit_cause::signal;
  exit.signal = SIGSEGV;
  return exit;
}
void crash(scheduler_harness& h, executor_id e) { h.lose(e, "it was ended by signal 11 (SIGSEGV)", true, crash()); }

std::vector<partition_index> partitions(const std::vector<fake_attempt>& attempts) {
  std::vector<partition_index> all;
  for (const auto& a : attempts) all.push_back(a.partition);
  return all;
}

TEST(suspects, run_alone_and_nobody_is_blamed_who_succeeds) {
  scheduler_harness h;
  const auto first = h.add(executor_builder{}.cores(3));
  const auto job = h.submit(job_builder{}.stage("s", 6));
  ASSERT_THAT(h.attempts(first), SizeIs(3));
  crash(h, first);
  EXPECT_THAT(h.events<events::task_failed>(), Each(Field(&events::task_failed::cause, failure_cause::suspected)));
  EXPECT_THAT(h.events<events::task_failed>(), SizeIs(3));
  const auto second = h.add(executor_builder{}.cores(3));
  for (partition_index p = 0; p < 3; ++p) {
    EXPECT_THAT(partitions(h.attempts(second)), ElementsAre(p)) << "alone, although three cores are free";
    h.succeed_all(second);
  }
  EXPECT_THAT(partitions(h.attempts(second)), ElementsAre(3, 4, 5)) << "the others side by side";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(suspects, one_that_dies_again_is_guilty_and_the_others_are_free) {
  scheduler_harness h;
  const auto first = h.add(executor_builder{}.cores(3));
  const auto job = h.submit(job_builder{}.stage("s", 3));
  crash(h, first);
  const auto second = h.add(executor_builder{}.cores(3));
  ASSERT_THAT(partitions(h.attempts(second)), ElementsAre(0));
  crash(h, second);
  EXPECT_EQ(h.events<events::task_failed>().back().cause, failure_cause::lost) << "it alone can have done it";
  EXPECT_EQ(h.events<events::task_failed>().back().partition, 0u);
  const auto third = h.add(executor_builder{}.cores(3));
  EXPECT_THAT(partitions(h.attempts(third)), ElementsAre(0)) << "the guilty one first, alone";
  h.succeed_all(third);
  EXPECT_THAT(partitions(h.attempts(third)), ElementsAre(1, 2)) << "the innocent side by side";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST(suspects, the_guilty_one_fails_its_job_and_no_other) {
  scheduler_harness h;
  auto e = h.add(executor_builder{}.cores(2));
  const auto guilty = h.submit(job_builder{}.max_failures(2).stage("guilty", 1));
  const auto innocent = h.submit(job_builder{}.max_failures(1).stage("innocent", 1));
  ASSERT_THAT(h.attempts(e), SizeIs(2));
  crash(h, e);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(h.end_of(guilty), nullptr);
    e = h.add(executor_builder{}.cores(2));
    ASSERT_THAT(h.attempts_of(guilty, 0), SizeIs(1));
    ASSERT_THAT(h.attempts(e), SizeIs(1));
    crash(h, e);
  }
  ASSERT_NE(h.end_of(guilty), nullptr);
  EXPECT_THAT(
      h.end_of(guilty)->failure.message,
      HasSubstr("was lost (it was ended by signal 11 (SIGSEGV)) while it ran; that was failure 2 of 2 allowed"));
  h.add(executor_builder{}.cores(2));
  h.drain();
  EXPECT_EQ(h.progress(innocent).state, job_state::succeeded) << "whose only attempt died beside it";
  h.check_idle();
}

TEST(suspects, are_tried_on_several_executors_at_once) {
  scheduler_harness h;
  const auto first = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 2));
  const auto b = h.add(executor_builder{}.cores(2));
  const auto c = h.add(executor_builder{}.cores(2));
  crash(h, first);
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  EXPECT_THAT(h.attempts(c), SizeIs(1));
  h.drain();
  h.check_idle();
}

TEST(suspects, have_an_executor_emptied_for_them_by_later_jobs) {
  scheduler_harness h;
  const auto first = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("s", 2));
  const auto second = h.add(executor_builder{}.cores(2));
  const auto later = h.submit(job_builder{}.stage("later", 20));
  crash(h, first);
  h.succeed(h.attempts(second)[0]);
  EXPECT_THAT(h.attempts(second), SizeIs(1)) << "it waits for the other slot";
  h.succeed(h.attempts(second)[0]);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(1));
  EXPECT_THAT(h.attempts(second), SizeIs(1));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.progress(later).state, job_state::succeeded);
  h.check_idle();
}

TEST(suspects, one_that_was_the_only_one_is_guilty_at_once) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.max_failures(1).stage("s", 1));
  crash(h, e);
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::task_failed);
  h.check_idle();
}

TEST(suspects, are_none_where_the_executor_was_killed_from_outside) {
  scheduler_harness h;
  auto exit = crash();
  exit.signal = SIGKILL;
  const auto e = h.add(executor_builder{}.cores(2));
  h.submit(job_builder{}.stage("s", 2));
  h.lose(e, "killed", true, exit);
  const auto next = h.add(executor_builder{}.cores(2));
  EXPECT_THAT(h.attempts(next), SizeIs(2)) << "side by side";
  h.drain();
  h.check_idle();
}

TEST(suspects, of_a_job_that_ends_are_forgotten) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(2));
  const auto job = h.submit(job_builder{}.stage("s", 2));
  crash(h, e);
  h.cancel(job);
  h.check_idle();
}

TEST(suspects, of_an_exclusive_profile_run_alone_too) {
  auto profile = make_profile({}, {{"cpus", "1"}});
  profile.exclusive = true;
  scheduler_harness h;
  const auto first = h.add(executor_builder{}.cores(3));
  h.submit(job_builder{}.profile(profile).stage("s", 5).with(1));
  ASSERT_THAT(h.attempts(first), SizeIs(3));
  crash(h, first);
  const auto second = h.add(executor_builder{}.cores(3));
  EXPECT_THAT(h.attempts(second), SizeIs(1)) << "no other task of its own profile either";
  h.drain();
  h.check_idle();
}

} // namespace
} // namespace troupe::testing
