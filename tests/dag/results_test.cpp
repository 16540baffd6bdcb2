// What comes out of a job: values in order, blocks that stay where they are, placements, limits.

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

TEST(results, values_come_in_the_order_of_the_partitions) {
  scheduler_harness h;
  for (int i = 0; i < 7; ++i) h.add(executor_builder{}.cores(3));
  const auto job = h.submit(job_builder{}.stage("s", 10'000));
  h.drain(1us);
  const auto all = h.values(job);
  ASSERT_THAT(all, SizeIs(10'000));
  for (std::size_t p = 0; p < all.size(); ++p) ASSERT_EQ(all[p], std::to_string(p));
  EXPECT_EQ(h.end_of(job)->result_bytes, h.end_of(job)->results->values.data.size());
  h.check_idle();
}

TEST(results, large_ones_are_announced_where_they_are_and_kept_until_they_are_released) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.host("alpha"));
  const auto job = h.submit(job_builder{}.stage("s", 2));
  h.succeed(h.attempts(e)[0], "small");
  h.deliver(h.executor(e).report({stored(h.attempts(e)[0], 5'000'000)}));
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.values(job), ElementsAre("small", ""));
  ASSERT_THAT(h.end_of(job)->results->elsewhere, SizeIs(1));
  const auto& where = h.end_of(job)->results->elsewhere[0];
  EXPECT_EQ(where.partition, 1u);
  EXPECT_EQ(where.stage, h.stage_of(job, 0));
  EXPECT_EQ(where.endpoint, h.executor(e).info().blocks);
  EXPECT_EQ(where.bytes, 5'000'000u);
  EXPECT_EQ(h.end_of(job)->result_bytes, 5'000'005u);
  EXPECT_FALSE(h.scheduler.is_idle());
  EXPECT_NE(h.executor(e).installed(where.stage), nullptr);
  EXPECT_TRUE(h.release(e).serving);
  h.release_results(job);
  EXPECT_THAT(h.last_orders[e].removed_stages, ElementsAre(where.stage));
  h.check_idle();
}

TEST(results, stored_result_that_is_lost_with_its_executor_is_made_again) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("s", 2));
  h.deliver(h.executor(a).report({stored(h.attempts(a)[0], 100)}));
  h.lose(a);
  const auto b = h.add(executor_builder{});
  h.drain();
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_THAT(h.end_of(job)->results->elsewhere, SizeIs(0));
  EXPECT_THAT(h.values(job), ElementsAre("0", "1"));
  EXPECT_FALSE(h.release(b).serving);
  h.check_idle();
}

TEST(results, those_of_inner_stages_are_not_kept) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("inner", 1).stage("last", 1).after(0));
  h.deliver(h.executor(a).report({stored(h.attempts(a)[0], 100)}));
  const auto b = h.add(executor_builder{});
  h.lose(a);
  EXPECT_THAT(h.attempts_of(job, 0), SizeIs(0)) << "nobody asks for it";
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_EQ(h.scheduler.pool().find(b), 1u);
  h.check_idle();
}

TEST(results, more_than_the_limit_fail_the_job) {
  dag_scheduler::options options;
  options.max_result_bytes = 10;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("collect", 3));
  h.succeed(h.attempts(e)[0], "12345");
  h.succeed(h.attempts(e)[0], "12345");
  EXPECT_EQ(h.end_of(job), nullptr) << "just as much as is allowed";
  h.succeed(h.attempts(e)[0], "1");
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_EQ(h.end_of(job)->failure.code, ec::overloaded);
  EXPECT_THAT(h.end_of(job)->failure.message, AllOf(HasSubstr("stage 0 (collect)"), HasSubstr("10 bytes")));
  h.check_idle();
}

TEST(results, a_shuffle_at_the_end_has_none) {
  scheduler_harness h;
  h.add(executor_builder{});
  const auto job = h.submit(job_builder{}.stage("map", 1).buckets(2));
  h.drain();
  ASSERT_NE(h.end_of(job), nullptr);
  EXPECT_FALSE(h.end_of(job)->failure);
  EXPECT_EQ(h.end_of(job)->results, nullptr);
  h.check_idle();
}

