#pragma once

/// An executor without threads: it applies orders as a real one does, through a ledger of its own, and says what it is
/// told to say. For tests and simulations of the deciding half.

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/time.hpp>
#include <troupe/tests/support/builders.hpp>

namespace troupe::testing {

/// One attempt as the executor knows it.
struct fake_attempt {
  stage_id stage;
  attempt_number stage_attempt = 0;
  partition_index partition = 0;
  attempt_number attempt = 0;
  lease_id lease;
  bool doomed = false; ///< its stage was removed, or it was killed: it can only be reported as killed

  auto operator<=>(const fake_attempt&) const = default;
};

/// A partition that an attempt was told to read.
struct fake_input {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  executor_id executor;

  auto operator<=>(const fake_input&) const = default;
};

/// How an attempt ended.
struct fake_end {
  fake_attempt what;
  task_status status = task_status::succeeded;
  std::string result; ///< an encoded entry
  task_failure detail;
  std::vector<accumulated> counted = {}; ///< of a success, ascending names
};

/// It succeeded with a result of so many bytes, which stays on its executor.
inline fake_end stored(const fake_attempt& a, std::uint64_t bytes) {
  return {a, task_status::succeeded, stored_result(bytes), {}};
}

class fake_executor {
public:
  explicit fake_executor(executor_info info);

  const executor_info& info() const noexcept { return info_; }
  const ledger& book() const noexcept { return book_; }

  /// Applies orders. What its ledger declines becomes a refusal of the next report.
  /// @returns the first thing that no scheduler may order: a gap, a lease with tasks revoked, a batch of a stage that
  /// is not installed …
  std::optional<std::string> apply(const executor_orders& orders);

  /// All attempts that have not ended, lease by lease in the order of the queues; the first of each lease runs.
  std::vector<fake_attempt> attempts() const;
  /// The attempts that run: one per lease with work.
  std::vector<fake_attempt> running() const;
  std::size_t lease_count() const noexcept { return leases_.size(); }
  const allotment* holding(lease_id lease) const;
  const stage_install* installed(stage_id stage) const;
  /// What an attempt that it has is to read one to one.
  const std::vector<fake_input>& inputs_of(const fake_attempt& a) const;
  /// As what partitions of the stage are kept that attempts read which it was given. @pre there are some
  cache_id cache_of(stage_id stage) const { return caches_.at(stage); }
  /// Executors that it was told to wait for no longer.
  const std::vector<executor_id>& told_gone() const noexcept { return told_gone_; }
  /// What it was asked to keep for others.
  const std::vector<block_takeover>& takeovers() const noexcept { return takeovers_; }
  /// Broadcasts that it was told to drop.
  const std::vector<broadcast_id>& withdrawn() const noexcept { return withdrawn_; }
  std::size_t installed_count() const noexcept { return stages_.size(); }
  /// Partitions of kept datasets that it has: what succeeds of stages that keep is kept.
  const std::set<std::pair<cache_id, partition_index>>& kept() const noexcept { return kept_; }
  /// It keeps nothing more: there is no room.
  void keep_nothing_more() noexcept { keeps_ = false; }
  /// The partition had to make room. The next report says so.
  void evict(cache_id cache, partition_index partition);

  /// The successful end of an attempt, with the result that suits its stage: a map status, or `value` inline.
  fake_end success(const fake_attempt& a, std::string_view value = {});
  /// Declines all grants from now on, with this reason; "" takes them again.
  void refuse_grants(std::string reason) { refuse_grants_ = std::move(reason); }
  /// Declines all batches from now on, with this reason; "" takes them again.
  void refuse_batches(std::string reason, bool build_mismatch = false);

  /// Takes the attempts out of their queues and reports their ends, `run_time` for each, together with what waits to be
  /// said: refusals, and attempts that were recalled. Attempts that it does not have are reported all the same: the
  /// report is then late or forged.
  executor_report report(std::vector<fake_end> ends, duration run_time = std::chrono::seconds{1});
  /// What it has, as its heartbeats say.
  executor_heartbeat heartbeat() const;
  bool has_refusals() const noexcept { return !refusals_.empty(); }
  /// Something waits to be said in a report.
  bool has_unsent() const noexcept { return has_refusals() || !unsent_.empty(); }

private:
  struct open_lease {
    allotment holding;
    std::deque<fake_attempt> queue;
  };
  void refuse(const task_batch& batch, std::string reason, bool mismatch);

  executor_info info_;
  ledger book_;
  std::map<lease_id, open_lease> leases_;
  std::map<stage_id, stage_install> stages_;
  std::map<std::tuple<stage_id, partition_index, attempt_number>, std::vector<fake_input>> inputs_;
  std::vector<executor_id> told_gone_;
  std::vector<block_takeover> takeovers_;
  std::vector<broadcast_id> withdrawn_;
  std::set<std::pair<cache_id, partition_index>> kept_;
  std::map<stage_id, cache_id> caches_;
  bool keeps_ = true;
  std::vector<kept_partition> evicted_;
  std::vector<refusal> refusals_;
  std::vector<fake_end> unsent_; ///< given back
  std::string refuse_grants_;
  std::set<lease_id> refused_; ///< grants; the scheduler may speak of them until it hears of that
  std::string refuse_batches_;
  bool build_mismatch_ = false;
  std::uint64_t sequence_ = 0;
  std::uint64_t reports_ = 0; ///< made
};

} // namespace troupe::testing
