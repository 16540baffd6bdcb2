#include <troupe/runtime/resources/profile_notes.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <troupe/runtime/resources/quote.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {
namespace {

struct slip {
  std::string_view written; ///< lower case, without `-`, `_` and `.`
  std::string_view meant;
};

// Spellings of people who come from other systems. What Troupe knows itself is in neither list.
constexpr std::array<slip, 17> executor_slips{{
    {"cpu", resource_names::cores},
    {"core", resource_names::cores},
    {"cores", resource_names::cores},
    {"vcore", resource_names::cores},
    {"vcores", resource_names::cores},
    {"mem", resource_names::memory},
    {"memory", resource_names::memory},
    {"ram", resource_names::memory},
    {"overhead", resource_names::memory_overhead},
    {"memoryoverhead", resource_names::memory_overhead},
    {"memoverhead", resource_names::memory_overhead},
    {"offheap", resource_names::off_heap},
    {"offheapmemory", resource_names::off_heap},
    {"pyspark", resource_names::pyspark_memory},
    {"pysparkmemory", resource_names::pyspark_memory},
    {"gpus", resource_names::gpu},
    {"gpu", resource_names::gpu},
}};
constexpr std::array<slip, 10> task_slips{{
    {"cpu", resource_names::cpus},
    {"cpus", resource_names::cpus},
    {"core", resource_names::cpus},
    {"vcore", resource_names::cpus},
    {"vcores", resource_names::cpus},
    {"mem", resource_names::memory},
    {"memory", resource_names::memory},
    {"ram", resource_names::memory},
    {"gpus", resource_names::gpu},
    {"gpu", resource_names::gpu},
}};

/// What a slip of one letter, or two in the wrong order, can hide. Short names have too many neighbours.
constexpr std::array<std::string_view, 5> long_executor_names{resource_names::cores, resource_names::memory,
                                                              resource_names::memory_overhead, resource_names::off_heap,
                                                              resource_names::pyspark_memory};
constexpr std::array<std::string_view, 1> long_task_names{resource_names::memory};

/// The name without what people vary: case and separators.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '-' && c != '_' && c != '.') out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

template <std::size_t N, std::size_t M>
void note_slip(const std::array<slip, N>& slips, const std::array<std::string_view, M>& long_names,
               std::string_view side, std::string_view name, std::vector<std::string>& notes) {
  const auto written = plain(name);
  const auto found = std::find_if(slips.begin(), slips.end(), [&](const slip& s) { return s.written == written; });
  const auto near = std::find_if(long_names.begin(), long_names.end(), [&](std::string_view known) {
    return written.size() <= 64 && edit_distance(written, plain(known)) == 1;
  });
  const auto meant = found != slips.end() ? found->meant : near != long_names.end() ? *near : name;
  if (meant != name)
    notes.push_back(std::string{side} + " resource " + std::string{name} + " is a custom resource; did you mean " +
                    std::string{meant} + "?");
}

} // namespace

std::string to_string(const idle_amount& idle) {
  return to_string(idle, idle.idle) + " of " + to_string(idle, idle.total) + " " + idle.resource + " stay idle";
}

std::string to_string(const idle_amount& idle, share amount) {
  return idle.counted ? amount_to_string(amount.ceil(), true) : to_string(amount);
}

std::vector<idle_amount> idle_amounts_of(const resource_profile& profile) {
  std::vector<idle_amount> idle;
  const auto count = slots_of(profile);
  const auto add = [&](std::string_view name, std::int64_t amount, share part) {
    const share total = share::whole(amount);
    const share rest{total.units - count.slots * part.units}; // slots fit, so the product is at most the total
    // Rounding a share down loses less than one unit, so that much per slot is no waste.
    const bool counted = name == resource_names::memory || profile.is_counted(name);
    if (rest.units > count.slots) idle.push_back({std::string{name}, total, rest, counted});
  };
  if (const auto cpus = profile.task_amount(resource_names::cpus); !cpus.is_zero())
    add(resource_names::cores, profile.executor_amount(resource_names::cores), cpus);
  for (const auto& [name, part] : profile.task)
    if (name != resource_names::cpus) add(name, profile.executor_amount(name), part);
  return idle;
}

std::vector<std::string> suspicions_about(const resource_profile& profile) {
  std::vector<std::string> notes;
  for (const auto& [name, request] : profile.executor) {
    if (is_builtin_executor_resource(name)) continue;
    note_slip(executor_slips, long_executor_names, "executor", name, notes);
    if (profile.task.count(name) == 0)
      notes.push_back("executor resource " + name + " " +
                      executor_amount_to_string(name, request.amount, request.counted) +
                      " is taken by no task of the profile");
  }
  for (const auto& [name, amount] : profile.task) note_slip(task_slips, long_task_names, "task", name, notes);
  return notes;
}

std::vector<std::string> unused_scripts_of(const resource_profile& profile, const resource_profile& defaults) {
  std::vector<std::string> notes;
  for (const auto& [name, request] : profile.executor) {
    const auto known = defaults.executor.find(name);
    const bool runs = known != defaults.executor.end() && known->second.discovery_script == request.discovery_script;
    if (!request.discovery_script.empty() && !runs)
      notes.push_back("executor resource " + name + ": the profile's discovery script " +
                      detail::quote(request.discovery_script) +
                      " is not run, since machines are looked at before there are jobs; set troupe.executor.resource." +
                      name + ".discovery-script, or list addresses in the cluster file");
  }
  return notes;
}

} // namespace troupe
