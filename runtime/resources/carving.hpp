#pragma once

/// Executors carved out of hosts: what backends that own a fixed set of hosts decide by (`local`, `local-cluster`, a
/// cluster file). Amounts are lent, never oversubscribed. Pure; not thread-safe; one owner.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// One host. Several hosts may stand on one machine (`local-cluster[2,4,8g]`): an address that they both list is one
/// device and is lent once.
struct carving_host {
  std::string name;    ///< for messages and for the executor's own host name
  std::string machine; ///< hosts of equal machine share their addresses; empty: a machine of its own
  std::int64_t cores = 0;
  std::int64_t memory = 0; ///< bytes; the container memory of its executors comes out of it
  std::map<std::string, resource_pool> custom;

  bool operator==(const carving_host&) const = default;
};

/// Checks a host that came from a file: a name, and amounts and addresses as `validate(executor_capacity)` wants them.
result<void> validate(const carving_host& host);

/// Where an executor goes and what it owns there.
struct carved_executor {
  std::size_t host = 0;       ///< index into `carving::hosts`
  executor_capacity capacity; ///< exactly the shape's amounts, with addresses where the host has them

  bool operator==(const carved_executor&) const = default;
};

/// The hosts and what is lent of them. Shapes are complete, valid profiles; only their executor halves count. A shape
/// without cores takes all that its host has left, at least one.
class carving {
public:
  /// `described_by` names what the user would edit, such as `troupe.master = local-cluster[2,4,8g]`.
  /// @pre every host passes `validate`
  carving(std::vector<carving_host> hosts, std::string described_by);

  const std::vector<carving_host>& hosts() const noexcept { return hosts_; }

  /// Lends an executor of `shape` to `request`: on the host that keeps most of what the shape does not ask for free for
  /// others, then the fullest one. ec::infeasible when it fits no empty host, ec::overloaded when it fits none now,
  /// ec::invalid_argument when the request has one already.
  result<carved_executor> place(request_id request, const resource_profile& shape);

  /// Takes back everything that `request` holds. False when it holds nothing.
  bool free(request_id request);

  /// The executor runs no more tasks and stays for the output that it serves: what it held is lent anew, its request
  /// stays taken until `free`. False when it was never placed or is parked already.
  bool park(request_id request);

  /// How many more executors of `shape` there is room for now: as often `place` would succeed.
  std::uint32_t room_for(const resource_profile& shape) const;

  /// Which requests of `may_go` have to go so that as many as possible of `count` executors of `shape` find room, once
  /// those in `leaving` have gone. Each of them on one host: where the fewest have to go, then where the last of them
  /// stands earliest in `may_go`. Nobody goes for what fits nowhere even then. Requests that hold nothing are ignored.
  /// Looks at every host once, and for each executor at those that the one before has changed.
  way_answer who_makes_way(const resource_profile& shape, std::uint32_t count, const std::vector<request_id>& leaving,
                           const std::vector<request_id>& may_go) const;

  /// How often it was tried so far whether a shape fits a host: what answers cost, for tests.
  std::uint64_t looks() const noexcept { return looks_; }

  /// Why not all of `count` executors of `shape` find room now, as the end of a sentence that begins with them: "need 6
  /// cores, the hosts have 4 (missing: 2 cores)". Empty when all do.
  std::string lack_for(const resource_profile& shape, std::uint32_t count) const;

  /// Whether an executor of `shape` fits some empty host; else which amount is missing where. The answer is fixed.
  feasibility check(const resource_profile& shape) const;

  /// True when nothing is lent and no request is known.
  bool is_unused() const noexcept { return lent_.empty(); }

private:
  struct host_state {
    std::size_t machine = 0;                     ///< index into `lent_devices_`
    std::int64_t cores = 0;                      ///< not lent
    std::int64_t memory = 0;                     ///< bytes not lent
    std::map<std::string, std::int64_t> counted; ///< not lent, of resources without addresses
  };
  using device = std::pair<std::string, std::string>; ///< resource, address

  std::optional<executor_capacity> carve(std::size_t host, const resource_profile& shape) const;
  std::vector<std::size_t> all_hosts() const;
  std::vector<std::size_t> hosts_with(std::size_t host, bool devices) const;
  std::optional<carved_executor> find_place(const resource_profile& shape, const std::vector<std::size_t>& among) const;
  std::int64_t spare_after(std::size_t host, const resource_profile& shape) const;
  std::vector<std::vector<std::size_t>> helpers_of(const std::vector<request_id>& may_go, bool devices) const;
  std::vector<std::size_t> fewest_on(std::size_t host, const resource_profile& shape,
                                     const std::vector<request_id>& may_go, std::vector<std::size_t> order);
  std::vector<std::size_t> enough_on(std::size_t host, const resource_profile& shape,
                                     const std::vector<request_id>& may_go, const std::vector<std::size_t>& order);
  std::int64_t amount_on_all(const std::string& resource, bool counted, bool only_free) const;
  void lend(const carved_executor& executor);
  void take_back(const carved_executor& executor);

  std::vector<carving_host> hosts_;
  std::string described_by_;
  std::vector<host_state> states_;                            ///< by host
  std::vector<std::set<device>> lent_devices_;                ///< by machine
  std::map<request_id, std::optional<carved_executor>> lent_; ///< nothing: parked
  mutable std::uint64_t looks_ = 0;
};

} // namespace troupe
