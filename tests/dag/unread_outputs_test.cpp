// What waits to be read between stages that are connected task by task: what counts, what is kept, and what goes.

#include <cstdint>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <optional>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace {

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class unread_outputs : public ::testing::Test {
protected:
  static dag_scheduler::options at_most(std::uint64_t bytes) {
    dag_scheduler::options o;
    o.max_unconsumed = bytes;
    return o;
  }
  /// "make" by records of 8 bytes, "use" on a gpu.
  static job_builder pipe(std::uint32_t tasks, bool indeterminate = false) {
    job_builder job{"pipe"};
    job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
    job.stage("make", tasks).buckets(1);
    if (indeterminate) job.indeterminate();
    job.stage("use", tasks).with(1).after(0, dependency_kind::one_to_one);
    return job;
  }
  executor_id maker(std::int64_t cores = 1) { return h.add(executor_builder{}.cores(cores)); }
  executor_id user() { return h.add(executor_builder{}.cores(1).gpus(1)); }
  std::vector<partition_index> running(std::uint32_t stage) {
    std::vector<partition_index> all;
    for (const auto& a : h.attempts_of(job, stage)) all.push_back(a.partition);
    return all;
  }
  void succeed(std::uint32_t stage, partition_index p, duration run_time = 1s) {
    for (const auto& a : h.attempts_of(job, stage))
      if (a.partition == p) return h.succeed(a, {}, run_time);
    FAIL() << "it does not run";
  }
  std::size_t dropped(executor_id e) const {
    return h.last_orders.contains(e) ? h.last_orders.at(e).consumed.size() : 0;
  }
  void expect_success() {
    h.drain();
    ASSERT_TRUE(h.end_of(job));
    EXPECT_FALSE(h.end_of(job)->failure);
    h.check_idle();
  }

  scheduler_harness h{at_most(16)};
  job_id job;
};

TEST_F(unread_outputs, go_although_a_stage_waits_for_all_of_the_producer) {
  const auto a = maker();
  user();
  auto what = pipe(2);
  what.stage("report", 1).after(0, dependency_kind::all);
  job = h.submit(what);
  succeed(0, 0);
  succeed(1, 0);
  EXPECT_EQ(dropped(a), 1u) << "the report reads no block of it";
  expect_success();
}

TEST_F(unread_outputs, stay_for_a_shuffle_that_reads_them_too) {
  const auto a = maker();
  user();
  auto what = pipe(2);
  what.stage("group", 1).reads(0);
  job = h.submit(what);
  succeed(0, 0);
  succeed(1, 0);
  EXPECT_EQ(dropped(a), 0u);
  expect_success();
}

TEST_F(unread_outputs, of_an_indeterminate_stage_are_kept_without_counting) {
  const auto a = maker();
  user();
  job = h.submit(pipe(4, true));
  succeed(0, 0);
  succeed(0, 1);
  EXPECT_THAT(running(0), IsEmpty()) << "16 bytes wait";
  succeed(1, 0);
  EXPECT_EQ(dropped(a), 0u);
  EXPECT_THAT(running(0), ElementsAre(2)) << "8 bytes wait, although all is kept";
  expect_success();
}

TEST_F(unread_outputs, count_again_when_their_reader_has_to_run_again) {
  maker();
  const auto b = user();
  auto what = pipe(3, true);
  what.buckets(1);
  what.stage("last", 3).after(1, dependency_kind::all);
  job = h.submit(what);
  succeed(0, 0);
  succeed(0, 1);
  succeed(1, 0);
  EXPECT_THAT(running(0), ElementsAre(2));
  h.lose(b);
  user();
  succeed(0, 2);
  expect_success();
}

TEST_F(unread_outputs, of_one_producer_are_bounded_where_the_other_is_slow) {
  maker();
  user();
  job_builder what{"two into one"};
  what.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  what.stage("left", 6).buckets(1).stage("right", 6).with(1).buckets(1);
  what.stage("both", 6).after(0, dependency_kind::one_to_one).after(1, dependency_kind::one_to_one);
  job = h.submit(what);
  succeed(0, 0);
  succeed(0, 1);
  EXPECT_THAT(running(0), IsEmpty()) << "left has made too much that right has no counterpart of yet";
  EXPECT_THAT(running(1), ElementsAre(0));
  expect_success();
}

TEST_F(unread_outputs, do_not_hold_up_producers_whose_consumer_lacks_another_partition) {
  maker(4);
  user();
  job_builder what{"two into one"};
  what.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  what.stage("left", 4).buckets(1).stage("right", 4).with(1).buckets(1);
  what.stage("both", 4).after(0, dependency_kind::one_to_one).after(1, dependency_kind::one_to_one);
  job = h.submit(what);
  const auto left = h.attempts_of(job, 0);
  ASSERT_THAT(left, SizeIs(4));
  succeed(0, 2);
  succeed(0, 3);
  h.fail(left[0], "once");
  h.fail(left[1], "once");
  EXPECT_THAT(running(0), IsEmpty()) << "right can go on";
  succeed(1, 0);
  succeed(1, 1);
  EXPECT_THAT(running(0), ::testing::Contains(0)) << "nobody else can";
  expect_success();
}

TEST_F(unread_outputs, are_bounded_also_for_who_joins_when_all_are_read) {
  maker();
  user();
  job = h.submit(pipe(100));
  succeed(0, 0, 10us);
  succeed(1, 0);
  maker();
  EXPECT_THAT(running(0), SizeIs(::testing::Le(4u))) << "what its tasks make is known although none of it is there";
  expect_success();
}

TEST_F(unread_outputs, that_are_known_to_be_lost_are_no_attempts_fault) {
  maker();
  maker();
  user();
  job = h.submit(pipe(1));
  for (attempt_number n = 0; n < 6; ++n) {
    const auto maker_of_it = h.executor_of(h.attempts_of(job, 0).front());
    succeed(0, 0);
    const auto reader = h.attempts_of(job, 1).front();
    h.lose(maker_of_it);
    maker();
    h.fetch_fail(reader, h.stage_of(job, 0), 0, n);
    ASSERT_FALSE(h.end_of(job)) << n;
  }
  expect_success();
}

TEST_F(unread_outputs, that_a_reader_did_not_find_are_dropped_by_who_has_them) {
  const auto a = maker();
  user();
  job = h.submit(pipe(1));
  succeed(0, 0);
  h.fetch_fail(h.attempts_of(job, 1).front(), h.stage_of(job, 0), 0);
  EXPECT_EQ(dropped(a), 1u) << "else a damaged one stays until the job ends";
  expect_success();
}

TEST_F(unread_outputs, let_an_executor_be_idle_only_from_when_they_are_read) {
  const auto a = maker();
  user();
  job = h.submit(pipe(1));
  succeed(0, 0);
  const auto idle = [&]() -> std::optional<std::uint64_t> {
    for (const auto& one : h.loads.back().idle)
      if (one.executor == a) return one.idle_nanoseconds;
    return std::nullopt;
  };
  h.tick(60s);
  EXPECT_EQ(idle(), 0u) << "it may make way for others, but does not go for being idle";
  succeed(1, 0);
  h.tick(1s);
  EXPECT_EQ(idle(), 1'000'000'000u);
}

} // namespace
