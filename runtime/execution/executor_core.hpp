#pragma once

/// What an executor accepts: the authority over its own amounts, addresses and leases. Orders go in, effects come out;
/// whatever its profile does not satisfy or would oversubscribe an address is refused, whatever the driver believed.
/// Owner: the executor actor, a test, or the simulator. Not thread-safe; no clock, no I/O.
/// Lease: open -> closing -> closed; closing while attempts of it have not ended, since its addresses are in use.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

namespace effects {
struct open_lease {
  lease_grant grant;
  bool operator==(const open_lease&) const = default;
};
struct close_lease {
  lease_id lease;
  bool operator==(const close_lease&) const = default;
};
struct install_stage {
  stage_install stage;
  bool operator==(const install_stage&) const = default;
};
struct remove_stage {
  stage_id stage;
  bool is_late = false; ///< it has run into its time-out
  bool operator==(const remove_stage&) const = default;
};
/// Run `orders->batches[index]`.
struct run_batch {
  std::shared_ptr<const executor_orders> orders;
  std::size_t index = 0;
  bool operator==(const run_batch&) const = default;
};
struct kill_attempt {
  kill_task which;
  bool operator==(const kill_attempt&) const = default;
};
/// Give back what of the lease has not begun.
struct recall_lease {
  lease_id lease;
  bool operator==(const recall_lease&) const = default;
};
/// Read nothing more from an executor that is lost.
struct forget_executor {
  executor_id executor;
  bool operator==(const forget_executor&) const = default;
};
/// Let tasks of a gang go on.
struct release_barrier {
  barrier_release what;
  bool operator==(const release_barrier&) const = default;
};
/// Keep the blocks of an executor that is to go.
struct take_over_blocks {
  block_takeover what;
  bool operator==(const take_over_blocks&) const = default;
};
/// A broadcast is needed no longer.
struct drop_broadcast {
  broadcast_id broadcast;
  bool operator==(const drop_broadcast&) const = default;
};
/// An output will be read by nobody any more.
struct drop_output {
  held_block block;
  bool operator==(const drop_output&) const = default;
};
/// What is kept of a dataset will be read by nobody any more.
struct drop_kept {
  cache_id cache;
  bool operator==(const drop_kept&) const = default;
};
/// Another executor keeps this partition.
struct drop_copy {
  kept_partition what;
  bool operator==(const drop_copy&) const = default;
};
/// Nobody can ask for the job any more: what its commands have left goes.
struct drop_attempts {
  job_id job;
  bool operator==(const drop_attempts&) const = default;
};
/// Put staged files in place: it has the right to.
struct publish_attempt {
  publication_right right;
  bool operator==(const publish_attempt&) const = default;
};
struct send_refusal {
  refusal what;
  bool operator==(const send_refusal&) const = default;
};
struct stop_executor {
  bool operator==(const stop_executor&) const = default;
};
using any_execution =
    std::variant<open_lease, close_lease, install_stage, remove_stage, run_batch, kill_attempt, recall_lease,
                 forget_executor, release_barrier, take_over_blocks, drop_broadcast, drop_output, drop_kept, drop_copy,
                 drop_attempts, publish_attempt, send_refusal, stop_executor>;
using execution_list = std::vector<any_execution>;
} // namespace effects

/// How a lease stands on its executor (docs/state-machines.md); an absent one is closed.
enum class lease_state : std::uint8_t { open, closing };

/// open -> closing.
constexpr bool may_follow(lease_state from, lease_state to) noexcept {
  return from == lease_state::open && to == lease_state::closing;
}

class executor_core {
public:
  /// @param info what the executor said at its hello; capacity, build id and `native` decide what is accepted
  explicit executor_core(executor_info info);

  /// Applies orders from top to bottom. Orders for another incarnation or with another sequence than the next one are
  /// counted and ignored.
  void on_orders(const std::shared_ptr<const executor_orders>& orders, effects::execution_list& out);
  /// Attempts ended. Throws std::logic_error when more of them have ended than were handed over.
  void on_outcomes(const outcome_batch& outcomes, effects::execution_list& out);

  const executor_info& info() const noexcept { return info_; }
  void set_id(executor_id id) noexcept { info_.executor = id; }
  /// Sequence of the last orders applied.
  std::uint64_t orders_seen() const noexcept { return seen_; }
  std::uint64_t ignored() const noexcept { return ignored_; }
  /// True when nothing is leased and no stage is known.
  bool is_idle() const noexcept { return leases_.empty() && stages_.empty(); }

private:
  struct open_record {
    std::shared_ptr<const resource_profile> profile;
    allotment holding;
    std::uint64_t unfinished = 0; ///< attempts handed to the lease's thread
    lease_state state = lease_state::open;
  };
  struct known_stage {
    attempt_number attempt = 0;
    std::string refused; ///< why its tasks cannot run here; "" when they can
  };

  void grant(const lease_grant& g, effects::execution_list& out);
  void close(lease_id id, effects::execution_list& out);
  void install(const stage_install& s, effects::execution_list& out);
  void batch(const std::shared_ptr<const executor_orders>& orders, std::size_t index, effects::execution_list& out);

  executor_info info_;
  ledger ledger_;
  std::unordered_map<lease_id, open_record> leases_;
  std::unordered_map<stage_id, known_stage> stages_;
  std::uint64_t seen_ = 0;
  std::uint64_t ignored_ = 0;
};

} // namespace troupe
