// Executors that exchange far more than they may keep in memory: nobody takes more than was granted, also where
// somebody else does not read.

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/execution/cgroup_find.hpp>
#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using namespace std::chrono_literals;

/// What the process has in memory and no file does, bytes; 0 where it is gone.
std::uint64_t own_memory(pid_t pid) {
  std::ifstream file{"/proc/" + std::to_string(pid) + "/status"};
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("RssAnon:") || line.starts_with("RssShmem:"))
      sum += std::stoull(line.substr(line.find(':') + 1)) * 1024;
  return sum;
}

/// A process comes to rest when it has hardly computed for a second in which it was looked at. Time for which
/// somebody has stopped it does not count.
class rest_of {
public:
  explicit rest_of(pid_t pid) : pid_(pid) {}

  bool has_come() {
    const auto now = std::chrono::steady_clock::now();
    const auto ticks = ticks_so_far();
    // Heartbeats cost something, too; in hundredths of a second.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    constexpr std::uint64_t for_heartbeats = 20;
#else
    constexpr std::uint64_t for_heartbeats = 2;
#endif
    if (looks_ == 0 || ticks > ticks_at_begin_ + for_heartbeats || testing::look_at(pid_).state == 'T') {
      looks_ = 0;
      begin_ = now;
      ticks_at_begin_ = ticks;
    }
    // Several looks: where everything stands still, a second passes between two of them.
    return ++looks_ > 10 && now - begin_ >= 1s;
  }

private:
  /// Fields 14 and 15; the second one, in parentheses, may hold anything.
  std::uint64_t ticks_so_far() const {
    std::ifstream file{"/proc/" + std::to_string(pid_) + "/stat"};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    std::istringstream rest{text.substr(std::min(text.size(), text.rfind(')') + 1))};
    std::string skipped;
    for (int field = 3; field < 14; ++field) rest >> skipped;
    std::uint64_t user = 0;
    std::uint64_t system = 0;
    rest >> user >> system;
    return user + system;
  }

  pid_t pid_;
  unsigned looks_ = 0;
  std::uint64_t ticks_at_begin_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

/// Bytes of the group that were swapped out; 0 where the kernel does not count them.
std::uint64_t swapped(const std::string& group) {
  std::uint64_t bytes = 0;
  if (std::ifstream{group + "/memory.swap.current"} >> bytes) return bytes; // version 2
  std::ifstream file{group + "/memory.stat"};
  for (std::string word; file >> word >> bytes;)
    if (word == "swap") return bytes;
  return 0;
}

/// Pairs of which each partition has all keys once, and so many bytes in all partitions together.
dataset<std::pair<std::int64_t, std::string>> pairs(session& in, std::int64_t bytes, std::uint32_t partitions = 4) {
  static constexpr std::int64_t size = 10'000;
  const auto keys = bytes / size / partitions;
  return in.range(0, keys * partitions, partitions).map(with(keys), [](std::int64_t count, std::int64_t n) {
    return std::pair{n % count, std::string(size, static_cast<char>(n))};
  });
}

TEST(executors_of_little_memory, stay_within_a_cgroup_of_just_that) {
  if (const auto missing = find_cgroups({cgroup_controller::memory}).missing; !missing.empty())
    GTEST_SKIP() << "no cgroups to be had here";
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer takes many times as much, and is granted more";
#endif
  constexpr std::uint64_t memory = 128 << 20;
  test_cluster cluster{{.master = "local-cluster[2,1,128m]", .conf = {"troupe.executor.memory=128m"}}};
  auto session = cluster.make_session();
  EXPECT_EQ(pairs(session, 1'000'000'000).group_by_key(4).count(), 25'000u);
  // Of outputs that are kept in memory as long as there is room, too.
  EXPECT_EQ(pairs(session, 600'000'000, 300).group_by_key(4).count(), 200u);
  const auto base = find_cgroups({cgroup_controller::memory}).base.child("troupe-" + cluster.app().session_id());
  for (const auto* name : {"executor-1", "executor-2"}) {
    const auto group = base.child(name);
    const auto used = group.memory();
    EXPECT_EQ(used.limit, memory) << name;
    EXPECT_GT(used.peak, memory / 4) << name << " has moved half of it";
    EXPECT_EQ(used.kills, 0u) << name;
    EXPECT_EQ(swapped(group.parts().front().directory), 0u) << name;
  }
  for (const auto& e : cluster.executors()) EXPECT_NE(::kill(e.pid, 0), -1);
  EXPECT_EQ(session.last_job().stages.at(0).attempt, 0u);
  cluster.check_clean();
}

class readers_that_stand_still : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(same_host, readers_that_stand_still, ::testing::Values("auto", "never"),
                         [](const auto& param) { return std::string{param.param}; });

TEST_P(readers_that_stand_still, cost_nobody_memory) {
  constexpr std::int64_t bytes = 600'000'000;
  const rendezvous meeting;
  test_cluster cluster{
      {.master = "local-cluster[2,1,128m]",
       .conf = {"troupe.executor.memory=128m", "troupe.executor.heartbeat-timeout=1h",
                "troupe.transfer.read-timeout=1h", std::string{"troupe.transfer.same-host="} + GetParam()}}};
  auto session = cluster.make_session();
  auto sums = std::async(std::launch::async, [&] {
    return pairs(session, bytes)
        .reduce_by_key(
            with(meeting.directory()),
            [](const std::string& where, std::string a,
               const std::string&) { // never in a map task: each has its keys once
              thread_local bool here = false;
              if (!std::exchange(here, true)) arrive(where, "reading");
              return a;
            },
            2)
        .count();
  });
  const auto readers = meeting.await("reading", 2);
  ASSERT_NE(readers[0], readers[1]) << "one on each executor, which read from each other, too";
  ::kill(readers[0], SIGSTOP);
  meeting.open("reading");
  const auto driver = own_memory(::getpid());
  std::uint64_t most_of_server = 0;
  std::uint64_t most_of_driver = 0;
  // The other one reads what it has itself, and sends what is asked for; then both streams stand still.
  rest_of server{readers[1]};
  EXPECT_TRUE(testing::wait_until([&] {
    most_of_server = std::max(most_of_server, own_memory(readers[1]));
    most_of_driver = std::max(most_of_driver, own_memory(::getpid()));
    return server.has_come();
  }));
  ::kill(readers[0], SIGCONT);
  EXPECT_EQ(sums.get(), static_cast<std::uint64_t>(bytes / 40'000));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(most_of_server, 128u << 20) << "half of " << bytes << " wait there to be read";
  EXPECT_LT(most_of_driver, driver + (16u << 20));
#else
  static_cast<void>(driver); // a sanitizer takes many times as much
#endif
  for (const auto& stage : session.last_job().stages) EXPECT_EQ(stage.attempt, 0u) << stage.name;
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
