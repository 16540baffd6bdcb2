// Stages that are connected task by task.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/result_entry.hpp>
#include <troupe/tests/support/scheduler_harness.hpp>

namespace {

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A producer of so many tasks and a consumer of another profile; by records, or by files.
job_builder pipe(std::uint32_t tasks, bool records = true) {
  job_builder job{"pipe"};
  job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  job.stage("make", tasks).buckets(records ? 1 : 0);
  job.stage("use", tasks).with(1).after(0, dependency_kind::one_to_one);
  return job;
}

class pipelines : public ::testing::TestWithParam<bool> {
protected:
  executor_id maker(scheduler_harness& h, std::int64_t cores = 1) { return h.add(executor_builder{}.cores(cores)); }
  executor_id user(scheduler_harness& h) { return h.add(executor_builder{}.cores(1).gpus(1)); }
  std::vector<partition_index> partitions(const scheduler_harness& h, job_id job, std::uint32_t stage) {
    std::vector<partition_index> all;
    for (const auto& a : h.attempts_of(job, stage)) all.push_back(a.partition);
    return all;
  }
  fake_attempt attempt(const scheduler_harness& h, job_id job, std::uint32_t stage, partition_index p) {
    for (const auto& a : h.attempts_of(job, stage))
      if (a.partition == p) return a;
    throw std::logic_error("it does not run");
  }
};
INSTANTIATE_TEST_SUITE_P(by, pipelines, ::testing::Bool(),
                         [](const auto& param) { return param.param ? "records" : "files"; });

TEST_P(pipelines, start_each_task_when_its_input_exists) {
  scheduler_harness h;
  const auto a = maker(h, 2);
  user(h);
  const auto job = h.submit(pipe(4, GetParam()));
  EXPECT_THAT(partitions(h, job, 0), SizeIs(2));
  EXPECT_THAT(partitions(h, job, 1), IsEmpty());
  EXPECT_EQ(h.progress(job).stages[1].state, stage_state::waiting);
  h.succeed(attempt(h, job, 0, 1));
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(1));
  EXPECT_EQ(h.progress(job).stages[0].state, stage_state::running) << "no barrier between them";
  EXPECT_EQ(h.progress(job).stages[1].state, stage_state::running);
  h.succeed(attempt(h, job, 0, 0));
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(1)) << "there is one gpu";
  h.succeed(attempt(h, job, 1, 1), "b");
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(0));
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  static_cast<void>(a);
  h.check_idle();
}

TEST_F(pipelines, tell_consumers_where_their_partition_lies_and_drop_it_when_it_was_read) {
  scheduler_harness h;
  const auto a = maker(h);
  const auto b = user(h);
  const auto job = h.submit(pipe(2));
  h.succeed(attempt(h, job, 0, 0));
  const auto& batches = h.last_orders.at(b).batches;
  ASSERT_THAT(batches, SizeIs(1));
  ASSERT_THAT(batches[0].inputs, SizeIs(1));
  const auto& input = batches[0].inputs[0];
  EXPECT_EQ(input.stage, h.stage_of(job, 0));
  ASSERT_THAT(input.endpoints, SizeIs(1));
  EXPECT_EQ(input.endpoints[0].executor, a);
  EXPECT_THAT(input.endpoint_of_task, ElementsAre(0));
  EXPECT_THAT(input.attempt_of_task, ElementsAre(0));
  EXPECT_TRUE(h.scheduler.executors().front().leases > 0);
  h.succeed(attempt(h, job, 0, 1));
  EXPECT_TRUE(h.release(a).serving) << "it holds what was not read";
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(h.last_orders.at(a).consumed, ElementsAre(held_block{h.stage_of(job, 0), 0, 0, 0}));
  h.succeed(attempt(h, job, 1, 1));
  ASSERT_TRUE(h.end_of(job));
  h.check_idle();
}

TEST_F(pipelines, keep_what_an_indeterminate_stage_made_until_its_consumer_is_complete) {
  scheduler_harness h;
  const auto a = maker(h);
  user(h);
  job_builder what{"pipe"};
  what.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  what.stage("make", 2).buckets(1).indeterminate();
  what.stage("use", 2).with(1).after(0, dependency_kind::one_to_one);
  what.stage("last", 1).after(1);
  const auto job = h.submit(what);
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_FALSE(h.last_orders.contains(a) && !h.last_orders.at(a).consumed.empty());
  h.succeed(attempt(h, job, 0, 1));
  h.succeed(attempt(h, job, 1, 1));
  EXPECT_THAT(h.last_orders.at(a).consumed, SizeIs(2));
  h.drain();
  h.check_idle();
}

