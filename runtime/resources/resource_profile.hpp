#pragma once

/// Resource profiles: what an executor must have, and what one task takes of it. Immutable once built; equality is by
/// content (spec section 13, item 2). Any thread.

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/resources/overhead.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Names that mean something to Troupe itself on the executor side; every other name is a custom resource.
namespace resource_names {
inline constexpr std::string_view cores = "cores";                    ///< count
inline constexpr std::string_view memory = "memory";                  ///< bytes; on the task side too, of that memory
inline constexpr std::string_view memory_overhead = "memoryOverhead"; ///< bytes
inline constexpr std::string_view off_heap = "offHeap";               ///< bytes
inline constexpr std::string_view pyspark_memory = "pyspark.memory";  ///< bytes; Spark's name, for other interpreters
inline constexpr std::string_view cpus = "cpus";                      ///< task side, share of cores
inline constexpr std::string_view gpu = "gpu";                        ///< an ordinary custom name with its own variable
} // namespace resource_names

/// True for cores, memory, memoryOverhead, offHeap and pyspark.memory (spec DM-2).
bool is_builtin_executor_resource(std::string_view name) noexcept;

/// Whether a resource may be called so: 1 to 128 letters, digits and `. _ - /`, the first a letter or digit. Names end
/// up in variables, labels and messages.
bool is_valid_resource_name(std::string_view name) noexcept;
/// That rule, to follow a colon in a message.
inline constexpr std::string_view resource_name_grammar =
    "a resource name has 1 to 128 letters, digits and . _ - /, and begins with a letter or digit";

/// One clause of the executor half (spec DM-1). A *counted* one is a custom resource whose amount is a size, such as
/// `gpu-memory 40g`: it has no addresses and is never looked for; an executor owns exactly that amount, and tasks take
/// whole bytes of it.
struct executor_request {
  std::int64_t amount = 0;      ///< count, or bytes for the memory names and where `counted`
  std::string discovery_script; ///< program that prints the addresses as JSON; empty: configured elsewhere
  std::string vendor;           ///< meaningful on Kubernetes only
  bool counted = false;         ///< of a custom resource: a size

  auto operator<=>(const executor_request&) const = default;
};

/// An executor half and a task half. A profile without an executor half is *task-only*: it takes the executor half of
/// the default profile (spec DF-16 [T]).
struct resource_profile {
  std::map<std::string, executor_request> executor;
  std::map<std::string, share> task;
  /// How many of its tasks run on one executor at once, whatever else has room there; 0: as many as fit.
  std::int64_t max_tasks_per_executor = 0;
  /// An executor that runs tasks of it runs none of another profile meanwhile.
  bool exclusive = false;
  /// A task that ran out of memory is tried again with more, doubled each time up to so many bytes; 0: with as much.
  std::int64_t memory_ceiling = 0;
  /// What its tasks may run as instead, in order of preference: what is free first is taken, and executors are asked
  /// for one after the other (`troupe.scheduler.alternative-wait`). They have none themselves.
  std::vector<resource_profile> alternatives{};
  /// Which call of `resource_profile_builder::build`, or which entry of a file, made it: unique in its process; 0:
  /// none. Copies share it. No part of the content; only policy `exact` looks at it (spec DM-16, MG-2).
  std::uint64_t build = 0;

  bool operator==(const resource_profile& other) const { return (*this <=> other) == 0; }
  std::strong_ordering operator<=>(const resource_profile& other) const {
    return std::tie(executor, task, max_tasks_per_executor, exclusive, memory_ceiling, alternatives) <=>
           std::tie(other.executor, other.task, other.max_tasks_per_executor, other.exclusive, other.memory_ceiling,
                    other.alternatives);
  }
  bool is_task_only() const noexcept { return executor.empty(); }

  /// Amount of one executor clause, 0 where it is absent.
  std::int64_t executor_amount(std::string_view name) const noexcept;
  /// What one task takes of `name`, zero where it is absent.
  share task_amount(std::string_view name) const noexcept;
  /// Whether the executor clause `name` is a counted size.
  bool is_counted(std::string_view name) const noexcept;
};

/// Most alternatives of one profile.
inline constexpr std::size_t max_alternatives = 8;
/// The profile without its alternatives; of the same build.
resource_profile first_choice(const resource_profile& profile);

/// An amount of an executor resource for people: `2`, and `4g` for memory and counted sizes.
std::string executor_amount_to_string(std::string_view name, std::int64_t amount, bool counted);

/// What one task of `profile` takes of `name`, for people: a size where its executors count one. Without that clause
/// only a size can be above `largest_count`.
std::string task_amount_to_string(const resource_profile& profile, std::string_view name);

/// One line for people: `executor: cores 2, memory 1g, gpu 1; task: cpus 1, gpu 0.5`, then `; at most 2 tasks per
/// executor`, `; exclusive`, `; up to 16g of memory when tried again`, and ` else (…)` for each alternative.
std::string to_string(const resource_profile& profile);

/// Checks a profile that came from outside (a file, the wire) by the rules of `try_build`.
result<void> validate(const resource_profile& profile);

/// `profile` with the parts that it leaves out taken from `defaults`: cores and the memory names one by one; the task's
/// cpus; the ceiling; the whole executor half, custom resources included, where `profile` is task-only. A
/// memoryOverhead that is left out follows `overhead`, where that is active. A profile with nothing in it becomes
/// `defaults`. The result may break a rule that `profile` alone did not (a task that needs more cpus than the default
/// has cores): `validate` it.
resource_profile complete(const resource_profile& profile, const resource_profile& defaults,
                          const overhead_rule& overhead = {});

/// Of a merger of two profiles: the smaller bound of tasks per executor, exclusive where one of them is, and the larger
/// ceiling.
void merge_terms(resource_profile& into, const resource_profile& other) noexcept;

/// Error when the two cannot be merged: one counts a resource as a size and the other does not.
result<void> check_merge(const resource_profile& a, const resource_profile& b);

/// Element by element the larger amount (`troupe.scheduler.profile-change = merge`; spec MG-*). Discovery script and
/// vendor come from the larger clause, from `a` on a tie. @pre the two pass `check_merge`
resource_profile merge(const resource_profile& a, const resource_profile& b);

} // namespace troupe
