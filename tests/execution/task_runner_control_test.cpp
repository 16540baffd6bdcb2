#include <atomic>
#include <map>
#include <set>
#include <unistd.h>

#include "process_fixture.hpp"
#include "runner_fixture.hpp"

namespace troupe::testing_execution {
namespace {

/// What the tasks of one test meet; set by the test before they start.
struct shared_world {
  gate entered;  ///< opened by the task with partition 0 when it starts
  gate released; ///< that task waits here
  std::atomic<int> started = 0;
};
std::unique_ptr<shared_world> world;

std::string noop(task_context&, std::string_view, std::string_view) { return {}; }

std::string thread_id(task_context&, std::string_view, std::string_view) { return std::to_string(::gettid()); }

std::string first_waits(task_context& context, std::string_view, std::string_view) {
  ++world->started;
  if (context.partition == 0) {
    world->entered.open();
    if (!world->released.wait()) throw std::runtime_error("nobody released the task");
  }
  return "done";
}

/// Partition 0 takes a while; partition 1 waits.
std::string slow_then_waits(task_context& context, std::string_view c, std::string_view a) {
  if (context.partition == 1) {
    world->entered.open();
    return world->released.wait() ? "done" : throw std::runtime_error("nobody released the task");
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{2};
  while (std::chrono::steady_clock::now() < end) {}
  return std::string{c} + std::string{a};
}

std::string until_cancelled(task_context& context, std::string_view, std::string_view) {
  world->entered.open();
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!context.cancelled() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return context.cancelled() ? "cancelled" : "never";
}

std::string stores_until_cancelled(task_context& context, std::string_view c, std::string_view a) {
  until_cancelled(context, c, a);
  context.set_map_output({"left behind"});
  return {};
}

class runner_control : public runner_test {
protected:
  void SetUp() override { world = std::make_unique<shared_world>(); }
  void TearDown() override {
    runner.reset();
    world.reset();
  }
  std::map<partition_index, task_status> statuses() {
    std::map<partition_index, task_status> all;
    for (const auto& b : log.batches()) {
      for (std::uint32_t i = 0; i < b->count; ++i) EXPECT_TRUE(all.emplace(b->partition(i), b->status(i)).second);
    }
    return all;
  }
};

TEST_F(runner_control, no_op_outcomes_come_in_full_ranges) {
  auto options = base_options();
  options.flush_tasks = 64;
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&noop>>(1, 100'000));
  for (partition_index p = 0; p < 100'000; p += 1000) r.run(range(1, 1, p, 1000));
  ASSERT_TRUE(log.wait_for(100'000));
  partition_index expected = 0;
  for (const auto& b : log.batches()) {
    EXPECT_TRUE(b->partitions.empty());
    EXPECT_TRUE(b->statuses.empty());
    EXPECT_LE(b->count, 64u);
    EXPECT_EQ(b->first, expected);
    expected += b->count;
  }
  EXPECT_EQ(expected, 100'000u);
  EXPECT_EQ(r.current_load().queued, 0u);
}

TEST_F(runner_control, a_finished_task_does_not_wait_for_the_next_one_once_flushed) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 3));
  auto batch = range(1, 1, 0, 3);
  batch->partitions = {1, 0, 2}; // 1 ends at once, 0 waits
  r.run(batch);
  ASSERT_TRUE(world->entered.wait());
  EXPECT_EQ(r.current_load().running, 1u);
  EXPECT_EQ(r.current_load().queued, 1u);
  ASSERT_EQ(r.running().size(), 1u);
  EXPECT_EQ(r.running()[0], (running_attempt{{1}, 0, 0, {1}}));
  r.flush();
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.batches()[0]->partition(0), 1u);
  world->released.open();
  ASSERT_TRUE(log.wait_for(3));
}

TEST_F(runner_control, an_outcome_older_than_a_moment_goes_out_before_the_next_task) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&slow_then_waits>>(1, 2));
  r.run(range(1, 1, 0, 2));
  EXPECT_TRUE(world->entered.wait());
  EXPECT_TRUE(log.wait_for(1)) << "it waits for the second task although nobody flushes";
  world->released.open();
  EXPECT_TRUE(log.wait_for(2));
}

TEST_F(runner_control, killed_queued_attempts_are_reported_and_never_start) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 10));
  r.run(range(1, 1, 0, 4));
  auto listed = range(1, 1, 0, 2);
  listed->partitions = {9, 8};
  listed->attempts = {5, 6};
  r.run(listed);
  ASSERT_TRUE(world->entered.wait());
  r.kill({{1}, 2, 0}); // of the batch that is being run
  r.kill({{1}, 8, 6}); // of a batch behind it
  r.kill({{1}, 8, 6}); // repeated
  r.kill({{1}, 9, 4}); // another attempt
  r.kill({{2}, 1, 0}); // another stage
  r.kill({{1}, 77, 0});
  EXPECT_EQ(r.current_load().queued, 3u);
  r.flush();
  ASSERT_TRUE(log.wait_for(2)) << "queued attempts are reported although a task runs";
  world->released.open();
  ASSERT_TRUE(log.wait_for(6));
  using s = task_status;
  EXPECT_EQ(
      statuses(),
      (std::map<partition_index, s>{
          {0, s::succeeded}, {1, s::succeeded}, {2, s::killed}, {3, s::succeeded}, {8, s::killed}, {9, s::succeeded}}));
  EXPECT_EQ(world->started, 4);
  EXPECT_EQ(r.current_load().queued, 0u);
}

