// What a task of a gang may call, and what wakes it; a test plays the driver.

#include <deque>
#include <map>

#include "runner_fixture.hpp"

namespace troupe::testing_execution {
namespace {

std::string two_rounds(task_context& context, std::string_view, std::string_view) {
  context.barrier();
  std::string all;
  for (const auto& text : context.all_gather("from " + std::to_string(context.partition))) all += text + ";";
  return all;
}

std::string tries_again(task_context& context, std::string_view, std::string_view) {
  std::string why;
  try {
    context.barrier();
  } catch (const barrier_failure& e) {
    why = e.what();
  }
  context.barrier();
  return why;
}

std::string waits(task_context& context, std::string_view, std::string_view) {
  context.barrier();
  return "went on";
}

template <class Call>
std::string complaint_of(Call call) {
  try {
    call();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}

std::string says_too_much(task_context& context, std::string_view, std::string_view) {
  try {
    context.all_gather(std::string(max_gather_text + 1, 'x'));
  } catch (const std::length_error& e) {
    return e.what();
  }
  return "nothing";
}

std::string on_another_thread(task_context& context, std::string_view, std::string_view) {
  return std::async(std::launch::async, [&] { return complaint_of([&] { context.barrier(); }); }).get();
}

std::string lists_addresses(task_context& context, std::string_view, std::string_view) {
  const auto& all = context.gang_addresses();
  std::string text = std::to_string(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) text += " " + std::string{all[i]};
  return text;
}

std::string outside(task_context& context, std::string_view, std::string_view) {
  std::string all;
  for (const auto& text : {complaint_of([&] { context.barrier(); }), complaint_of([&] { context.all_gather("x"); }),
                           complaint_of([&] { context.gang_addresses(); })})
    all += text + "\n";
  return all;
}

class gang_task : public runner_test {
protected:
  void TearDown() override { runner.reset(); } // before what `on_arrival` uses

  template <auto Function>
  task_runner& start_gang(std::uint32_t tasks, duration task_timeout = never) {
    auto options = base_options();
    options.on_arrival = [this](barrier_arrival a) {
      const std::lock_guard lock{mutex};
      arrivals.push_back(std::move(a));
      changed.notify_all();
    };
    auto& r = start(std::move(options));
    auto stage = native_stage<task<Function>>(1, tasks);
    stage.stage_attempt = 3;
    stage.task_timeout = task_timeout;
    packed_column gang;
    for (std::uint32_t i = 0; i < tasks; ++i) gang.push_back("host-" + std::to_string(i) + ":1");
    stage.gang = std::make_shared<const packed_column>(gang);
    r.install(stage);
    for (std::uint32_t i = 0; i < tasks; ++i) {
      r.open_lease(grant(1 + i));
      auto batch = range(1, 1 + i, i, 1);
      batch->stage_attempt = 3;
      batch->attempts = {2};
      r.run(batch);
    }
    return r;
  }

  /// The next `count` arrivals, in the order of their partitions.
  std::map<partition_index, barrier_arrival> next_arrivals(std::size_t count) {
    std::unique_lock lock{mutex};
    EXPECT_TRUE(changed.wait_for(lock, deadline, [&] { return arrivals.size() >= count; }));
    std::map<partition_index, barrier_arrival> out;
    for (; !arrivals.empty(); arrivals.pop_front()) out.emplace(arrivals.front().partition, arrivals.front());
    return out;
  }

  static barrier_release for_all(std::uint32_t tasks, std::uint32_t round, std::string failure = {}) {
    barrier_release all{stage_id{1}, 3, round, {}, nullptr, std::move(failure)};
    for (std::uint32_t i = 0; i < tasks; ++i) all.partitions.push_back(i);
    return all;
  }

  /// What the tasks have returned, by partition; a failure's words where they have not.
  std::map<partition_index, std::string> ends(std::size_t count) {
    EXPECT_TRUE(log.wait_for(count));
    std::map<partition_index, std::string> out;
    for (const auto& b : log.batches())
      for (std::uint32_t i = 0; i < b->count; ++i) {
        const auto entry = decode_result_entry(b->results[i]);
        out[b->partition(i)] = b->status(i) == task_status::succeeded ? std::string{entry ? entry->value : "malformed"}
                                                                      : b->failures.front().message;
      }
    return out;
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<barrier_arrival> arrivals;
};

TEST_F(gang_task, rounds_are_counted_and_texts_come_back_by_partition) {
  auto& r = start_gang<&two_rounds>(2);
  auto all = next_arrivals(2);
  EXPECT_EQ(all.at(0), (barrier_arrival{{1}, 3, 0, 2, 0, sync_kind::barrier, ""}));
  EXPECT_EQ(all.at(1), (barrier_arrival{{1}, 3, 1, 2, 0, sync_kind::barrier, ""}));
  r.release(for_all(2, 0));
  all = next_arrivals(2);
  EXPECT_EQ(all.at(1), (barrier_arrival{{1}, 3, 1, 2, 1, sync_kind::all_gather, "from 1"}));
  auto release = for_all(2, 1);
  packed_column texts;
  for (const auto& [partition, a] : all) texts.push_back(a.text);
  release.texts = std::make_shared<const packed_column>(texts);
  r.release(release);
  EXPECT_EQ(ends(2), (std::map<partition_index, std::string>{{0, "from 0;from 1;"}, {1, "from 0;from 1;"}}));
}

TEST_F(gang_task, the_next_attempt_on_the_thread_begins_with_the_first_round) {
  auto& r = start_gang<&waits>(1);
  next_arrivals(1);
  auto both = range(1, 1, 1, 2);
  both->stage_attempt = 3;
  r.run(both);
  r.release(for_all(1, 0));
  for (const partition_index partition : {1u, 2u}) {
    EXPECT_EQ(next_arrivals(1).at(partition).round, 0u);
    r.release(for_all(3, 0));
  }
  EXPECT_TRUE(log.wait_for(3));
}

TEST_F(gang_task, a_task_that_catches_a_failure_goes_on_with_the_next_round) {
  auto& r = start_gang<&tries_again>(1);
  next_arrivals(1);
  r.release(for_all(1, 0, "the others will not come"));
  EXPECT_EQ(next_arrivals(1).at(0).round, 1u);
  r.release(for_all(1, 1));
  EXPECT_EQ(ends(1).at(0), "the others will not come");
}

TEST_F(gang_task, a_failure_that_nobody_catches_is_that_of_the_task) {
  auto& r = start_gang<&waits>(1);
  next_arrivals(1);
  r.release(for_all(1, 0, "the others will not come"));
  EXPECT_EQ(ends(1).at(0), "the others will not come");
  EXPECT_EQ(log.batches()[0]->status(0), task_status::failed);
}

TEST_F(gang_task, a_release_with_texts_of_another_number_is_a_failure) {
  auto& r = start_gang<&two_rounds>(1);
  next_arrivals(1);
  r.release(for_all(1, 0));
  next_arrivals(1);
  r.release(for_all(1, 1));
  EXPECT_EQ(ends(1).at(0), "all_gather() got 0 texts of 1 tasks");
}

TEST_F(gang_task, a_killed_task_that_waits_is_woken) {
  auto& r = start_gang<&waits>(2);
  next_arrivals(2);
  r.kill({{1}, 1, 2});
  EXPECT_EQ(ends(1), (std::map<partition_index, std::string>{{1, "killed while it ran"}}));
  r.release(for_all(2, 0));
  EXPECT_EQ(ends(2).at(0), "went on");
}

TEST_F(gang_task, the_tasks_of_a_removed_stage_are_woken) {
  auto& r = start_gang<&waits>(2);
  next_arrivals(2);
  r.remove({1});
  EXPECT_EQ(ends(2), (std::map<partition_index, std::string>{{0, "killed while it ran"}, {1, "killed while it ran"}}));
}

TEST_F(gang_task, a_task_that_runs_into_its_time_limit_is_woken) {
  auto& r = start_gang<&waits>(1, std::chrono::seconds{5});
  next_arrivals(1);
  EXPECT_TRUE(r.overdue(time_point{std::chrono::hours{1}}).empty());
  EXPECT_TRUE(r.overdue(time_point{std::chrono::hours{2}}).empty());
  EXPECT_EQ(ends(1).size(), 1u);
  EXPECT_EQ(log.batches()[0]->status(0), task_status::failed);
}

TEST_F(gang_task, shutdown_does_not_wait_for_the_others_of_a_gang) {
  auto& r = start_gang<&waits>(2);
  next_arrivals(2);
  EXPECT_TRUE(r.shutdown(deadline));
}

TEST_F(gang_task, a_text_beyond_the_limit_is_refused_with_both_sizes) {
  start_gang<&says_too_much>(1);
  EXPECT_EQ(ends(1).at(0), "all_gather() was called with 1048577 bytes, at most 1048576 are allowed");
}

TEST_F(gang_task, only_the_thread_of_the_task_may_wait) {
  start_gang<&on_another_thread>(1);
  EXPECT_EQ(ends(1).at(0), "barrier() was called on another thread than that of the task");
}

TEST_F(gang_task, finds_the_addresses_of_all) {
  start_gang<&lists_addresses>(2);
  EXPECT_EQ(ends(2).at(1), "2 host-0:1 host-1:1");
}

TEST_F(gang_task, in_any_other_stage_the_calls_say_what_to_change) {
  auto& r = start();
  r.open_lease(grant(1));
  r.install(native_stage<task<&outside>>(1, 1));
  r.run(range(1, 1, 0, 1));
  const std::string rest = "() was called in stage 'stage-1', which is no barrier stage: make it one with "
                           "dataset::barrier(), stage::barrier() or `barrier: true` in the job file\n";
  EXPECT_EQ(ends(1).at(0), "barrier" + rest + "all_gather" + rest + "gang_addresses" + rest);
}

} // namespace
} // namespace troupe::testing_execution
