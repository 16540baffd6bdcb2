// Datasets that are kept for later jobs: what former jobs have left is not made again.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace {

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class kept_datasets : public ::testing::Test {
protected:
  static constexpr broadcast_id words{7, 1};

  /// "read" makes what "keep" groups, and "use" takes it task by task.
  static job_builder grouped(std::uint32_t tasks, broadcast_id dataset = words) {
    job_builder job{"grouped"};
    job.stage("read", 2).buckets(tasks).stage("keep", tasks).reads(0).buckets(1).keeps(dataset);
    job.stage("use", tasks).after(1, dependency_kind::one_to_one);
    return job;
  }
  /// A producer on gpus, "keep" and "use", connected task by task.
  static job_builder piped(std::uint32_t tasks) {
    job_builder job{"piped"};
    job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
    job.stage("make", tasks).with(1).buckets(1);
    job.stage("keep", tasks).after(0, dependency_kind::one_to_one).buckets(1).keeps(words);
    job.stage("use", tasks).after(1, dependency_kind::one_to_one);
    return job;
  }
  executor_id worker(std::int64_t cores = 1, const std::string& host = "a") {
    return h.add(executor_builder{}.cores(cores).host(host));
  }
  std::vector<partition_index> running(job_id job, std::uint32_t stage) {
    std::vector<partition_index> all;
    for (const auto& a : h.attempts_of(job, stage)) all.push_back(a.partition);
    return all;
  }
  job_id run(const job_builder& what) {
    const auto job = h.submit(what);
    h.drain();
    EXPECT_TRUE(h.end_of(job) && !h.end_of(job)->failure);
    return job;
  }
  std::vector<std::string> submitted(job_id job) {
    std::vector<std::string> names;
    for (const auto& e : h.events<events::stage_submitted>())
      if (e.job == job) names.push_back(e.name);
    return names;
  }
  /// Where the task reads, as a kept partition or as an output.
  std::vector<fake_input> inputs(const fake_attempt& a) { return h.executor(h.executor_of(a)).inputs_of(a); }

  scheduler_harness h;
};

TEST_F(kept_datasets, are_not_made_again_by_later_jobs) {
  const auto e = worker();
  const auto first = run(grouped(3));
  EXPECT_THAT(submitted(first), ElementsAre("read", "keep", "use"));
  EXPECT_THAT(h.executor(e).kept(), SizeIs(3));
  const auto second = h.submit(grouped(3));
  EXPECT_THAT(submitted(second), ElementsAre("use"));
  const auto a = h.attempts_of(second, 2).front();
  EXPECT_THAT(inputs(a), ElementsAre(fake_input{h.stage_of(second, 1), 0, partition_inputs::kept, e}));
  h.drain();
  ASSERT_TRUE(h.end_of(second));
  EXPECT_FALSE(h.end_of(second)->failure);
  h.check_idle();
  EXPECT_THAT(h.executor(e).kept(), SizeIs(3)) << "the job has ended, what is kept has not";
}

TEST_F(kept_datasets, say_nothing_of_stages_that_need_not_run) {
  worker();
  run(grouped(2));
  const auto told = h.events<events::stage_completed>().size();
  run(grouped(2));
  EXPECT_EQ(h.events<events::stage_completed>().size(), told + 1);
}

TEST_F(kept_datasets, of_others_are_made) {
  worker();
  run(grouped(2));
  EXPECT_THAT(submitted(run(grouped(2, {7, 2}))), SizeIs(3));
  EXPECT_THAT(submitted(run(grouped(2, {8, 1}))), SizeIs(3));
}

TEST_F(kept_datasets, are_read_as_outputs_by_the_job_that_makes_them) {
  const auto e = worker();
  const auto job = h.submit(grouped(1));
  while (h.attempts_of(job, 2).empty()) h.succeed(h.attempts().front());
  EXPECT_THAT(inputs(h.attempts_of(job, 2).front()), ElementsAre(fake_input{h.stage_of(job, 1), 0, 0, e}))
      << "as long as it is one it cannot be evicted";
  h.succeed(h.attempts().front());
  ASSERT_TRUE(h.end_of(job));
  h.check_idle();
}