TEST_F(runner_control, a_recalled_lease_gives_back_what_has_not_begun_and_runs_what_has) {
  auto options = base_options();
  options.flush_tasks = 2;
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 20));
  r.run(range(1, 1, 0, 4));
  auto listed = range(1, 1, 0, 2);
  listed->partitions = {9, 8};
  listed->attempts = {5, 6};
  r.run(listed);
  ASSERT_TRUE(world->entered.wait());
  r.kill({{1}, 2, 0});
  r.kill({{1}, 8, 6});
  r.give_back({1});
  r.give_back({1}); // there is nothing left
  r.give_back({2}); // not open
  r.kill({{1}, 3, 0});
  EXPECT_EQ(r.current_load().queued, 0u);
  r.flush();
  ASSERT_TRUE(log.wait_for(5)) << "they are reported although a task runs";
  r.run(range(1, 1, 10, 1));
  world->released.open();
  ASSERT_TRUE(log.wait_for(7));
  using s = task_status;
  EXPECT_EQ(statuses(), (std::map<partition_index, s>{{0, s::succeeded},
                                                      {1, s::given_back},
                                                      {2, s::killed},
                                                      {3, s::given_back},
                                                      {8, s::killed},
                                                      {9, s::given_back},
                                                      {10, s::succeeded}}));
  EXPECT_EQ(world->started, 2);
  EXPECT_EQ(r.current_load().queued, 0u);
}

TEST_F(runner_control, begins_nothing_after_its_time) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 10));
  r.run(range(1, 1, 0, 4));
  r.run(range(1, 1, 4, 2));
  ASSERT_TRUE(world->entered.wait());
  r.may_begin_until({});
  world->released.open();
  ASSERT_TRUE(eventually([&] { return r.current_load().running == 0; })) << "what runs, runs on";
  EXPECT_EQ(r.current_load().queued, 5u);
  EXPECT_EQ(world->started, 1);
  // It still does what it is told.
  r.kill({{1}, 2, 0});
  r.flush();
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_EQ(statuses().at(2), task_status::killed);
  r.close_lease({1});
  r.may_begin_until(time_point::max());
  ASSERT_TRUE(log.wait_for(6));
  EXPECT_EQ(world->started, 5);
}

