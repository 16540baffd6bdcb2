// Who is let go on, and who is woken; with real threads.

#include <troupe/runtime/execution/gang_gate.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/tests/support/patience.hpp>

namespace troupe {
namespace {

barrier_arrival arrival(partition_index partition, std::uint32_t round = 0) {
  return {stage_id{5}, 1, partition, 2, round, sync_kind::all_gather, "text"};
}

barrier_release release(std::vector<partition_index> partitions) {
  return {stage_id{5}, 1, 0, std::move(partitions), nullptr, ""};
}

std::shared_ptr<const packed_column> column(std::string_view only) {
  packed_column out;
  out.push_back(only);
  return std::make_shared<const packed_column>(out);
}

class gang_gate_test : public ::testing::Test {
protected:
  /// Somebody waits: what it was let go with, or "failed: " and why.
  std::future<std::string> come(const barrier_arrival& who, const std::atomic<bool>* cancelled = nullptr) {
    auto done = std::async(std::launch::async, [this, who, cancelled]() -> std::string {
      try {
        const auto texts = gate.wait(who, cancelled);
        return texts ? std::string{(*texts)[0]} : "nothing";
      } catch (const barrier_failure& e) {
        return std::string{"failed: "} + e.what();
      }
    });
    std::unique_lock lock{mutex};
    ++expected;
    EXPECT_TRUE(changed.wait_for(lock, testing::patience(), [&] { return arrivals.size() >= expected; }));
    return done;
  }
  static std::string end_of(std::future<std::string>& who) {
    return who.wait_for(testing::patience()) == std::future_status::ready ? who.get() : "waits";
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<barrier_arrival> arrivals;
  std::size_t expected = 0;
  gang_gate gate{[this](barrier_arrival a) {
    const std::lock_guard lock{mutex};
    arrivals.push_back(std::move(a));
    changed.notify_all();
  }};
};

TEST_F(gang_gate_test, those_who_are_named_go_on_with_what_was_brought) {
  auto first = come(arrival(0));
  auto second = come(arrival(1));
  EXPECT_EQ(arrivals, (std::vector<barrier_arrival>{arrival(0), arrival(1)}));
  auto what = release({0});
  what.texts = column("brought");
  gate.release(what);
  EXPECT_EQ(end_of(first), "brought");
  EXPECT_EQ(second.wait_for(std::chrono::seconds{0}), std::future_status::timeout) << "it was not named";
  what = release({3, 1});
  what.texts = nullptr;
  gate.release(what);
  EXPECT_EQ(end_of(second), "nothing");
}

TEST_F(gang_gate_test, a_release_for_somebody_else_lets_nobody_go_on) {
  auto who = come(arrival(0, 7));
  // Were one of these taken, its words would be those that come out: the first release counts.
  auto other = release({0});
  other.failure = "another one's";
  gate.release(other); // another round
  other.round = 7;
  other.stage = stage_id{6};
  gate.release(other);
  other.stage = stage_id{5};
  other.stage_attempt = 2;
  gate.release(other);
  other.stage_attempt = 1;
  other.partitions = {1, 2};
  gate.release(other);
  other.partitions = {0};
  other.failure = "its own";
  gate.release(other);
  EXPECT_EQ(end_of(who), "failed: its own");
}

TEST_F(gang_gate_test, a_release_that_comes_with_the_arrival_is_not_lost) {
  gang_gate* whose = nullptr;
  gang_gate at_once{[&whose](const barrier_arrival& a) { whose->release(release({a.partition})); }};
  whose = &at_once;
  auto who = std::async(std::launch::async, [&] { return at_once.wait(arrival(4), nullptr) == nullptr; });
  ASSERT_EQ(who.wait_for(testing::patience()), std::future_status::ready);
  EXPECT_TRUE(who.get());
}

TEST_F(gang_gate_test, a_cancelled_one_is_woken_and_the_others_wait_on) {
  std::atomic<bool> cancelled = false;
  std::atomic<bool> never_set = false;
  auto killed = come(arrival(0), &cancelled);
  auto other = come(arrival(1), &never_set);
  cancelled = true;
  gate.wake(cancelled);
  EXPECT_EQ(end_of(killed), "failed: the task was cancelled while it waited for the others of its gang");
  gate.wake(never_set); // nothing has happened
  gate.release(release({0, 1}));
  EXPECT_EQ(end_of(other), "nothing");
}

TEST_F(gang_gate_test, one_that_was_cancelled_before_does_not_wait_and_tells_nobody) {
  const std::atomic<bool> cancelled = true;
  EXPECT_THROW(gate.wait(arrival(0), &cancelled), barrier_failure);
  EXPECT_TRUE(arrivals.empty());
}

TEST_F(gang_gate_test, whoever_cannot_tell_leaves_the_gate) {
  gang_gate mute{[](const barrier_arrival&) { throw std::domain_error("no way"); }};
  EXPECT_THROW(mute.wait(arrival(0), nullptr), std::domain_error);
  mute.release(release({0})); // would write where nobody waits any more
}

} // namespace
} // namespace troupe