/// Both would be right, and the job would not.
TEST_F(pipelines, fail_where_two_would_read_different_versions_of_what_an_indeterminate_stage_made) {
  for (const bool read : {false, true}) {
    scheduler_harness h;
    const auto a = h.add(executor_builder{}.cores(1));
    const auto gpu = make_profile({{"gpu", 1}}, {{"gpu", "1"}});
    job_builder job{"two readers"};
    job.profile(gpu).profile(make_profile({{"fpga", 1}}, {{"fpga", "1"}}));
    job.stage("make", 1).buckets(1).indeterminate();
    job.stage("one", 1).with(1).after(0, dependency_kind::one_to_one);
    job.stage("other", 1).with(2).after(0, dependency_kind::one_to_one);
    const auto id = h.submit(job);
    if (read) user(h);
    h.succeed(attempt(h, id, 0, 0));
    if (read) h.succeed(attempt(h, id, 1, 0));
    h.lose(a);
    if (read) {
      ASSERT_TRUE(h.end_of(id));
      ASSERT_TRUE(static_cast<bool>(h.end_of(id)->failure));
      EXPECT_THAT(h.end_of(id)->failure.message, AllOf(HasSubstr("stage 0 (make)"), HasSubstr("stage 1 (one)")));
    } else {
      maker(h);
      user(h);
      h.add(executor_builder{}.cores(1).custom("fpga", 1));
      h.drain();
      ASSERT_TRUE(h.end_of(id));
      EXPECT_FALSE(h.end_of(id)->failure) << h.end_of(id)->failure.message;
    }
    h.check_idle();
  }
}

/// Two that read what an indeterminate stage makes, and what comes of each.
class pipelines_with_two_readers : public pipelines {
protected:
  job_builder two_readers(std::uint32_t tasks) {
    job_builder job{"two readers"};
    job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}})).profile(make_profile({{"fpga", 1}}, {{"fpga", "1"}}));
    job.stage("make", tasks).buckets(1).indeterminate();
    job.stage("one", tasks).with(1).buckets(1).after(0, dependency_kind::one_to_one);
    job.stage("other", tasks).with(2).buckets(1).after(0, dependency_kind::one_to_one);
    return job;
  }
  void drain(scheduler_harness& h, job_id job) {
    h.drain();
    ASSERT_TRUE(h.end_of(job));
    EXPECT_FALSE(h.end_of(job)->failure) << h.end_of(job)->failure.message;
    h.check_idle();
  }
};

TEST_F(pipelines_with_two_readers, do_not_fail_where_both_read_it_again) {
  dag_scheduler::options o;
  o.scarce_resource_wait = 0s;
  scheduler_harness h{o};
  maker(h);
  auto builder = two_readers(2);
  const auto job = h.submit(builder.stage("last", 1).after(1).after(2));
  const auto both = h.add(executor_builder{}.cores(3).gpus(1).custom("fpga", 1));
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 1, 0));
  h.succeed(attempt(h, job, 0, 1));
  h.succeed(attempt(h, job, 1, 1));
  h.succeed(attempt(h, job, 2, 0));
  h.succeed(attempt(h, job, 2, 1));
  h.lose(both);
  h.add(executor_builder{}.cores(3).gpus(1).custom("fpga", 1));
  drain(h, job);
}

TEST_F(pipelines_with_two_readers, do_not_fail_where_nobody_needs_what_is_lost) {
  scheduler_harness h;
  maker(h);
  auto builder = two_readers(1);
  builder.stage("of one", 1).buckets(1).after(1).stage("of other", 1).buckets(1).after(2);
  const auto job = h.submit(builder.stage("last", 1).after(3).after(4));
  const auto first = user(h);
  h.add(executor_builder{}.cores(1).custom("fpga", 1));
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 1, 0));
  h.succeed(attempt(h, job, 2, 0));
  h.succeed(attempt(h, job, 3, 0));
  h.lose(first);
  drain(h, job);
}

/// Where one executor has what both want, and nobody has less, neither waits for the other.
TEST_F(pipelines, run_side_by_side_where_one_executor_serves_both) {
  scheduler_harness h;
  h.add(executor_builder{}.cores(2).gpus(2));
  const auto job = h.submit(pipe(8));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(0, 1));
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 0, 1));
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(1));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(2)) << "the slot that the consumer does not need";
  h.drain();
  h.check_idle();
}

