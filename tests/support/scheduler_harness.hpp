#pragma once

/// A dag scheduler with fake executors around it under virtual time: every effect is carried out at once, and after
/// every input the scheduler's own consistency check runs. A fault throws std::logic_error, which every test framework
/// reports.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>
#include <troupe/tests/support/builders.hpp>
#include <troupe/tests/support/fake_executor.hpp>

namespace troupe::testing {

class scheduler_harness {
public:
  explicit scheduler_harness(dag_scheduler::options opts = {});

  dag_scheduler scheduler;
  profile_registry registry;
  time_point now{};
  /// What the allocator answers; where it is empty, questions stay open. Feasible and not fixed at first.
  std::function<feasibility(const executor_shape&)> answer;

  job_id submit(const job_builder& job);
  /// The same with other numbers for its profiles than the registry's: one for each, the default one first.
  job_id submit(const job_builder& job, const std::vector<resolved_profile>& profiles);
  executor_id add(const executor_builder& what);
  /// Its connection is closed; `lose` follows.
  void lose_connection(executor_id e);
  void lose(executor_id e, const std::string& cause = "killed by signal 9", bool lost = true,
            const executor_exit& exit = {}, bool ended = false);
  void cancel(job_id job);
  result<void> cancel_stage(job_id job, std::uint32_t index);
  result<std::vector<job_id>> cancel_group(const std::string& group);
  void tick(duration after = std::chrono::milliseconds{200});
  dag_scheduler::release release(executor_id e);
  void release_results(job_id job);
  void withdraw(broadcast_id broadcast);
  void answer_feasibility(shape_id shape, const feasibility& a);
  shape_id shape_of(const resource_profile& p);
  /// Hands any report in.
  void deliver(const executor_report& report);
  /// A heartbeat of every executor, `after` later.
  void beat(duration after = std::chrono::seconds{1});
  /// Attempts that the scheduler wants to have published, and those whose staged files it wants removed.
  std::vector<effects::staged_attempt> to_publish;
  std::vector<effects::staged_attempt> discarded;
  std::vector<effects::keep_printed> printed_by_lost; ///< what is to be kept of attempts of lost executors
  std::vector<job_id> forgotten;                      ///< jobs whose commands' files are to go
  bool publishes_at_once = true;                      ///< `to_publish` is answered by itself
  /// Answers one of `to_publish`.
  void publish(const effects::staged_attempt& what, publication_outcome outcome = publication_outcome::published,
               const std::string& reason = {});
  /// The executor that has the right to publish the attempt says how it went.
  void report_publication(executor_id from, const publication_right& right, publication_outcome outcome,
                          const std::string& reason = {});
  bool orders_get_lost = false; ///< once true, books and ledgers are not compared any more
  std::vector<effects::give_up_executor> given_up;

  fake_executor& executor(executor_id e) { return *executors_.at(e); }
  std::vector<fake_attempt> attempts(executor_id e) { return executor(e).attempts(); }
  std::vector<fake_attempt> attempts() const;
  /// Those of one stage of a job, by its position in the job.
  std::vector<fake_attempt> attempts_of(job_id job, std::uint32_t stage) const;
  executor_id executor_of(const fake_attempt& a) const;
  stage_id stage_of(job_id job, std::uint32_t stage) const;

  void succeed(const fake_attempt& a, std::string_view value = {}, duration run_time = std::chrono::seconds{1});
  /// One report with the successes of all attempts that the executor has.
  void succeed_all(executor_id e, duration run_time = std::chrono::seconds{1});
  /// Everything everywhere, again and again, until nothing runs.
  void drain(duration run_time = std::chrono::seconds{1});
  void end(const fake_attempt& a, task_status status, task_failure detail = {});
  void fail(const fake_attempt& a, const std::string& message, const std::string& stderr_text = {});
  void fetch_fail(const fake_attempt& a, stage_id shuffle, partition_index map, attempt_number map_attempt = 0);
  /// A task of a gang waits for the others.
  void arrive(const fake_attempt& a, std::uint32_t round = 0, sync_kind kind = sync_kind::barrier,
              std::string text = {});
  /// Sends what the executor declined.
  void deliver_refusals(executor_id e) { deliver(executor(e).report({})); }

  /// The end of a job; nothing while it runs.
  const job_end* end_of(job_id job) const;
  job_progress progress(job_id job) const { return *scheduler.progress(job, now); }
  /// Values of a job that succeeded.
  std::vector<std::string> values(job_id job) const;
  template <class Event>
  std::vector<Event> events() const {
    std::vector<Event> found;
    for (const auto& e : history)
      if (const auto* match = std::get_if<Event>(&e)) found.push_back(*match);
    return found;
  }
  std::vector<events::any> history;
  std::vector<load_report> loads;
  std::vector<executor_shape> questions;
  /// Orders of the last input, by executor.
  std::map<executor_id, executor_orders> last_orders;

  /// Throws when the scheduler is inconsistent, or an executor's ledger differs from the scheduler's book.
  void check() const;
  /// Throws unless nothing is left of any job, anywhere.
  void check_idle() const;

private:
  void carry_out(effects::list& out);

  std::map<executor_id, std::unique_ptr<fake_executor>> executors_;
  std::map<job_id, job_end> ends_;
  std::uint64_t next_executor_ = 1;
  bool lossy_ = false;
};

} // namespace troupe::testing
