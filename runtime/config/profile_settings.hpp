#pragma once

/// The default profile and the custom resources that settings describe. Pure.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/resources/memory_split.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/scheduling/job_pools.hpp>
#include <troupe/runtime/scheduling/placement_policy.hpp>
#include <troupe/runtime/storage/page.hpp>

namespace troupe {

/// What `troupe.executor.resource.<name>.*` says about one custom resource.
struct configured_resource {
  std::int64_t amount = 0;            ///< at least 1
  bool counted = false;               ///< the amount is a size; nothing of what follows is set
  std::vector<std::string> addresses; ///< empty: to be discovered; else `amount` different ones
  std::string discovery_script;       ///< absolute path, or ""
  std::string vendor;

  bool operator==(const configured_resource&) const = default;
};

/// By name. A resource whose amount is set to 0 is left out, whatever else is said about it (spec DF-7, RD-4). Errors:
/// neither an amount nor addresses, an amount that is not the number of addresses, an address that is given twice, a
/// counted size with addresses, script or vendor, a name that is built in.
result<std::map<std::string, configured_resource>> executor_resources(const settings& s);

/// What the rules for profiles call the place that troupe.master names.
master_kind master_kind_of(const settings& s);

/// troupe.scheduler.placement.
placement_policy placement_policy_of(const settings& s);

/// `troupe.memory.…`
memory_split memory_split_of(const settings& s);

/// `troupe.io.compression.…`
page_compression compression_of(const settings& s);
/// troupe.scheduler.mode and troupe.scheduler.pools.*.
sharing_options sharing_of(const settings& s);

/// The rules that profiles obey on a master of this kind (troupe.scheduler.profile-matching and support-matrix,
/// troupe.dynamic-allocation.enabled, whether troupe.executor.cores was set).
profile_rules rules_of(const settings& s, master_kind master);

/// What overhead the executors of profiles that give none have: the empty rule where troupe.executor.memory-overhead is
/// set, be it to 0 (spec DF-12).
overhead_rule overhead_rule_of(const settings& s);

/// The complete profile that stages without one of their own get, and what an executor that is started by hand is.
/// A task amount of 0 is left out (spec DF-7). Where troupe.executor.cores is not set, an executor has as many as one
/// task takes, at least one. Under `exact` it has an offHeap clause even of 0 (DF-5), and no cores on a local cluster
/// unless they were configured: its executors then take all cores of a host (DF-2, SM-6). Errors are those of
/// `executor_resources` and of `validate(resource_profile)`, with the origin of what is at fault.
result<resource_profile> default_profile(const settings& s, const profile_rules& rules = {});

} // namespace troupe