TEST_F(runner_control, gives_back_and_forgets_what_it_may_not_begin) {
  auto& r = start();
  r.open_lease(grant(1));
  r.open_lease(grant(2));
  r.install(native_stage<task<&first_waits>>(1, 10));
  r.install(native_stage<task<&first_waits>>(2, 10));
  r.may_begin_until({});
  r.run(range(1, 1, 1, 3));
  r.run(range(2, 2, 5, 2));
  r.give_back({1});
  r.flush();
  ASSERT_TRUE(log.wait_for(3));
  for (const auto& [partition, status] : statuses()) EXPECT_EQ(status, task_status::given_back);
  r.remove({2});
  r.flush();
  ASSERT_TRUE(log.wait_for(5));
  r.may_begin_until(time_point::max());
  EXPECT_EQ(world->started, 0);
}

TEST_F(runner_control, forgets_a_stage_whose_time_has_passed_in_the_middle_of_a_batch) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 10));
  r.run(range(1, 1, 0, 4));
  ASSERT_TRUE(world->entered.wait());
  r.may_begin_until({});
  world->released.open();
  ASSERT_TRUE(eventually([&] { return r.current_load().running == 0; }));
  r.remove({1});
  ASSERT_TRUE(eventually([&] {
    r.flush();
    return statuses().size() == 4;
  }));
  EXPECT_EQ(statuses().at(3), task_status::killed);
  EXPECT_EQ(world->started, 1);
}

TEST_F(runner_control, a_killed_running_task_sees_it_and_is_reported_as_killed) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&until_cancelled>>(1, 2));
  r.install(native_stage<task<&noop>>(2, 2));
  r.run(range(1, 1, 1, 1));
  ASSERT_TRUE(world->entered.wait());
  r.run(range(2, 1, 0, 1));
  r.kill({{1}, 1, 0});
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_EQ(log.batches()[0]->status(0), task_status::killed);
  EXPECT_EQ(log.batches()[0]->failures.size(), 1u);
  EXPECT_EQ(log.batches()[1]->status(0), task_status::succeeded) << "the next task is not affected";
}

TEST_F(runner_control, a_killed_map_task_leaves_no_block) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&stores_until_cancelled>>(1, 1, 1));
  r.run(range(1, 1, 0, 1));
  ASSERT_TRUE(world->entered.wait());
  r.kill({{1}, 0, 0});
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.batches()[0]->status(0), task_status::killed);
  EXPECT_EQ(blocks.bytes(), 0u);
}

TEST_F(runner_control, a_killed_task_of_a_kept_dataset_says_what_it_took_the_place_of) {
  ASSERT_TRUE(blocks.put(cached_key({5}, 0), block_content::of("of an earlier job", {})));
  auto& r = start();
  r.open_lease(grant(1));
  auto stage = native_stage<task<&stores_until_cancelled>>(1, 1, 1);
  stage.keeps = cache_id{5};
  stage.level = storage_level::memory_and_disk;
  r.install(stage);
  r.run(range(1, 1, 0, 1));
  ASSERT_TRUE(world->entered.wait());
  r.kill({{1}, 0, 0});
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_EQ(log.batches()[0]->status(0), task_status::killed);
  EXPECT_EQ(blocks.take_evicted(), std::vector{cached_key({5}, 0)});
  EXPECT_EQ(blocks.bytes(), 0u);
}

TEST_F(runner_control, every_attempt_of_a_removed_stage_is_reported_once_as_killed) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&stores_until_cancelled>>(1, 10, 1));
  r.install(native_stage<task<&noop>>(2, 10));
  r.run(range(1, 1, 0, 5));
  r.run(range(2, 1, 0, 2));
  r.run(range(1, 1, 5, 5));
  ASSERT_TRUE(world->entered.wait());
  r.kill({{1}, 3, 0});
  r.kill({{1}, 7, 0});
  r.remove({1});
  r.run(range(2, 1, 2, 1));
  ASSERT_TRUE(log.wait_for(13));
  std::vector<int> killed(10);
  for (const auto& b : log.batches())
    for (std::uint32_t i = 0; i < b->count; ++i) {
      if (b->stage == stage_id{2}) {
        EXPECT_EQ(b->status(i), task_status::succeeded);
        continue;
      }
      EXPECT_EQ(b->status(i), task_status::killed);
      ++killed[b->partition(i)];
    }
  EXPECT_EQ(killed, std::vector<int>(10, 1));
  EXPECT_EQ(blocks.bytes(), 0u);
  EXPECT_EQ(r.current_load().queued, 0u);
  EXPECT_EQ(r.current_load().running, 0u);
  EXPECT_THROW(r.run(range(1, 1, 0, 1)), std::logic_error);
}

