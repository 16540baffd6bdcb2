#pragma once

/// A whole cluster under virtual time: the production dag scheduler, allocation policy, carving and ledgers, with
/// random jobs, durations, failures, executor losses, and messages that come late, twice, out of order or not at all.
/// One seed always gives the same history.

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe::testing {

struct simulation_options {
  /// Of the mishaps (losses, refusals, failures, repeats, cancellations) and jobs that would come, each numbered from 0
  /// in that order, these alone do; the rest of the history is as near to what it was as can be. Unset: all of them.
  std::optional<std::set<std::uint32_t>> only_mishaps;
  std::optional<std::set<std::uint32_t>> only_jobs;
  /// Asked after each event beside what always has to hold; gives what is wrong. Unset: nothing more.
  std::function<std::optional<std::string>(const dag_scheduler&)> promise;
};

struct simulation_report {
  std::optional<std::string> fault; ///< the first broken promise
  std::vector<std::string> history; ///< what happened up to it, with the time
  std::uint64_t events = 0;
  std::uint32_t mishaps = 0;     ///< that would have happened
  std::uint32_t jobs = 0;        ///< the same
  std::uint32_t mishaps_run = 0; ///< those that have
  std::uint32_t jobs_run = 0;
  std::uint32_t succeeded = 0; ///< jobs
  std::uint32_t failed = 0;
  std::uint32_t cancelled = 0;
  std::uint32_t executors = 0; ///< that were ever admitted
  std::uint32_t excluded = 0;  ///< executors and hosts, for a while
  std::uint32_t restarted = 0; ///< gangs
  std::uint64_t stale = 0;     ///< messages that came late or twice
  std::uint64_t recalls = 0;   ///< queues that were taken back
  std::uint64_t consumed = 0;  ///< outputs that were read task by task, and dropped
  std::uint64_t kept_read = 0; ///< partitions that former jobs had left
  std::uint32_t given_up = 0;  ///< executors of which messages got lost
  std::uint64_t published = 0; ///< outputs of tasks that came into their places
  std::uint64_t rights = 0;    ///< of those by executors whose files the driver does not see
  std::uint64_t late = 0;      ///< attempts of executors that had been declared lost and went on

  /// Adds the counts of another one.
  simulation_report& operator+=(const simulation_report& other);
  /// The seed, the fault and the history, for people.
  std::string text(std::uint64_t seed) const;
};

/// Runs until every job has ended and every message has arrived. After each event: no ledger is asked for more than it
/// has, no executor gets an order that makes no sense, and the scheduler is consistent. At the end: every job has
/// ended, results are right, books and ledgers agree, and nothing is left anywhere.
simulation_report simulate(std::uint64_t seed, const simulation_options& options = {});

/// A shorter history of a seed that fails: without all jobs and mishaps that it fails without. @pre it fails
simulation_report shrink(std::uint64_t seed, simulation_options options = {});

/// The numbers below `count` that are needed for `fails` to be true of them, or few more: none can be left out alone.
/// Asks at most `budget` times. @pre `fails` is true of all
std::set<std::uint32_t> needed_to_fail(std::uint32_t count, std::uint32_t budget,
                                       const std::function<bool(const std::set<std::uint32_t>&)>& fails);

} // namespace troupe::testing
