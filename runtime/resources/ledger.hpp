#pragma once

/// Who holds what on one executor. The executor owns the authoritative one; the dag scheduler keeps one per executor as
/// its book and the two are driven by the same calls, so they cannot differ.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// A share of one address. Amounts of one and more are several whole addresses.
struct address_share {
  std::string address; ///< empty for a resource that is counted only
  share amount;

  auto operator<=>(const address_share&) const = default;
};

/// How the tasks of a profile bear with others on their executor. Nothing of it is set where the profile sets no bound.
struct tenancy {
  profile_id profile;     ///< whose tasks are counted together
  std::int64_t most = 0;  ///< of them at once; 0: as many as fit
  bool exclusive = false; ///< nothing else beside them

  auto operator<=>(const tenancy&) const = default;
};

/// What one lease holds: cpus, shares of addresses by resource, and of the executor's memory as `memory`.
struct allotment {
  share cpus;
  std::map<std::string, std::vector<address_share>> resources;
  tenancy beside{};

  auto operator<=>(const allotment&) const = default;
};

/// Free cpus and addresses of one executor. Not thread-safe; one owner. Every method either does all it says or
/// changes nothing.
class ledger {
public:
  ledger() = default;
  /// @param order in which `choose` looks at addresses
  /// @pre `capacity` passes `validate`
  explicit ledger(executor_capacity capacity, profile_matching order = profile_matching::compatible);

  const executor_capacity& capacity() const noexcept { return capacity_; }

  /// Chooses what a task of `profile` would hold: whole requests take entirely free addresses, the first ones; a
  /// fraction takes one address that has as much left: under `compatible` the fullest (best fit, spec AD-12 [T]), in
  /// the executor's order; under `exact` the first (AD-4), in the order of their texts: `0`, `1`, `10`, `2` (AD-2). All
  /// that the profile names, or nothing (AD-5, AD-6). Nothing is taken. Empty: does not fit now.
  /// @param id counts the tasks of a profile that bounds them
  std::optional<allotment> choose(const resource_profile& profile, profile_id id = {}) const;

  /// Takes `a`. Refused, with the clause that fails, when it names an unknown resource or address, splits a fraction
  /// over addresses, would take more than is free, or does not bear with what runs here.
  result<void> acquire(const allotment& a);

  /// Gives `a` back. Refused when more would be free than there is.
  result<void> release(const allotment& a);

  /// How many more tasks of `profile` fit now (derived, never stored); as often `choose` and `acquire` succeed.
  std::int64_t free_slots(const resource_profile& profile, profile_id id = {}) const;

  share free_cpus() const noexcept { return free_cpus_; }
  /// Free part of one address; zero where unknown.
  share free_of(std::string_view resource, std::string_view address) const;
  /// True when nothing is taken.
  bool is_idle() const;

private:
  /// One address, or all of a resource that is only counted.
  struct cell {
    std::string address;
    share total;
    share free;
  };
  struct pool {
    bool counted = false;
    std::vector<cell> cells; ///< one per address in the order in which they are chosen; exactly one where counted

    std::vector<address_share> choose(share part, profile_matching order) const;
    std::int64_t free_slots(share part) const noexcept;
  };

  const cell* find(std::string_view resource, std::string_view address) const noexcept;
  cell* find(std::string_view resource, std::string_view address) noexcept;
  /// Whether every part of `a` exists, is well formed, and is at most what `limit_of` says of its cell.
  result<void> check(const allotment& a, std::string_view verb, std::string_view state,
                     share (*limit_of)(const cell&)) const;
  /// Tasks that run and are counted with those of `t`.
  std::int64_t tasks_beside(const tenancy& t) const noexcept;
  /// How many more of these may join those that run.
  std::int64_t places_for(const tenancy& t) const noexcept;
  /// Why none may.
  std::string why_no_place_for(const tenancy& t) const;

  executor_capacity capacity_;
  profile_matching order_ = profile_matching::compatible;
  share free_cpus_;
  std::map<std::string, pool, std::less<>> pools_;
  std::map<profile_id, std::int64_t> bounded_; ///< tasks that run, of each profile that sets a bound
  std::int64_t held_ = 0;                      ///< allotments
  std::int64_t exclusive_ = 0;                 ///< of an exclusive profile
  bool alone_ = false;                         ///< the only one there is must stay so
};

/// True when `a` holds exactly what one task of `profile` takes, address by address, under its bounds.
bool matches(const allotment& a, const resource_profile& profile);

} // namespace troupe