TEST_F(pipelines, of_a_pool_that_shares_evenly_do_not_let_producers_run_away) {
  dag_scheduler::options o;
  o.sharing = {sharing_mode::fair, {{"p", {sharing_mode::fair, 1, 0}}}};
  o.scarce_resource_wait = 0s;
  scheduler_harness h{o};
  h.add(executor_builder{}.cores(2).gpus(2));
  auto builder = pipe(4);
  const auto job = h.submit(builder.in_pool("p"));
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 0, 1));
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(0, 1));
  EXPECT_THAT(partitions(h, job, 0), IsEmpty());
  const auto other = h.submit(job_builder{}.in_pool("p").stage("other", 4));
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, other, 0), ElementsAre(0)) << "both parts of a pipeline count as one";
  h.succeed(attempt(h, job, 1, 1));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(2));
  EXPECT_THAT(partitions(h, other, 0), ElementsAre(0));
  h.drain();
  h.check_idle();
}

/// Else it would be every task of a pipeline that keeps pace, and each report is of all executors.
TEST_F(pipelines, tell_the_allocator_of_those_alone_that_found_no_room) {
  scheduler_harness h;
  maker(h);
  user(h);
  const auto job = h.submit(pipe(20));
  const auto before = h.loads.size();
  for (partition_index p = 0; p < 10; ++p) {
    h.succeed(attempt(h, job, 0, p));
    h.succeed(attempt(h, job, 1, p));
  }
  EXPECT_EQ(h.loads.size(), before);
  h.succeed(attempt(h, job, 0, 10));
  EXPECT_EQ(h.loads.size(), before);
  h.succeed(attempt(h, job, 0, 11)); // its reader has to wait for the one before
  EXPECT_EQ(h.loads.size(), before + 1);
  h.drain();
  h.check_idle();
}

TEST_F(pipelines, prefer_consumers_where_both_could_run) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1).gpus(1));
  const auto job = h.submit(pipe(3));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(0));
  h.succeed(attempt(h, job, 0, 0));
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(0));
  EXPECT_THAT(partitions(h, job, 0), IsEmpty());
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(1));
  static_cast<void>(e);
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  h.check_idle();
}

TEST_F(pipelines, pause_producers_that_are_too_far_ahead) {
  dag_scheduler::options o;
  o.max_unconsumed = 16; // two outputs of the fake executor's 8 bytes
  scheduler_harness h{o};
  maker(h);
  user(h);
  const auto job = h.submit(pipe(5));
  h.succeed(attempt(h, job, 0, 0));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(1));
  h.succeed(attempt(h, job, 0, 1));
  EXPECT_THAT(partitions(h, job, 0), IsEmpty()) << "16 bytes wait";
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(0));
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(2)) << "8 bytes wait";
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(pipelines, go_on_where_the_consumer_waits_for_another_producer) {
  dag_scheduler::options o;
  o.max_unconsumed = 1;
  scheduler_harness h{o};
  maker(h, 1);
  job_builder job{"two into one"};
  job.stage("left", 3).buckets(1).stage("right", 3).buckets(1);
  job.stage("both", 3).after(0, dependency_kind::one_to_one).after(1, dependency_kind::one_to_one);
  const auto id = h.submit(job);
  h.drain();
  ASSERT_TRUE(h.end_of(id)) << "a producer that pauses although its consumer cannot run waits for ever";
  EXPECT_FALSE(h.end_of(id)->failure);
  h.check_idle();
}

TEST_F(pipelines, make_a_partition_again_that_is_missing_and_fail_no_stage_attempt) {
  scheduler_harness h;
  maker(h);
  user(h);
  const auto job = h.submit(pipe(2));
  h.succeed(attempt(h, job, 0, 0));
  h.fetch_fail(attempt(h, job, 1, 0), h.stage_of(job, 0), 0);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(1));
  EXPECT_THAT(partitions(h, job, 1), IsEmpty()) << "its input is missing";
  EXPECT_THAT(h.events<events::stage_submitted>(), SizeIs(2)) << "each once";
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  EXPECT_EQ(h.end_of(job)->progress.stages[0].attempt, 0u);
  EXPECT_EQ(h.end_of(job)->progress.stages[1].attempt, 0u);
  h.check_idle();
}