TEST_F(kept_datasets, that_are_partly_there_are_made_up) {
  const auto a = worker(1, "a");
  const auto b = worker(1, "b");
  run(grouped(4));
  ASSERT_THAT(h.executor(a).kept(), SizeIs(2));
  std::vector<partition_index> gone;
  for (const auto& [cache, p] : h.executor(b).kept()) gone.push_back(p);
  h.lose(b);
  const auto job = h.submit(grouped(4));
  EXPECT_THAT(submitted(job), ElementsAre("read", "use")) << "the groups of the others are there";
  while (h.attempts_of(job, 1).empty()) h.succeed(h.attempts().front());
  EXPECT_THAT(running(job, 1), ElementsAre(gone[0]));
  h.drain();
  EXPECT_FALSE(h.end_of(job)->failure);
  EXPECT_THAT(h.executor(a).kept(), SizeIs(4));
  h.check_idle();
}

TEST_F(kept_datasets, spare_what_only_they_would_read_task_by_task) {
  worker();
  h.add(executor_builder{}.cores(1).gpus(1));
  run(piped(3));
  const auto second = run(piped(3));
  EXPECT_THAT(submitted(second), ElementsAre("use"));
  h.check_idle();
}

TEST_F(kept_datasets, that_lack_one_partition_have_just_that_made_by_those_that_feed_them) {
  const auto e = worker();
  const auto g = h.add(executor_builder{}.cores(1).gpus(1));
  run(piped(3));
  const auto holder = h.executor(e).kept().empty() ? g : e;
  const auto [cache, p] = *h.executor(holder).kept().begin();
  h.executor(holder).evict(cache, p);
  h.deliver(h.executor(holder).report({}));
  const auto job = h.submit(piped(3));
  EXPECT_THAT(running(job, 0), ElementsAre(p));
  h.drain();
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(kept_datasets, are_made_again_where_their_executor_is_lost_before_they_were_read) {
  const auto e = worker();
  run(grouped(2));
  const auto job = h.submit(grouped(2));
  ASSERT_THAT(running(job, 2), ElementsAre(0));
  h.lose(e);
  worker();
  EXPECT_THAT(running(job, 2), IsEmpty());
  EXPECT_THAT(submitted(job), ElementsAre("use", "read"));
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(kept_datasets, are_made_again_where_they_had_to_make_room) {
  const auto e = worker();
  run(grouped(2));
  const auto job = h.submit(grouped(2));
  ASSERT_THAT(running(job, 2), ElementsAre(0));
  const auto cache = h.executor(e).kept().begin()->first;
  h.executor(e).evict(cache, 1);
  h.succeed(h.attempts().front());
  EXPECT_THAT(running(job, 0), SizeIs(1)) << "partition 1 is wanted";
  h.drain();
  EXPECT_FALSE(h.end_of(job)->failure);
  EXPECT_THAT(h.executor(e).kept(), SizeIs(2)) << "and kept again";
  h.check_idle();
}

TEST_F(kept_datasets, that_were_read_are_not_made_again) {
  const auto e = worker();
  run(grouped(2));
  const auto job = h.submit(grouped(2));
  h.succeed(h.attempts_of(job, 2).front());
  const auto cache = h.executor(e).kept().begin()->first;
  h.executor(e).evict(cache, 0);
  h.deliver(h.executor(e).report({}));
  EXPECT_THAT(running(job, 2), ElementsAre(1)) << "it goes on with the other";
  h.succeed(h.attempts().front());
  ASSERT_TRUE(h.end_of(job));
  EXPECT_THAT(submitted(job), ElementsAre("use"));
  h.check_idle();
}

TEST_F(kept_datasets, that_a_reader_did_not_find_are_made_again) {
  const auto e = worker();
  run(grouped(1));
  const auto job = h.submit(grouped(1));
  h.fetch_fail(h.attempts_of(job, 2).front(), h.stage_of(job, 1), 0, partition_inputs::kept);
  EXPECT_THAT(running(job, 0), SizeIs(1));
  static_cast<void>(e);
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(kept_datasets, go_when_their_program_needs_them_no_longer) {
  const auto e = worker();
  run(grouped(2));
  run(grouped(2, {7, 2}));
  ASSERT_THAT(h.executor(e).kept(), SizeIs(4));
  h.withdraw(words);
  EXPECT_THAT(h.executor(e).kept(), SizeIs(2));
  EXPECT_THAT(submitted(run(grouped(2))), SizeIs(3)) << "whoever names it again begins anew";
  h.withdraw({7, 0});
  EXPECT_THAT(h.executor(e).kept(), IsEmpty()) << "the program has ended";
}

TEST_F(kept_datasets, that_go_while_a_job_reads_them_are_made_again_for_it) {
  const auto e = worker();
  run(grouped(2));
  const auto job = h.submit(grouped(2));
  h.withdraw(words);
  EXPECT_THAT(h.executor(e).kept(), IsEmpty());
  while (h.progress(job).stages[1].done < 2) h.succeed(h.attempts().front());
  ASSERT_FALSE(h.end_of(job));
  EXPECT_THAT(h.executor(e).kept(), IsEmpty()) << "it was told to drop what it kept after that, too";
  h.drain();
  ASSERT_TRUE(h.end_of(job));
  EXPECT_FALSE(h.end_of(job)->failure);
  h.check_idle();
}

TEST_F(kept_datasets, that_go_before_their_job_leave_nothing_of_what_was_under_way) {
  const auto e = worker();
  const auto job = h.submit(grouped(1));
  while (h.attempts_of(job, 1).empty()) h.succeed(h.attempts().front());
  h.withdraw(words);
  const auto late = h.executor(e).report({h.executor(e).success(h.attempts().front())});
  ASSERT_THAT(h.executor(e).kept(), SizeIs(1));
  h.cancel(job);
  EXPECT_THAT(h.executor(e).kept(), IsEmpty());
  h.deliver(late);
  h.check_idle();
}

TEST_F(kept_datasets, that_are_read_for_one_another_are_used_together) {
  const auto e = worker();
  job_builder chain{"chain"};
  chain.stage("make", 2).buckets(1).keeps(words);
  chain.stage("keep", 2).after(0, dependency_kind::one_to_one).buckets(1).keeps({7, 2});
  chain.stage("use", 2).after(1, dependency_kind::one_to_one);
  run(chain);
  const auto job = h.submit(chain);
  EXPECT_THAT(submitted(job), ElementsAre("use"));
  h.executor(e).evict(h.executor(e).kept().begin()->first, 0);
  h.deliver(h.executor(e).report({}));
  EXPECT_THAT(running(job, 0), IsEmpty()) << "nobody reads the first";
  h.drain();
  EXPECT_THAT(submitted(job), ElementsAre("use"));
  h.check_idle();
}

TEST_F(kept_datasets, may_go_before_their_job_has_begun) {
  const auto e = worker();
  run(grouped(2));
  h.answer = {};
  auto job = grouped(2);
  job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  job.stage("more", 1).with(1);
  const auto id = h.submit(job);
  ASSERT_EQ(h.progress(id).state, job_state::accepted) << "whether there are gpus is not known yet";
  const auto cache = h.executor(e).kept().begin()->first;
  h.executor(e).evict(cache, 1);
  h.deliver(h.executor(e).report({}));
  EXPECT_EQ(h.progress(id).state, job_state::accepted);
  EXPECT_THAT(h.attempts(), IsEmpty());
  h.add(executor_builder{}.gpus(1));
  h.tick(10s);
  h.drain();
  ASSERT_TRUE(h.end_of(id));
  EXPECT_FALSE(h.end_of(id)->failure);
}

/// Done of ten tasks whose outputs of 8 bytes are to be kept, before anybody can read them; ten bytes may wait.
std::uint32_t made_before_it_is_read(bool room) {
  dag_scheduler::options options;
  options.max_unconsumed = 10;
  scheduler_harness h{options};
  const auto e = h.add(executor_builder{}.cores(1));
  if (!room) h.executor(e).keep_nothing_more();
  job_builder job{"ahead"};
  job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  job.stage("keep", 10).buckets(1).keeps({7, 1});
  job.stage("use", 10).with(1).after(0, dependency_kind::one_to_one);
  const auto id = h.submit(job);
  h.tick(10s);
  h.drain();
  return h.progress(id).stages[0].done;
}

TEST_F(kept_datasets, may_be_made_ahead_as_far_as_they_are_kept) {
  EXPECT_EQ(made_before_it_is_read(true), 10u) << "they stay in any case";
  EXPECT_LT(made_before_it_is_read(false), 4u);
}

TEST_F(kept_datasets, need_no_executors_of_those_that_need_not_run) {
  h.add(executor_builder{}.cores(1).custom("disk", 1));
  const auto g = h.add(executor_builder{}.cores(1).gpus(1));
  job_builder job{"of two kinds"};
  job.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}})).profile(make_profile({{"disk", 1}}, {{"disk", "1"}}));
  job.stage("make", 2).with(1).buckets(1);
  job.stage("keep", 2).with(2).after(0, dependency_kind::one_to_one).buckets(1).keeps(words);
  job.stage("use", 2).after(1, dependency_kind::one_to_one);
  run(job);
  h.answer = [](const executor_shape&) {
    feasibility never;
    never.fixed = true;
    never.feasible = false;
    return never;
  };
  h.lose(g);
  const auto other = h.submit(job_builder{}.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}})).stage("s", 1).with(1));
  ASSERT_TRUE(h.end_of(other) && h.end_of(other)->failure) << "that there are none any more is known";
  EXPECT_THAT(submitted(run(job)), ElementsAre("use"));
}