TEST_F(runner_control, a_new_stage_attempt_keeps_the_program) {
  auto& r = start();
  r.open_lease(grant(1));
  auto stage = native_stage<task<&noop>>(1, 1);
  r.install(stage);
  stage.stage_attempt = 1;
  stage.program = nullptr;
  r.install(stage);
  auto batch = range(1, 1, 0, 1);
  batch->stage_attempt = 1;
  r.run(batch);
  const auto outcome = only_outcome();
  EXPECT_EQ(outcome->status(0), task_status::succeeded);
  EXPECT_EQ(outcome->stage_attempt, 1u);
}

TEST_F(runner_control, batches_outside_a_lease_or_stage_are_refused) {
  auto& r = start();
  r.install(native_stage<task<&noop>>(1, 1));
  EXPECT_THROW(r.run(range(1, 1, 0, 1)), std::logic_error);
  r.open_lease(grant(1));
  EXPECT_THROW(r.run(range(9, 1, 0, 1)), std::logic_error);
  auto crooked = range(1, 1, 0, 2);
  crooked->partitions = {1};
  EXPECT_THROW(r.run(crooked), std::logic_error);
}

TEST_F(runner_control, a_closed_lease_finishes_its_queue_and_its_thread_serves_the_next) {
  auto& r = start();
  r.install(native_stage<task<&thread_id>>(1, 1'000));
  std::set<std::uint64_t> leases;
  std::set<std::string_view> threads;
  std::vector<std::shared_ptr<const outcome_batch>> batches;
  for (std::uint64_t lease = 1; lease <= 50; ++lease) {
    r.open_lease(grant(lease));
    r.run(range(1, lease, 0, 10));
    r.close_lease({lease});
    ASSERT_TRUE(log.wait_for(lease * 10));
    EXPECT_THROW(r.run(range(1, lease, 0, 1)), std::logic_error);
  }
  batches = log.batches();
  for (const auto& b : batches) {
    leases.insert(b->lease.value);
    for (std::uint32_t i = 0; i < b->count; ++i) threads.insert(b->results[i]);
  }
  EXPECT_EQ(leases.size(), 50u);
  EXPECT_LT(threads.size(), 50u) << "no thread served a second lease";
}

TEST_F(runner_control, shutdown_drops_the_queue_and_says_when_a_task_does_not_end) {
  auto options = base_options();
  options.kill_grace = std::chrono::milliseconds{1};
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 10));
  r.run(range(1, 1, 0, 10));
  ASSERT_TRUE(world->entered.wait());
  EXPECT_FALSE(r.shutdown(std::chrono::milliseconds{1}));
  world->released.open();
  EXPECT_TRUE(r.shutdown(deadline));
  EXPECT_EQ(world->started, 1);
  EXPECT_EQ(log.tasks(), 0u);
}

TEST_F(runner_control, shutdown_does_not_wait_the_kill_grace_for_a_task_that_does_not_end) {
  auto options = base_options();
  options.kill_grace = deadline + deadline; // the task gives up before
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 1));
  r.run(range(1, 1, 0, 1));
  ASSERT_TRUE(world->entered.wait());
  EXPECT_FALSE(r.shutdown(std::chrono::milliseconds{1}));
  world->released.open();
  EXPECT_TRUE(r.shutdown(deadline));
}

