#pragma once

/// What a profile's author should hear although the profile is legal. Pure; any thread.

#include <string>
#include <vector>

#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

/// What stays unused of one resource while every slot of an executor runs a task.
struct idle_amount {
  std::string resource; ///< `cores`, `memory` or a custom name
  share total;
  share idle;           ///< more than zero
  bool counted = false; ///< both are sizes

  auto operator<=>(const idle_amount&) const = default;
};
/// `4 of 16 cores stay idle`, `8g of 40g gpu-memory stay idle`.
std::string to_string(const idle_amount& idle);
/// One of its two amounts for people.
std::string to_string(const idle_amount& idle, share amount);

/// Idle amounts of an executor that is exactly `profile`, `cores` first, then by name: exact, remainders of addresses
/// included, what rounding `1/n` down leaves over excluded. Custom resources that no task takes are not listed.
/// @pre `profile` is complete and valid
std::vector<idle_amount> idle_amounts_of(const resource_profile& profile);

/// Sentences about names that are probably slips (`cpu`, `core`, `gpus`, `mem`, `offheap` …), which are legal names of
/// custom resources, and about executor resources that no task takes. Speaks of `profile` as written, so hand it in
/// before it is completed.
std::vector<std::string> suspicions_about(const resource_profile& profile);

/// Sentences about discovery scripts of a profile that are not those of the default one: a machine is looked at once,
/// before there are jobs, so nobody runs them.
std::vector<std::string> unused_scripts_of(const resource_profile& profile, const resource_profile& defaults);

} // namespace troupe