TEST_F(kept_datasets, that_are_made_again_are_read_as_what_they_are) {
  const auto a = worker(1, "a");
  run(grouped(1));
  auto job = grouped(1);
  job.buckets(1).stage("last", 1).reads(2);
  const auto id = h.submit(job);
  h.succeed(h.attempts_of(id, 2).front());
  const auto b = worker(1, "b");
  h.executor(b).keep_nothing_more();
  h.lose(a);
  while (h.attempts_of(id, 2).empty()) h.succeed(h.attempts().front());
  EXPECT_THAT(inputs(h.attempts_of(id, 2).front()), ElementsAre(fake_input{h.stage_of(id, 1), 0, 1, b}));
  h.drain();
  EXPECT_FALSE(h.end_of(id)->failure);
}

TEST_F(kept_datasets, need_not_be_kept_where_there_is_no_room) {
  const auto e = worker();
  h.executor(e).keep_nothing_more();
  run(grouped(2));
  EXPECT_THAT(submitted(run(grouped(2))), SizeIs(3));
  h.check_idle();
}

TEST_F(kept_datasets, are_read_where_they_are) {
  const auto a = worker(2, "a");
  const auto b = worker(2, "b");
  run(grouped(4));
  const auto kept_by_b = h.executor(b).kept();
  ASSERT_THAT(h.executor(a).kept(), SizeIs(2));
  ASSERT_THAT(kept_by_b, SizeIs(2));
  const auto job = h.submit(grouped(4));
  for (const auto& at : h.attempts_of(job, 2))
    EXPECT_EQ(inputs(at).front().executor, h.executor_of(at)) << "partition " << at.partition;
  EXPECT_THAT(h.attempts_of(job, 2), SizeIs(4));
  h.drain();
  h.check_idle();
}