TEST_F(runner_control, a_task_that_ignores_its_cancellation_is_overdue_after_the_grace_and_that_is_told_once) {
  using namespace std::chrono_literals;
  auto options = base_options();
  options.kill_grace = 10s;
  auto& r = start(options);
  r.open_lease(grant(1));
  auto stage = native_stage<task<&first_waits>>(1, 2);
  stage.job = {9};
  r.install(stage);
  r.run(range(1, 1, 0, 2));
  ASSERT_TRUE(world->entered.wait());
  const time_point t{1h};
  EXPECT_TRUE(r.overdue(t).empty());
  EXPECT_TRUE(r.overdue(t + 1h).empty()) << "nobody has asked it to end";
  r.kill({{1}, 0, 0});
  EXPECT_TRUE(r.overdue(t + 2h).empty()) << "its time begins when this is seen";
  EXPECT_TRUE(r.overdue(t + 2h + 9s).empty());
  EXPECT_EQ(r.overdue(t + 2h + 10s), (std::vector<overdue_attempt>{{{1}, 0, 0, {1}, {9}, "stage-1", 10'000'000'000}}));
  EXPECT_TRUE(r.overdue(t + 3h).empty()) << "told twice";
  world->released.open();
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_EQ(statuses().at(0), task_status::killed);
  EXPECT_EQ(statuses().at(1), task_status::succeeded) << "the next one is not affected";
  EXPECT_TRUE(r.overdue(t + 4h).empty());
}

TEST_F(runner_control, a_task_that_runs_for_too_long_is_asked_to_end_and_has_failed) {
  using namespace std::chrono_literals;
  auto options = base_options();
  options.kill_grace = 10s;
  auto& r = start(options);
  r.open_lease(grant(1));
  auto stage = native_stage<task<&first_waits>>(1, 2);
  stage.task_timeout = 5s;
  r.install(stage);
  r.run(range(1, 1, 0, 2));
  ASSERT_TRUE(world->entered.wait());
  const time_point t{1h};
  EXPECT_TRUE(r.overdue(t).empty());
  EXPECT_TRUE(r.overdue(t + 5s).empty()) << "it is asked now";
  const auto overdue = r.overdue(t + 15s);
  ASSERT_EQ(overdue.size(), 1u);
  EXPECT_TRUE(overdue[0].timed_out);
  world->released.open();
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_EQ(statuses().at(0), task_status::failed);
  EXPECT_EQ(statuses().at(1), task_status::succeeded) << "it has a time of its own";
  const auto failure = log.batches().front()->failures.at(0);
  EXPECT_EQ(failure.cause, failure_cause::time_limit);
  EXPECT_EQ(failure.message, "the task was ended because it ran for longer than its time-out of 5000ms (task-timeout, "
                             "troupe.task.timeout)");
}

TEST_F(runner_control, a_task_of_a_removed_stage_can_be_overdue_too) {
  using namespace std::chrono_literals;
  auto options = base_options();
  options.kill_grace = 0s;
  auto& r = start(options);
  r.open_lease(grant(1));
  r.install(native_stage<task<&first_waits>>(1, 1));
  r.run(range(1, 1, 0, 1));
  ASSERT_TRUE(world->entered.wait());
  r.remove({1});
  EXPECT_EQ(r.overdue({}).size(), 1u);
  world->released.open();
}

TEST_F(runner_control, many_leases_run_side_by_side) {
  auto& r = start();
  r.install(native_stage<task<&noop>>(1, 64'000));
  for (std::uint64_t lease = 1; lease <= 8; ++lease) r.open_lease(grant(lease));
  for (partition_index p = 0; p < 64'000; p += 100) r.run(range(1, 1 + p / 100 % 8, p, 100));
  ASSERT_TRUE(log.wait_for(64'000));
  EXPECT_EQ(statuses().size(), 64'000u);
}

} // namespace
} // namespace troupe::testing_execution