TEST_F(pipelines, fail_where_a_partition_is_missing_again_and_again) {
  scheduler_harness h;
  maker(h);
  user(h);
  const auto job = h.submit(pipe(1));
  for (attempt_number n = 0; n < 4; ++n) {
    ASSERT_FALSE(h.end_of(job)) << n;
    h.succeed(attempt(h, job, 0, 0));
    h.fetch_fail(attempt(h, job, 1, 0), h.stage_of(job, 0), 0, n);
  }
  ASSERT_TRUE(h.end_of(job));
  EXPECT_THAT(h.end_of(job)->failure.message,
              AllOf(HasSubstr("was missing 4 times in a row"), HasSubstr("troupe.scheduler.max-stage-attempts"),
                    HasSubstr("stage 0 (make)")));
}

TEST_F(pipelines, do_not_believe_a_task_that_missed_what_it_was_not_to_read) {
  scheduler_harness h;
  maker(h);
  user(h);
  const auto job = h.submit(pipe(2));
  h.succeed(attempt(h, job, 0, 0));
  h.fetch_fail(attempt(h, job, 1, 0), h.stage_of(job, 0), 1);
  EXPECT_THAT(h.events<events::map_output_lost>(), IsEmpty());
  EXPECT_EQ(h.progress(job).stages[1].failures, 1u) << "it is to blame itself";
  h.drain();
  h.check_idle();
}

TEST_F(pipelines, lose_with_an_executor_what_was_not_read_and_no_more) {
  scheduler_harness h;
  const auto a = maker(h, 2);
  user(h);
  const auto job = h.submit(pipe(2));
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 0, 1));
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(1));
  h.lose(a);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(1)) << "the other was read";
  EXPECT_THAT(partitions(h, job, 1), ElementsAre(1)) << "it may have all of it already";
  h.succeed(attempt(h, job, 1, 1));
  ASSERT_TRUE(h.end_of(job)) << "nobody needs what was lost";
  h.check_idle();
}

TEST_F(pipelines, make_consumed_inputs_again_for_an_output_that_is_lost) {
  scheduler_harness h;
  const auto a = maker(h);
  const auto b = user(h);
  job_builder what{"three"};
  what.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  what.stage("first", 2).buckets(1);
  what.stage("second", 2).with(1).buckets(1).after(0, dependency_kind::one_to_one);
  what.stage("third", 2).after(1, dependency_kind::all);
  const auto job = h.submit(what);
  h.succeed(attempt(h, job, 0, 0));
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(h.last_orders.at(a).consumed, SizeIs(1));
  h.lose(b);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(2)) << "that of the second stage, and so that of the first";
  user(h);
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(pipelines, make_all_again_that_was_read_for_an_output_that_is_lost) {
  scheduler_harness h;
  maker(h);
  const auto b = user(h);
  job_builder what{"line"};
  what.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  what.stage("first", 1).buckets(1);
  what.stage("second", 1).buckets(1).after(0, dependency_kind::one_to_one);
  what.stage("third", 1).with(1).buckets(1).after(1, dependency_kind::one_to_one);
  what.stage("fourth", 1).after(2, dependency_kind::all);
  const auto job = h.submit(what);
  for (std::uint32_t stage = 0; stage < 3; ++stage) h.succeed(attempt(h, job, stage, 0));
  h.lose(b);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(3));
  user(h);
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

/// Commands whose files their executors keep for those of other hosts.
class pipelines_of_files : public pipelines {
protected:
  job_builder commands(std::uint32_t tasks) {
    job_builder job{"files"};
    job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
    job.stage("make", tasks).command();
    job.stage("use", tasks).with(1).command().after(0, dependency_kind::one_to_one);
    return job;
  }
  void keep(scheduler_harness& h, executor_id e, const fake_attempt& a) {
    h.deliver(h.executor(e).report({stored(a, 1000)}));
  }
};

