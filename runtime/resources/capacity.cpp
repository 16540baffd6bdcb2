#include <troupe/runtime/resources/capacity.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using detail::quote;

bool is_counted(const executor_capacity& capacity, std::string_view name) {
  const auto pool = capacity.custom.find(std::string{name});
  return pool != capacity.custom.end() && pool->second.counted;
}

/// What an executor has where a clause that is a size, or none, asks for it.
std::string present_text(const executor_capacity& capacity, std::string_view name, bool counted) {
  const std::int64_t present = capacity.amount_of(name);
  if (present == 0) return executor_amount_to_string(name, 0, false);
  const bool has_size = is_counted(capacity, name);
  return executor_amount_to_string(name, present, has_size) + (has_size == counted ? ""
                                                               : has_size          ? " as a size"
                                                                                   : " as a number");
}

/// Tasks that take `part` each out of `total` whole ones. A fraction is never split over two addresses; what is only
/// counted has no such borders.
std::int64_t slots_in(std::int64_t total, bool has_addresses, share part) noexcept {
  if (part.units <= 0) return 0;
  if (part.is_whole() || !has_addresses) return fits(share::whole(total), part);
  return total * fits(share::whole(1), part);
}

/// The one place where slots are derived. `slots_of_pool(name, part)` says how many tasks one custom resource allows.
template <class F>
slot_count count_slots(std::int64_t cores, std::int64_t memory, const resource_profile& profile, F slots_of_pool) {
  slot_count count;
  bool limited = false;
  const auto limit = [&](std::string_view name, std::int64_t slots) {
    if (limited && slots >= count.slots) return;
    limited = true;
    count = {slots, std::string{name}};
  };
  if (const auto cpus = profile.task_amount(resource_names::cpus); !cpus.is_zero())
    limit(resource_names::cpus, fits(share::whole(cores), cpus));
  if (const auto part = profile.task_amount(resource_names::memory); !part.is_zero())
    limit(resource_names::memory, slots_in(memory, false, part));
  for (const auto& [name, part] : profile.task)
    if (name != resource_names::cpus && name != resource_names::memory) limit(name, slots_of_pool(name, part));
  if (limited && profile.max_tasks_per_executor > 0) limit(max_tasks_name, profile.max_tasks_per_executor);
  return count;
}

} // namespace

std::int64_t executor_capacity::amount_of(std::string_view name) const noexcept {
  if (name == resource_names::cores) return cores;
  if (name == resource_names::memory) return memory;
  if (name == resource_names::memory_overhead) return memory_overhead;
  if (name == resource_names::off_heap) return off_heap;
  if (name == resource_names::pyspark_memory) return pyspark_memory;
  for (const auto& [key, pool] : custom)
    if (key == name) return pool.amount;
  return 0;
}

std::int64_t container_memory(const executor_capacity& c) noexcept {
  std::int64_t sum = 0;
  for (const std::int64_t part : {c.memory, c.memory_overhead, c.off_heap, c.pyspark_memory})
    if (__builtin_add_overflow(sum, part, &sum)) return share::max_whole;
  return sum;
}

bool is_valid_address(std::string_view address) noexcept {
  return !address.empty() && address.size() <= 128 &&
         std::all_of(address.begin(), address.end(), [](char c) { return c > 0x20 && c < 0x7f && c != ','; });
}

result<void> validate(const executor_capacity& capacity) {
  const auto bad = [](std::string message) { return make_error(ec::invalid_argument, std::move(message)); };
  if (capacity.cores < 0 || capacity.cores > largest_count)
    return bad("cores " + std::to_string(capacity.cores) + " must lie between 0 and 9000000");
  std::int64_t memory_left = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t bytes :
       {capacity.memory, capacity.memory_overhead, capacity.off_heap, capacity.pyspark_memory}) {
    if (bytes < 0 || bytes > memory_left)
      return bad("the memory amounts of an executor must not be negative nor add up to more than 2^63 - 1");
    memory_left -= bytes;
  }
  for (const auto& [name, pool] : capacity.custom) {
    if (!is_valid_resource_name(name) || is_builtin_executor_resource(name) || name == resource_names::cpus)
      return bad("custom resource " + quote(name) + ": " + std::string{resource_name_grammar} +
                 ", and is none of the built-in names");
    if (pool.amount < 0 || (!pool.counted && pool.amount > largest_count))
      return bad(name + " " + std::to_string(pool.amount) + " must lie between 0 and " +
                 std::to_string(pool.counted ? share::max_whole : largest_count));
    if (pool.counted && !pool.addresses.empty())
      return bad(name + " " + memory_to_string(pool.amount) + " is a size, which is counted and has no addresses");
    if (!pool.addresses.empty() && pool.addresses.size() != static_cast<std::size_t>(pool.amount))
      return bad(name + " " + std::to_string(pool.amount) + " comes with " + std::to_string(pool.addresses.size()) +
                 " addresses");
    std::set<std::string_view> seen;
    for (const auto& address : pool.addresses) {
      if (!is_valid_address(address))
        return bad(name + " address " + quote(address) + ": " + std::string{address_grammar});
      if (!seen.insert(address).second) return bad(name + " address " + quote(address) + " is there twice");
    }
  }
  return {};
}

executor_capacity capacity_of(const resource_profile& profile) {
  executor_capacity capacity{
      profile.executor_amount(resource_names::cores),           profile.executor_amount(resource_names::memory),
      profile.executor_amount(resource_names::memory_overhead), profile.executor_amount(resource_names::off_heap),
      profile.executor_amount(resource_names::pyspark_memory),  {}};
  for (const auto& [name, request] : profile.executor)
    if (!is_builtin_executor_resource(name)) capacity.custom[name] = {request.amount, {}, request.counted};
  return capacity;
}

std::string to_string(const shortfall& s) { return "needs " + s.resource + " " + s.wanted + ", has " + s.present; }

std::vector<shortfall> shortfalls(const executor_capacity& capacity, const resource_profile& profile) {
  std::vector<shortfall> missing;
  std::set<std::string_view> named;
  for (const auto& [name, request] : profile.executor) {
    if (capacity.amount_of(name) >= request.amount && is_counted(capacity, name) == request.counted) continue;
    missing.push_back({name, executor_amount_to_string(name, request.amount, request.counted),
                       present_text(capacity, name, request.counted)});
    named.insert(name);
  }
  for (const auto& [name, amount] : profile.task) {
    const std::string_view clause = name == resource_names::cpus ? resource_names::cores : std::string_view{name};
    const std::int64_t present = capacity.amount_of(clause);
    // What the executor clause has already said is not said twice.
    if (present < amount.ceil() && named.count(clause) == 0)
      missing.push_back({name, task_amount_to_string(profile, name),
                         executor_amount_to_string(clause, present, is_counted(capacity, clause))});
  }
  return missing;
}

slot_count slots_of(const executor_capacity& capacity, const resource_profile& profile) {
  return count_slots(capacity.cores, capacity.memory, profile,
                     [&](const std::string& name, share part) -> std::int64_t {
                       const auto pool = capacity.custom.find(name);
                       if (pool == capacity.custom.end()) return 0;
                       return slots_in(pool->second.amount, !pool->second.addresses.empty(), part);
                     });
}

slot_count slots_of(const resource_profile& profile) {
  return count_slots(profile.executor_amount(resource_names::cores), profile.executor_amount(resource_names::memory),
                     profile, [&](const std::string& name, share part) {
                       return slots_in(profile.executor_amount(name), !profile.is_counted(name), part);
                     });
}

} // namespace troupe