TEST_F(kept_datasets, are_waited_for_partition_by_partition) {
  const auto a = worker(1, "a");
  const auto b = worker(1, "b");
  const auto first = h.submit(grouped(4));
  while (h.attempts_of(first, 1).empty()) h.succeed(h.attempts().front());
  while (!h.attempts(b).empty()) h.succeed(h.attempts(b).front()); // a's first one takes as long as all of b's
  h.drain();
  ASSERT_THAT(h.executor(a).kept(), SizeIs(1));
  const auto second = h.submit(grouped(4));
  h.succeed(h.attempts(a).front());
  EXPECT_THAT(h.attempts(a), IsEmpty()) << "the others are near b";
  h.drain();
  EXPECT_FALSE(h.end_of(second)->failure);
}

TEST_F(kept_datasets, are_read_elsewhere_after_a_while) {
  const auto a = worker(1, "a");
  run(grouped(2));
  const auto b = worker(1, "b");
  const auto job = h.submit(grouped(2));
  EXPECT_THAT(h.attempts(a), SizeIs(1));
  EXPECT_THAT(h.attempts(b), IsEmpty()) << "it may be near soon";
  h.tick(10s);
  EXPECT_THAT(h.attempts(b), SizeIs(1));
  h.drain();
  EXPECT_FALSE(h.end_of(job)->failure);
}