TEST_F(pipelines_of_files, say_where_they_are_kept_and_drop_them_when_they_were_read) {
  scheduler_harness h;
  const auto a = maker(h);
  const auto b = user(h);
  const auto job = h.submit(commands(2));
  EXPECT_TRUE(h.last_orders.at(a).installs.at(0).hands_on);
  keep(h, a, attempt(h, job, 0, 0));
  ASSERT_THAT(h.last_orders.at(b).batches, SizeIs(1));
  EXPECT_FALSE(h.last_orders.at(b).installs.at(0).hands_on);
  const auto inputs = h.last_orders.at(b).batches[0].inputs;
  ASSERT_THAT(inputs, SizeIs(1));
  EXPECT_EQ(inputs[0].endpoints.at(inputs[0].endpoint_of_task.at(0)).executor, a);
  EXPECT_TRUE(h.scheduler.executors()[0].running > 0);
  h.succeed(attempt(h, job, 0, 1)); // on a file system that all share
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(h.last_orders.at(a).consumed, SizeIs(1));
  const auto& next = h.last_orders.at(b).batches.at(0).inputs.at(0);
  EXPECT_EQ(next.endpoint_of_task.at(0), partition_inputs::nowhere);
  h.succeed(attempt(h, job, 1, 1));
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(pipelines_of_files, make_again_what_was_kept_by_who_is_lost) {
  scheduler_harness h;
  const auto a = maker(h);
  maker(h);
  const auto job = h.submit(commands(1));
  const auto first = attempt(h, job, 0, 0);
  const auto on = h.executor_of(first);
  keep(h, on, first);
  h.lose(on);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(1));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(0));
  user(h);
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  static_cast<void>(a);
  h.check_idle();
}

TEST_F(pipelines_of_files, pause_by_what_is_kept) {
  dag_scheduler::options o;
  o.max_unconsumed = 1000;
  scheduler_harness h{o};
  const auto a = maker(h);
  user(h);
  const auto job = h.submit(commands(3));
  keep(h, a, attempt(h, job, 0, 0));
  EXPECT_THAT(partitions(h, job, 0), IsEmpty());
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(1));
  h.drain();
  h.check_idle();
}

TEST_F(pipelines_of_files, pause_by_what_lies_under_names_of_its_own) {
  dag_scheduler::options o;
  o.max_unconsumed = 1000;
  scheduler_harness h{o};
  const auto a = maker(h);
  user(h);
  const auto job = h.submit(commands(3));
  std::string entry;
  append_block_entry(entry, result_kind::files, 1000);
  h.deliver(h.executor(a).report({{attempt(h, job, 0, 0), task_status::succeeded, entry, {}}}));
  EXPECT_THAT(partitions(h, job, 0), IsEmpty());
  EXPECT_THAT(h.last_orders.at(h.executor_of(attempt(h, job, 1, 0))).batches.at(0).inputs, IsEmpty())
      << "it finds them";
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(partitions(h, job, 0), ElementsAre(1));
  EXPECT_TRUE(h.last_orders[a].consumed.empty()) << "they are the user's";
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(pipelines_of_files, do_not_count_what_nobody_reads) {
  scheduler_harness h;
  const auto e = h.add(executor_builder{}.cores(1));
  const auto job = h.submit(job_builder{}.stage("s", 1).command());
  std::string entry;
  append_block_entry(entry, result_kind::files, 1000);
  h.deliver(h.executor(e).report({{attempt(h, job, 0, 0), task_status::succeeded, entry, {}}}));
  EXPECT_FALSE(h.end_of(job)) << "no executor of ours says so: the attempt counts as failed";
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(pipelines, wait_for_gangs_as_a_whole) {
  scheduler_harness h;
  maker(h);
  h.add(executor_builder{}.cores(2).gpus(2));
  job_builder what{"gang"};
  what.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  what.stage("make", 2).buckets(1);
  what.stage("use", 2).with(1).barrier().after(0, dependency_kind::one_to_one);
  const auto job = h.submit(what);
  h.succeed(attempt(h, job, 0, 0));
  EXPECT_THAT(partitions(h, job, 1), IsEmpty());
  h.succeed(attempt(h, job, 0, 1));
  EXPECT_THAT(partitions(h, job, 1), SizeIs(2));
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(pipelines, say_what_is_waited_for) {
  dag_scheduler::options o;
  o.max_unconsumed = 8;
  scheduler_harness h{o};
  maker(h);
  const auto job = h.submit(pipe(3));
  h.succeed(attempt(h, job, 0, 0));
  EXPECT_THAT(partitions(h, job, 0), IsEmpty());
  h.tick();
  const auto explained = h.scheduler.explain(job, h.now);
  ASSERT_TRUE(explained);
  EXPECT_THAT(explained->stages[0].reason,
              AllOf(HasSubstr("pauses"), HasSubstr("8 bytes"), HasSubstr("troupe.pipeline.max-unconsumed")));
  user(h);
  h.succeed(attempt(h, job, 1, 0));
  EXPECT_THAT(h.scheduler.explain(job, h.now)->stages[1].reason, HasSubstr("stage 0 (make) to make"));
  h.drain();
  h.check_idle();
}

} // namespace
