#pragma once

/// What one executor owns, and which tasks and profiles fit it. One function for slots, used everywhere (DESIGN 1.2;
/// spec section 13, item 14). Pure values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// A custom resource of an executor. With addresses, `amount` equals their number and tasks get addresses; without,
/// the amount is only counted.
struct resource_pool {
  std::int64_t amount = 0;            ///< count, or bytes of a counted size
  std::vector<std::string> addresses; ///< opaque texts, unique, in the executor's order
  bool counted = false;               ///< a size (see executor_request), which serves clauses that are sizes alone

  auto operator<=>(const resource_pool&) const = default;
};

/// Everything that an executor owns.
struct executor_capacity {
  std::int64_t cores = 0;
  std::int64_t memory = 0;          ///< bytes
  std::int64_t memory_overhead = 0; ///< bytes
  std::int64_t off_heap = 0;        ///< bytes
  std::int64_t pyspark_memory = 0;  ///< bytes
  std::map<std::string, resource_pool> custom;

  auto operator<=>(const executor_capacity&) const = default;
  /// Amount of any named executor resource, built in or custom; 0 where it has none.
  std::int64_t amount_of(std::string_view name) const noexcept;
};

/// All memory that an executor takes, in bytes: heap, overhead, off-heap and pyspark.memory (spec DF-14); 2^63 - 1
/// where they add up to more.
std::int64_t container_memory(const executor_capacity& capacity) noexcept;

/// Whether a resource address may be spelled so: 1 to 128 printable ASCII characters, no blank, no comma. Addresses are
/// opaque, but they are joined by commas in variables and shown in messages.
bool is_valid_address(std::string_view address) noexcept;
/// That rule, to follow a colon in a message.
inline constexpr std::string_view address_grammar =
    "an address has 1 to 128 printable ASCII characters, no blank and no comma";

/// Checks a capacity that came from outside: amounts in range, addresses well formed, unique, and as many as the amount
/// says or none.
result<void> validate(const executor_capacity& capacity);

/// The capacity of an executor that is exactly `profile`'s executor half; custom resources have no addresses yet.
executor_capacity capacity_of(const resource_profile& profile);

/// One clause of a profile that an executor does not satisfy.
struct shortfall {
  std::string resource; ///< `cores`, `memory`, `gpu`, `cpus` …
  std::string wanted;   ///< as people write it
  std::string present;

  auto operator<=>(const shortfall&) const = default;
};
/// `needs gpu 1, has 0`.
std::string to_string(const shortfall& s);

/// The predicate that placement evaluates and that explanations are made from: every executor clause of `profile` is
/// at most what the executor has, and one task of it fits. Empty: satisfied. All failing clauses are listed.
/// @pre `profile` is complete (see `complete`).
std::vector<shortfall> shortfalls(const executor_capacity& capacity, const resource_profile& profile);
inline bool satisfies(const executor_capacity& capacity, const resource_profile& profile) {
  return shortfalls(capacity, profile).empty();
}

/// What stands for a profile's own bound where something limits its slots.
inline constexpr std::string_view max_tasks_name = "max-tasks-per-executor";

/// How many tasks of a profile an empty executor runs at once, and what limits that. A task that takes nothing has no
/// slot.
struct slot_count {
  std::int64_t slots = 0;
  /// `cpus`, `memory`, a custom name or `max-tasks-per-executor`; on a tie the first of these, customs by name
  std::string limiting_resource;

  auto operator<=>(const slot_count&) const = default;
};
/// @pre `capacity` passes `validate`, `profile` is complete
slot_count slots_of(const executor_capacity& capacity, const resource_profile& profile);

/// The same for an executor that is exactly `profile`, each of whose custom resources but the counted sizes will have
/// addresses. (A resource that is only counted may hold more of a fraction like 0.4, which addresses cannot split.)
/// @pre `profile` is complete
slot_count slots_of(const resource_profile& profile);

} // namespace troupe