TEST_F(kept_datasets, keep_their_executor_and_say_so) {
  const auto e = worker();
  run(grouped(1));
  h.tick();
  ASSERT_FALSE(h.loads.empty());
  ASSERT_THAT(h.loads.back().idle, SizeIs(1));
  EXPECT_TRUE(h.loads.back().idle.front().keeping);
  EXPECT_FALSE(h.loads.back().idle.front().serving) << "no job needs it";
  h.withdraw(words);
  h.tick();
  EXPECT_FALSE(h.loads.back().idle.front().keeping);
  static_cast<void>(e);
}

TEST_F(kept_datasets, of_two_jobs_at_once_are_kept_once) {
  const auto a = worker(1, "a");
  const auto b = worker(1, "b");
  const auto first = h.submit(grouped(1));
  const auto second = h.submit(grouped(1));
  h.drain();
  EXPECT_FALSE(h.end_of(first)->failure);
  EXPECT_FALSE(h.end_of(second)->failure);
  EXPECT_EQ(h.executor(a).kept().size() + h.executor(b).kept().size(), 1u);
  EXPECT_THAT(submitted(run(grouped(1))), ElementsAre("use"));
  h.withdraw(words);
  EXPECT_THAT(h.executor(a).kept(), IsEmpty());
  EXPECT_THAT(h.executor(b).kept(), IsEmpty());
  h.check_idle();
}

TEST_F(kept_datasets, of_two_attempts_at_once_are_kept_once) {
  dag_scheduler::options options;
  options.speculation.enabled = true;
  scheduler_harness two{options};
  const auto a = two.add(executor_builder{}.cores(2).host("a"));
  const auto b = two.add(executor_builder{}.cores(2).host("b"));
  job_builder kept{"kept"};
  kept.stage("keep", 4).buckets(1).keeps(words).stage("use", 1).reads(0);
  const auto job = two.submit(kept);
  std::vector<fake_attempt> all = two.attempts();
  const auto last = all.back();
  all.pop_back();
  for (const auto& one : all) two.succeed(one, {}, 1s);
  two.tick(10s);
  ASSERT_THAT(two.attempts(), SizeIs(2)) << "a second attempt of " << last.partition;
  const auto attempts = two.attempts();
  auto& slower = two.executor(two.executor_of(attempts[1]));
  const auto late = slower.report({slower.success(attempts[1])}); // under way when the other one is accepted
  two.succeed(attempts[0], {}, 1s);
  two.deliver(late);
  std::size_t copies = 0;
  for (const auto e : {a, b})
    for (const auto& [cache, partition] : two.executor(e).kept()) copies += partition == last.partition;
  EXPECT_EQ(copies, 1u);
  two.drain();
  ASSERT_TRUE(two.end_of(job));
  two.check_idle();
}

TEST_F(kept_datasets, of_who_drains_are_made_elsewhere) {
  const auto a = worker();
  run(grouped(1));
  EXPECT_TRUE(h.release(a).granted);
  worker();
  EXPECT_THAT(submitted(run(grouped(1))), SizeIs(3));
  EXPECT_THAT(submitted(run(grouped(1))), ElementsAre("use")) << "and kept there, although the other is still here";
}

TEST_F(kept_datasets, of_who_is_not_connected_are_made_elsewhere) {
  const auto a = worker();
  run(grouped(1));
  h.lose_connection(a);
  worker();
  EXPECT_THAT(submitted(run(grouped(1))), SizeIs(3));
  h.lose(a);
  EXPECT_THAT(submitted(run(grouped(1))), ElementsAre("use"));
}

} // namespace
