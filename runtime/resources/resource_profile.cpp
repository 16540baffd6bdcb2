#include <troupe/runtime/resources/resource_profile.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using detail::quote;

constexpr std::array<std::string_view, 5> builtin_executor_names{
    resource_names::cores, resource_names::memory, resource_names::memory_overhead, resource_names::off_heap,
    resource_names::pyspark_memory};

bool is_memory(std::string_view name) noexcept {
  return name != resource_names::cores && is_builtin_executor_resource(name);
}

std::string executor_text(std::string_view name, const executor_request& request) {
  return std::string{name} + " " + executor_amount_to_string(name, request.amount, request.counted);
}

error broken(std::string message) { return make_error(ec::invalid_profile, std::move(message)); }

/// Script and vendor travel into file names, logs and the wire: one line of text, nothing else.
bool is_one_line(std::string_view text) noexcept {
  return text.size() <= 4096 && std::none_of(text.begin(), text.end(),
                                             [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// What goes with a counted size, and what does not.
result<void> check_counted(const std::string& name, const executor_request& request) {
  if (!request.counted) return {};
  if (is_builtin_executor_resource(name))
    return broken("executor resource " + name + ": " + executor_amount_to_string(name, request.amount, true) +
                  " is marked as a counted size, which only custom resources are");
  if (request.discovery_script.empty() && request.vendor.empty()) return {};
  return broken("executor resource " + executor_text(name, request) +
                ": a size is counted and has no addresses, so nothing is discovered; leave out the " +
                (request.discovery_script.empty() ? "vendor" : "discovery script") +
                ", or write how many there are, without a unit");
}

result<void> check_executor_half(const resource_profile& profile) {
  std::int64_t memory_left = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, request] : profile.executor) {
    if (!is_valid_resource_name(name))
      return broken("executor resource " + quote(name) + ": " + std::string{resource_name_grammar});
    if (name == resource_names::cpus)
      return broken("executor resource cpus: executors have cores, only tasks take cpus; write cores");
    const bool says_none = name == resource_names::off_heap && request.amount == 0; // as in Spark's own (DF-5)
    if (request.amount <= 0 && !says_none)
      return broken("executor resource " + name + ": amount " + std::to_string(request.amount) +
                    " must be more than zero; leave the resource out instead");
    if (is_memory(name)) {
      if (request.amount > memory_left)
        return broken("executor resource " + name + ": the memory amounts of the profile add up to more than 2^63 - 1");
      memory_left -= request.amount;
    } else if (!request.counted && request.amount > largest_count) {
      return broken("executor resource " + name + ": amount " + std::to_string(request.amount) +
                    " is above 9000000, the largest count" +
                    (name == resource_names::cores ? "" : "; write a size with its unit, such as 40g"));
    }
    if (auto ok = check_counted(name, request); !ok) return ok;
    if (!is_one_line(request.discovery_script) || !is_one_line(request.vendor))
      return broken("executor resource " + name +
                    ": discovery script and vendor must be single lines of at most 4096 bytes");
  }
  return {};
}

result<void> check_task_half(const resource_profile& profile) {
  for (const auto& [name, amount] : profile.task) {
    if (!is_valid_resource_name(name))
      return broken("task resource " + quote(name) + ": " + std::string{resource_name_grammar});
    const bool is_size = name == resource_names::memory;
    if (is_builtin_executor_resource(name) && !is_size)
      return broken("task resource " + name +
                    ": this belongs to executors; tasks take cpus, memory and custom resources");
    if (amount.units <= 0)
      return broken("task resource " + name + ": amount " + to_string(amount) + " must be more than zero");
    if (is_size && !amount.is_whole())
      return broken("task resource memory: amount " + to_string(amount) +
                    " is no number of bytes; write a size such as 512m");
    const auto largest = name == resource_names::cpus ? largest_count : share::max_whole;
    if (amount > share::whole(largest))
      return broken("task resource " + name + ": amount " + to_string(amount) + " is above " + std::to_string(largest) +
                    ", the largest amount");
    if (name != resource_names::cpus && amount > share::whole(1) && !amount.is_whole())
      return broken("task resource " + name + ": amount " + to_string(amount) +
                    " must be either <= 1.0, or a whole number");
  }
  return {};
}

/// Whether a task's amount of a custom resource is of the executor clause's kind and within it.
result<void> check_custom_fit(const resource_profile& profile, const std::string& name,
                              const executor_request& request) {
  const share amount = profile.task_amount(name);
  const bool counted = request.counted || is_memory(name);
  if (request.counted && !amount.is_whole())
    return broken("task resource " + name + ": amount " + to_string(amount) + " is a fraction, but executors have " +
                  executor_text(name, request) +
                  ", a size that is counted and has no addresses to share; write a size such as 10g");
  if (amount.ceil() <= request.amount) return {};
  const auto one_task = counted ? task_amount_to_string(profile, name) : to_decimal(amount);
  return broken("The executor resource: " + name +
                ", amount: " + (counted ? memory_to_string(request.amount) : std::to_string(request.amount)) +
                " needs to be >= what one task takes of it: " + one_task +
                (!counted && amount > share::whole(largest_count)
                     ? "; if that is a size, write the executor's amount as one too, such as 40g"
                     : "; give the executor more of it, or the task less"));
}

/// Whether one task fits an executor of this very profile. What a half leaves to the defaults is not checked here. The
/// texts begin with Spark's words (spec SL-3, SL-5, SL-6), which people search for.
result<void> check_fit(const resource_profile& profile) {
  if (profile.is_task_only()) return {};
  std::string lacking;
  for (const auto& [name, amount] : profile.task) {
    if (name == resource_names::cpus) {
      const auto cores = profile.executor.find(std::string{resource_names::cores});
      if (cores != profile.executor.end() && amount.ceil() > cores->second.amount)
        return broken("The number of cores per executor (=" + std::to_string(cores->second.amount) +
                      ") has to be >= the cpus of one task (=" + to_string(amount) +
                      "): give the executor more cores, or the task fewer cpus");
    } else if (const auto clause = profile.executor.find(name); clause == profile.executor.end()) {
      if (name != resource_names::memory) lacking += (lacking.empty() ? "" : ", ") + name; // which has a default
    } else if (auto ok = check_custom_fit(profile, name, clause->second); !ok) {
      return ok;
    }
  }
  if (!lacking.empty())
    return broken("No executor resource configs were specified for " + lacking +
                  ", which tasks of the profile take: add it to the executor half");
  return {};
}

result<void> check_ceiling(const resource_profile& profile) {
  if (profile.memory_ceiling >= 0) return {};
  return broken("memory_ceiling " + std::to_string(profile.memory_ceiling) +
                " must be a size, or 0 for no more memory than before");
}

result<void> check_tenancy(const resource_profile& profile) {
  const auto most = profile.max_tasks_per_executor;
  if (most >= 0 && most <= largest_count) return {};
  return broken("max_tasks_per_executor " + std::to_string(most) + " must be between 1 and " +
                std::to_string(largest_count) + ", or 0 for as many as fit");
}

/// Each is a profile by itself, and another one.
result<void> check_alternatives(const resource_profile& profile) {
  if (profile.alternatives.size() > max_alternatives)
    return broken("the profile has " + std::to_string(profile.alternatives.size()) + " alternatives, at most " +
                  std::to_string(max_alternatives) + " are allowed");
  std::set<resource_profile> seen{first_choice(profile)};
  for (const auto& alternative : profile.alternatives) {
    if (!alternative.alternatives.empty())
      return broken("an alternative (" + to_string(alternative) +
                    ") has alternatives itself; list them all with the first choice, in order");
    if (auto ok = validate(alternative); !ok) return broken("alternative: " + ok.error().message);
    if (!seen.insert(alternative).second)
      return broken("the profile names the choice (" + to_string(alternative) + ") twice");
  }
  return {};
}

/// Replaces what `whole` has of the default profile's overhead, which was computed too, unless `written` gives its own.
void add_overhead(resource_profile& whole, const resource_profile& written, const resource_profile& defaults,
                  const overhead_rule& rule) {
  const std::string name{resource_names::memory_overhead};
  if (!rule.is_active() || written.executor.contains(name)) return;
  const auto bytes = overhead_of(rule, whole.executor_amount(resource_names::memory),
                                 defaults.executor_amount(resource_names::memory));
  whole.executor.erase(name);
  if (bytes > 0) whole.executor[name].amount = bytes;
}

} // namespace

