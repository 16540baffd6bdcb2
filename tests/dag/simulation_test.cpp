// Random clusters under virtual time. TROUPE_SIMULATION_SEED runs one seed and prints its history;
// TROUPE_SIMULATION_SEEDS runs so many.

#include <cstdlib>
#include <iostream>
#include <string>

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
  simulation_report all;
  const auto seeds = number_from("TROUPE_SIMULATION_SEEDS", 500);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto run = simulate(seed);
    ASSERT_FALSE(run.fault) << run.text(seed);
    all.events += run.events;
    all.succeeded += run.succeeded;
    all.failed += run.failed;
    all.cancelled += run.cancelled;
    all.stale += run.stale;
    all.recalls += run.recalls;
    all.excluded += run.excluded;
    all.restarted += run.restarted;
  }
  std::cout << seeds << " seeds, " << all.events << " events; jobs: " << all.succeeded << " succeeded, " << all.failed
            << " failed, " << all.cancelled << " cancelled; " << all.excluded << " exclusions; " << all.stale
            << " messages came late or twice; " << all.recalls << " queues were taken back; " << all.restarted
            << " gangs ran again\n";
  // A simulation in which nothing succeeds or nothing goes wrong proves little.
  EXPECT_GT(all.succeeded, seeds);
  EXPECT_GT(all.failed, seeds / 50);
  EXPECT_GT(all.cancelled, seeds / 50);
  EXPECT_GT(all.stale, seeds);
  EXPECT_GT(all.recalls, seeds / 10);
  EXPECT_GT(all.excluded, seeds / 10);
  EXPECT_GT(all.restarted, seeds / 10);
}

TEST(simulation, one_seed_always_gives_the_same_history) {
  const auto a = simulate(7);
  const auto b = simulate(7);
  EXPECT_GT(a.history.size(), 10u);
  EXPECT_EQ(a.history, b.history);
}

} // namespace
} // namespace troupe::testing
