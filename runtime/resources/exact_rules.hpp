#pragma once

/// What policy `exact` does otherwise than `compatible` where profiles are checked, completed, counted and merged:
/// Spark's rules, with Troupe's arithmetic. "As written" is a profile before it is completed. Pure; any thread.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe::exact {

/// Whether the master can carry a profile at all (`troupe.scheduler.support-matrix = spark`; spec MP-2). The default
/// profile is always supported. ec::invalid_profile with Spark's words and what to change.
result<void> check_supported(const resource_profile& written, const profile_rules& rules);

/// Whether jobs may have barrier stages at all there (the same setting; spec BA-2). ec::invalid_profile likewise.
result<void> check_barrier_supported(const profile_rules& rules);

/// In a full profile the custom amounts of a task are at most one half, or whole (DM-10); task-only ones may lie
/// between one half and one (DM-11). The rules of `validate` come before. Task cpus are exempt (DM-13).
result<void> check_fractions(const resource_profile& written);

/// `written` with what it leaves out: cores, memory amounts and the task's cpus from `defaults`, custom resources never
/// (DF-10). A task-only profile reads the executor half of `defaults` where there is no dynamic allocation (DF-15), and
/// has executors of its own without custom resources where there is (DF-16).
resource_profile complete(const resource_profile& written, const resource_profile& defaults,
                          const profile_rules& rules);

/// How many tasks an executor of a profile runs at once, for all that Spark knows (SL-1 to SL-9).
struct task_limit {
  std::int64_t tasks = 1;        ///< where cores are unknown, what custom resources allow, else a guess: 1
  std::string limiting_resource; ///< `cpus`, a custom name, or "" where nothing limits
  bool cores_known = false;

  bool operator==(const task_limit&) const = default;
};

/// The limit of a completed profile; on a tie the earlier resource limits, cpus first.
/// @pre `validate(completed)`
task_limit limit_of(const resource_profile& completed, const profile_rules& rules);

/// One sentence for each resource that the limit leaves unused (SL-11, SL-12). Whole slots are counted, so what is lost
/// inside one address is not told (SL-14).
std::vector<std::string> waste_of(const resource_profile& completed, const task_limit& limit);

/// Both halves as the author of neither wrote them: of each resource the larger request as a whole, that of `b` on a
/// tie (MG-4). Task-only where both are (MG-5).
resource_profile merge(const resource_profile& a, const resource_profile& b);

/// As Spark prints a profile: `Profile: id = 1, executor resources: cores -> name: cores, amount: 2, script: , vendor:
/// ,memory -> …, task resources: cpus -> name: cpus, amount: 1.0`. Memory in whole MiB (rounded down), counted sizes in
/// bytes; of task amounts all digits, where Spark writes those of a double.
std::string to_string(const resource_profile& profile, profile_id id);

} // namespace troupe::exact