bool is_builtin_executor_resource(std::string_view name) noexcept {
  return std::find(builtin_executor_names.begin(), builtin_executor_names.end(), name) != builtin_executor_names.end();
}

bool is_valid_resource_name(std::string_view name) noexcept {
  const auto is_alnum = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 128 && is_alnum(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-' || c == '/'; });
}

std::int64_t resource_profile::executor_amount(std::string_view name) const noexcept {
  for (const auto& [key, request] : executor)
    if (key == name) return request.amount;
  return 0;
}

share resource_profile::task_amount(std::string_view name) const noexcept {
  for (const auto& [key, amount] : task)
    if (key == name) return amount;
  return {};
}

bool resource_profile::is_counted(std::string_view name) const noexcept {
  for (const auto& [key, request] : executor)
    if (key == name) return request.counted;
  return false;
}

std::string executor_amount_to_string(std::string_view name, std::int64_t amount, bool counted) {
  return amount_to_string(amount, counted || is_memory(name));
}

std::string task_amount_to_string(const resource_profile& profile, std::string_view name) {
  const share amount = profile.task_amount(name);
  const bool is_clause = profile.executor.contains(std::string{name});
  const bool is_size = is_memory(name) || (is_clause ? profile.is_counted(name) : amount > share::whole(largest_count));
  return is_size && amount.is_whole() ? amount_to_string(amount.ceil(), true) : to_string(amount);
}

std::string to_string(const resource_profile& profile) {
  std::string executor;
  const auto add_executor = [&](std::string_view name, const executor_request& request) {
    executor += (executor.empty() ? "executor: " : ", ") + executor_text(name, request);
  };
  for (const auto name : builtin_executor_names)
    if (const auto found = profile.executor.find(std::string{name}); found != profile.executor.end())
      add_executor(name, found->second);
  for (const auto& [name, request] : profile.executor)
    if (!is_builtin_executor_resource(name)) add_executor(name, request);

  std::string task;
  const auto add_task = [&](std::string_view name) {
    task += (task.empty() ? "task: " : ", ") + std::string{name} + " " + task_amount_to_string(profile, name);
  };
  if (profile.task.contains(std::string{resource_names::cpus})) add_task(resource_names::cpus);
  for (const auto& [name, amount] : profile.task)
    if (name != resource_names::cpus) add_task(name);

  std::string text = executor + (executor.empty() || task.empty() ? "" : "; ") + task;
  if (text.empty()) text = "default";
  if (const auto most = profile.max_tasks_per_executor; most > 0)
    text += "; at most " + std::to_string(most) + (most == 1 ? " task per executor" : " tasks per executor");
  if (profile.exclusive) text += "; exclusive";
  if (const auto ceiling = profile.memory_ceiling; ceiling > 0)
    text += "; up to " + memory_to_string(ceiling) + " of memory when tried again";
  for (const auto& alternative : profile.alternatives) text += " else (" + to_string(alternative) + ")";
  return text;
}

resource_profile first_choice(const resource_profile& profile) {
  auto first = profile;
  first.alternatives.clear();
  return first;
}

result<void> validate(const resource_profile& profile) {
  if (auto ok = check_executor_half(profile); !ok) return ok;
  if (auto ok = check_task_half(profile); !ok) return ok;
  if (auto ok = check_tenancy(profile); !ok) return ok;
  if (auto ok = check_ceiling(profile); !ok) return ok;
  if (auto ok = check_fit(profile); !ok) return ok;
  return check_alternatives(profile);
}

resource_profile complete(const resource_profile& profile, const resource_profile& defaults,
                          const overhead_rule& overhead) {
  if (profile == resource_profile{}) return defaults;
  resource_profile whole = profile;
  if (profile.is_task_only()) {
    whole.executor = defaults.executor;
  } else {
    for (const auto& [name, request] : defaults.executor)
      if (is_builtin_executor_resource(name)) whole.executor.emplace(name, request);
    add_overhead(whole, profile, defaults, overhead);
  }
  if (const auto cpus = defaults.task.find(std::string{resource_names::cpus}); cpus != defaults.task.end())
    whole.task.insert(*cpus);
  if (whole.memory_ceiling == 0) whole.memory_ceiling = defaults.memory_ceiling;
  return whole;
}

void merge_terms(resource_profile& into, const resource_profile& other) noexcept {
  auto& most = into.max_tasks_per_executor;
  if (most == 0 || (other.max_tasks_per_executor > 0 && other.max_tasks_per_executor < most))
    most = other.max_tasks_per_executor;
  into.exclusive = into.exclusive || other.exclusive;
  into.memory_ceiling = std::max(into.memory_ceiling, other.memory_ceiling);
}

result<void> check_merge(const resource_profile& a, const resource_profile& b) {
  for (const auto& [name, request] : a.executor) {
    const auto other = b.executor.find(name);
    if (other == b.executor.end() || other->second.counted == request.counted) continue;
    return broken("executor resource " + name + ": one of the two has " + executor_text(name, request) +
                  ", the other " + executor_text(name, other->second) + ": a size and a number cannot be compared");
  }
  return {};
}

resource_profile merge(const resource_profile& a, const resource_profile& b) {
  resource_profile larger = a;
  for (const auto& [name, request] : b.executor) {
    const auto [clause, added] = larger.executor.emplace(name, request);
    if (!added && request.amount > clause->second.amount) clause->second = request;
  }
  for (const auto& [name, amount] : b.task) {
    const auto [clause, added] = larger.task.emplace(name, amount);
    if (!added && amount > clause->second) clause->second = amount;
  }
  merge_terms(larger, b);
  return larger;
}

} // namespace troupe