TEST(results, placements_name_executor_and_addresses_of_the_accepted_attempts) {
  scheduler_harness h;
  const auto a = h.add(executor_builder{}.gpus(1).host("alpha"));
  const auto gpu = make_profile({{"gpu", 1}}, {{"gpu", "1"}});
  const auto job = h.submit(job_builder{}.profile(gpu).stage("s", 3).with(1));
  h.fail(h.attempts(a)[0], "once");
  h.drain();
  const auto all = h.scheduler.placements(job);
  ASSERT_TRUE(all);
  std::uint32_t covered = 0;
  for (const auto& p : *all) {
    EXPECT_EQ(p.partition, covered);
    EXPECT_EQ(p.executor, a);
    EXPECT_EQ(p.host, "alpha");
    EXPECT_EQ(p.attempt, p.partition == 0 ? 1u : 0u);
    EXPECT_EQ(p.holding.resources.at("gpu").at(0).address, "0");
    covered += p.count;
  }
  EXPECT_EQ(covered, 3u);
  EXPECT_THAT(*all, SizeIs(2)) << "neighbours are one entry";
  EXPECT_FALSE(h.scheduler.placements({99}));
}

TEST(results, so_many_ended_jobs_are_retained_and_no_more) {
  dag_scheduler::options options;
  options.retained_jobs = 3;
  scheduler_harness h{options};
  h.add(executor_builder{});
  std::vector<job_id> jobs;
  for (int i = 0; i < 5; ++i) {
    jobs.push_back(h.submit(job_builder{}.stage("s", 1)));
    h.drain();
  }
  EXPECT_EQ(h.scheduler.all_progress(h.now).size(), 3u);
  EXPECT_FALSE(h.scheduler.progress(jobs[1], h.now));
  EXPECT_TRUE(h.scheduler.progress(jobs[2], h.now));
}

/// Of jobs without commands nothing lies there, and a message about each would slow down short jobs.
TEST(results, what_commands_have_left_goes_with_a_job_that_is_forgotten) {
  dag_scheduler::options options;
  options.retained_jobs = 1;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{});
  const auto commands = h.submit(job_builder{}.stage("s", 1).command());
  h.drain();
  h.submit(job_builder{}.stage("s", 1));
  EXPECT_THAT(h.forgotten, IsEmpty());
  h.drain();
  EXPECT_THAT(h.forgotten, ElementsAre(commands));
  EXPECT_THAT(h.last_orders[e].forgotten_jobs, ElementsAre(commands));
  h.submit(job_builder{}.stage("s", 1));
  h.drain();
  EXPECT_THAT(h.forgotten, ElementsAre(commands)) << "the second one had no commands";
}

TEST(results, what_waits_to_be_fetched_is_kept_whatever_is_retained) {
  dag_scheduler::options options;
  options.retained_jobs = 0;
  options.held_jobs = 2;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{});
  const auto job_with_stored_result = [&] {
    const auto job = h.submit(job_builder{}.stage("s", 1));
    h.deliver(h.executor(e).report({stored(h.attempts(e).at(0), 100)}));
    return job;
  };
  const auto first = job_with_stored_result();
  const auto second = job_with_stored_result();
  h.submit(job_builder{}.stage("s", 1));
  h.drain();
  EXPECT_TRUE(h.scheduler.progress(first, h.now));
  EXPECT_EQ(h.executor(e).installed_count(), 2u);
  const auto third = job_with_stored_result();
  EXPECT_FALSE(h.scheduler.progress(first, h.now)) << "what nobody releases is bounded";
  EXPECT_EQ(h.executor(e).installed_count(), 2u);
  h.release_results(second);
  h.release_results(second);
  h.release_results(third);
  EXPECT_TRUE(h.scheduler.all_progress(h.now).empty());
  EXPECT_EQ(h.executor(e).installed_count(), 0u);
}

} // namespace
} // namespace troupe::testing
