#pragma once

/// A whole cluster under virtual time: the production dag scheduler, allocation policy, carving and ledgers, with
/// random jobs, durations, failures, executor losses, and messages that come late, twice or out of order. One seed
/// always gives the same history.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

struct simulation_report {
  std::optional<std::string> fault; ///< the first broken promise
  std::vector<std::string> history; ///< what happened up to it, with the time
  std::uint64_t events = 0;
  std::uint32_t succeeded = 0; ///< jobs
  std::uint32_t failed = 0;
  std::uint32_t cancelled = 0;
  std::uint32_t executors = 0; ///< that were ever admitted
  std::uint32_t excluded = 0;  ///< executors and hosts, for a while
  std::uint32_t restarted = 0; ///< gangs
  std::uint64_t stale = 0;     ///< messages that came late or twice
  std::uint64_t recalls = 0;   ///< queues that were taken back

  /// The seed, the fault and the history, for people.
  std::string text(std::uint64_t seed) const;
};

/// Runs until every job has ended and every message has arrived. After each event: no ledger is asked for more than it
/// has, no executor gets an order that makes no sense, and the scheduler is consistent. At the end: every job has
/// ended, results are right, books and ledgers agree, and nothing is left anywhere.
simulation_report simulate(std::uint64_t seed);

} // namespace troupe::testing
