// Random clusters under virtual time. TROUPE_SIMULATION_SEED runs one seed and prints its history;
// TROUPE_SIMULATION_SEEDS runs so many.

#include <atomic>
#include <cstdlib>
#include <future>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/cluster_simulator.hpp>

namespace troupe::testing {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const auto* text = std::getenv(variable);
  return text ? std::stoull(text) : otherwise;
}

TEST(simulation, promises_hold_for_every_seed) {
  if (const auto seed = number_from("TROUPE_SIMULATION_SEED", 0)) {
    const auto run = simulate(seed);
    std::cout << run.text(seed);
    EXPECT_FALSE(run.fault);
    return;
  }
  const auto seeds = number_from("TROUPE_SIMULATION_SEEDS", 1000);
  const auto threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<std::uint64_t> next = 1;
  std::atomic<std::uint64_t> failing = 0;
  std::vector<std::future<simulation_report>> parts;
  for (unsigned t = 0; t < threads; ++t)
    parts.push_back(std::async(std::launch::async, [&] {
      simulation_report sum;
      for (auto seed = next++; seed <= seeds && failing == 0; seed = next++) {
        const auto run = simulate(seed);
        if (run.fault) failing = seed;
        sum += run;
      }
      return sum;
    }));
  simulation_report all;
  for (auto& part : parts) all += part.get();
  ASSERT_EQ(failing, 0u) << shrink(failing).text(failing);
  std::cout << seeds << " seeds, " << all.events << " events; jobs: " << all.succeeded << " succeeded, " << all.failed
            << " failed, " << all.cancelled << " cancelled; " << all.excluded << " exclusions; " << all.stale
            << " messages came late or twice; " << all.recalls << " queues were taken back; " << all.consumed
            << " partitions were handed on; " << all.kept_read << " were there from former jobs; " << all.restarted
            << " gangs ran again; " << all.given_up << " executors were given up since messages got lost; "
            << all.published << " outputs were published, " << all.rights << " by who had the right to, " << all.late
            << " of them by who was lost\n";
  // A simulation in which nothing succeeds or nothing goes wrong proves little.
  EXPECT_GT(all.succeeded, seeds);
  EXPECT_GT(all.failed, seeds / 50);
  EXPECT_GT(all.cancelled, seeds / 50);
  EXPECT_GT(all.stale, seeds);
  EXPECT_GT(all.recalls, seeds / 10);
  EXPECT_GT(all.consumed, seeds);
  EXPECT_GT(all.kept_read, seeds / 10);
  EXPECT_GT(all.excluded, seeds / 10);
  EXPECT_GT(all.restarted, seeds / 10);
  EXPECT_GT(all.given_up, seeds / 10);
  EXPECT_GT(all.published, seeds);
  EXPECT_GT(all.rights, seeds / 10);
  EXPECT_GT(all.late, seeds / 100);
}

TEST(simulation, a_failing_seed_is_told_in_its_shortest_form) {
  // A promise that nobody gives: a task fails on a cluster that an executor has left.
  simulation_options options;
  options.promise = [](const dag_scheduler& scheduler) -> std::optional<std::string> {
    const auto all = scheduler.executors();
    std::uint64_t last = 0;
    std::uint32_t failures = 0;
    for (const auto& e : all) last = std::max(last, e.info->executor.value);
    for (const auto& job : scheduler.all_progress({}))
      for (const auto& stage : job.stages) failures += stage.failures;
    return failures > 0 && last > all.size() ? std::optional<std::string>{"both have happened"} : std::nullopt;
  };
  for (std::uint64_t seed = 1, found = 0; found < 3; ++seed) {
    const auto whole = simulate(seed, options);
    if (!whole.fault) continue;
    ++found;
    const auto shortest = shrink(seed, options);
    ASSERT_EQ(shortest.fault, whole.fault);
    EXPECT_LE(shortest.jobs_run, std::min(2u, whole.jobs_run)) << shortest.text(seed);
    EXPECT_LE(shortest.mishaps_run, std::min(5u, whole.mishaps_run)) << shortest.text(seed);
  }
}

TEST(simulation, what_is_needed_to_fail_is_found) {
  using numbers = std::set<std::uint32_t>;
  const auto needs = [](const numbers& wanted) {
    return
        [wanted](const numbers& kept) { return std::includes(kept.begin(), kept.end(), wanted.begin(), wanted.end()); };
  };
  EXPECT_EQ(needed_to_fail(100, 1000, needs({})), (numbers{}));
  EXPECT_EQ(needed_to_fail(100, 1000, needs({17})), (numbers{17}));
  EXPECT_EQ(needed_to_fail(100, 1000, needs({0, 50, 99})), (numbers{0, 50, 99}));
  EXPECT_EQ(needed_to_fail(0, 1000, needs({})), (numbers{}));
  // Either of two will do.
  EXPECT_EQ(needed_to_fail(10, 1000, [](const numbers& kept) { return kept.contains(3) || kept.contains(8); }).size(),
            1u);
  int asked = 0;
  needed_to_fail(1000, 20, [&](const numbers&) { return ++asked < 0; });
  EXPECT_EQ(asked, 20) << "not for ever";
}

TEST(simulation, one_seed_always_gives_the_same_history) {
  const auto a = simulate(7);
  const auto b = simulate(7);
  EXPECT_GT(a.history.size(), 10u);
  EXPECT_EQ(a.history, b.history);
}

} // namespace
} // namespace troupe::testing
