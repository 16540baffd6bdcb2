#include <troupe/runtime/resources/resource_profile.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using detail::quote;

constexpr std::array<std::string_view, 4> builtin_executor_names{
    resource_names::cores, resource_names::memory, resource_names::memory_overhead, resource_names::off_heap};

bool is_memory(std::string_view name) noexcept {
  return name != resource_names::cores && is_builtin_executor_resource(name);
}

std::string executor_text(std::string_view name, std::int64_t amount) {
  return std::string{name} + " " + (is_memory(name) ? memory_to_string(amount) : std::to_string(amount));
}

error broken(std::string message) { return make_error(ec::invalid_profile, std::move(message)); }

/// Script and vendor travel into file names, logs and the wire: one line of text, nothing else.
bool is_one_line(std::string_view text) noexcept {
  return text.size() <= 4096 && std::none_of(text.begin(), text.end(),
                                             [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
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
    } else if (request.amount > share::max_whole) {
      return broken("executor resource " + name + ": amount " + std::to_string(request.amount) +
                    " is above 9000000, the largest amount");
    }
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
    if (is_builtin_executor_resource(name))
      return broken("task resource " + name + ": this belongs to executors; tasks take cpus and custom resources");
    if (amount.units <= 0)
      return broken("task resource " + name + ": amount " + to_string(amount) + " must be more than zero");
    if (amount > share::whole(share::max_whole))
      return broken("task resource " + name + ": amount " + to_string(amount) +
                    " is above 9000000, the largest amount");
    if (name != resource_names::cpus && amount > share::whole(1) && !amount.is_whole())
      return broken("task resource " + name + ": amount " + to_string(amount) +
                    " must be either <= 1.0, or a whole number");
  }
  return {};
}

/// Whether one task fits an executor of this very profile. What a half leaves to the defaults is not checked here. The
/// texts begin with Spark's words (spec SL-3, SL-5, SL-6), which people search for.
result<void> check_fit(const resource_profile& profile) {
  if (profile.is_task_only()) return {};
  std::string lacking;
  for (const auto& [name, amount] : profile.task) {
    const bool is_cpus = name == resource_names::cpus;
    const std::string clause{is_cpus ? resource_names::cores : std::string_view{name}};
    if (profile.executor.count(clause) == 0) {
      if (!is_cpus) lacking += (lacking.empty() ? "" : ", ") + name;
      continue;
    }
    const auto present = profile.executor_amount(clause);
    if (amount.ceil() <= present) continue;
    if (is_cpus)
      return broken("The number of cores per executor (=" + std::to_string(present) +
                    ") has to be >= the cpus of one task (=" + to_string(amount) +
                    "): give the executor more cores, or the task fewer cpus");
    return broken("The executor resource: " + name + ", amount: " + std::to_string(present) +
                  " needs to be >= what one task takes of it: " + to_decimal(amount) +
                  "; give the executor more of it, or the task less");
  }
  if (!lacking.empty())
    return broken("No executor resource configs were specified for " + lacking +
                  ", which tasks of the profile take: add it to the executor half");
  return {};
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

executor_resource_requests& executor_resource_requests::cores(std::int64_t count) {
  return resource(std::string{resource_names::cores}, count);
}

executor_resource_requests& executor_resource_requests::memory(std::string_view size) {
  return sized(resource_names::memory, size);
}

executor_resource_requests& executor_resource_requests::memory_overhead(std::string_view size) {
  return sized(resource_names::memory_overhead, size);
}

executor_resource_requests& executor_resource_requests::off_heap(std::string_view size) {
  return sized(resource_names::off_heap, size);
}

executor_resource_requests& executor_resource_requests::resource(std::string name, std::int64_t amount,
                                                                 std::string discovery_script, std::string vendor) {
  requests_[std::move(name)] = {amount, std::move(discovery_script), std::move(vendor)};
  return *this;
}

executor_resource_requests& executor_resource_requests::sized(std::string_view name, std::string_view size) {
  const auto bytes = parse_memory(size);
  if (bytes)
    resource(std::string{name}, *bytes);
  else
    errors_.push_back(broken("executor resource " + std::string{name} + ": " + bytes.error().message));
  return *this;
}

task_resource_requests& task_resource_requests::cpus(std::int64_t count) {
  return resource(std::string{resource_names::cpus}, count);
}

task_resource_requests& task_resource_requests::cpus(std::string_view amount) {
  return resource(std::string{resource_names::cpus}, amount);
}

task_resource_requests& task_resource_requests::resource(std::string name, std::int64_t amount) {
  if (amount >= 0 && amount <= share::max_whole) return put(std::move(name), share::whole(amount));
  return put(std::move(name), make_error(ec::invalid_argument, "amount " + std::to_string(amount) +
                                                                   " must be a whole number from 1 to 9000000"));
}

task_resource_requests& task_resource_requests::resource(std::string name, std::string_view amount) {
  return put(std::move(name), parse_share(amount));
}

task_resource_requests& task_resource_requests::put(std::string name, result<share> amount) {
  if (amount)
    requests_[std::move(name)] = *amount;
  else
    errors_.push_back(broken("task resource " + name + ": " + amount.error().message));
  return *this;
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

std::string to_string(const resource_profile& profile) {
  std::string executor;
  const auto add_executor = [&](std::string_view name, std::int64_t amount) {
    executor += (executor.empty() ? "executor: " : ", ") + executor_text(name, amount);
  };
  for (const auto name : builtin_executor_names)
    if (const auto found = profile.executor.find(std::string{name}); found != profile.executor.end())
      add_executor(name, found->second.amount);
  for (const auto& [name, request] : profile.executor)
    if (!is_builtin_executor_resource(name)) add_executor(name, request.amount);

  std::string task;
  const auto add_task = [&](std::string_view name, share amount) {
    task += (task.empty() ? "task: " : ", ") + std::string{name} + " " + to_string(amount);
  };
  if (const auto found = profile.task.find(std::string{resource_names::cpus}); found != profile.task.end())
    add_task(found->first, found->second);
  for (const auto& [name, amount] : profile.task)
    if (name != resource_names::cpus) add_task(name, amount);

  std::string text = executor + (executor.empty() || task.empty() ? "" : "; ") + task;
  if (text.empty()) text = "default";
  for (const auto& alternative : profile.alternatives) text += " else (" + to_string(alternative) + ")";
  return text;
}

resource_profile first_choice(const resource_profile& profile) {
  auto first = profile;
  first.alternatives.clear();
  return first;
}

resource_profile_builder& resource_profile_builder::require(const executor_resource_requests& requests) {
  for (const auto& [name, request] : requests.requests()) executor_[name] = request;
  errors_.insert(errors_.end(), requests.errors().begin(), requests.errors().end());
  return *this;
}

resource_profile_builder& resource_profile_builder::require(const task_resource_requests& requests) {
  for (const auto& [name, amount] : requests.requests()) task_[name] = amount;
  errors_.insert(errors_.end(), requests.errors().begin(), requests.errors().end());
  return *this;
}

resource_profile_builder& resource_profile_builder::or_else(resource_profile alternative) {
  alternatives_.push_back(std::move(alternative));
  return *this;
}

result<resource_profile> resource_profile_builder::try_build() const {
  if (!errors_.empty()) return errors_.front();
  resource_profile profile{executor_, task_, alternatives_, 0};
  if (auto ok = validate(profile); !ok) return ok.error();
  profile.build = next_profile_build();
  return profile;
}

resource_profile resource_profile_builder::build() const {
  auto profile = try_build();
  if (!profile) throw std::invalid_argument(profile.error().message);
  return *std::move(profile);
}

std::uint64_t next_profile_build() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

result<void> validate(const resource_profile& profile) {
  if (auto ok = check_executor_half(profile); !ok) return ok;
  if (auto ok = check_task_half(profile); !ok) return ok;
  if (auto ok = check_fit(profile); !ok) return ok;
  return check_alternatives(profile);
}

resource_profile complete(const resource_profile& profile, const resource_profile& defaults) {
  if (profile == resource_profile{}) return defaults;
  resource_profile whole = profile;
  if (profile.is_task_only()) {
    whole.executor = defaults.executor;
  } else {
    for (const auto& [name, request] : defaults.executor)
      if (is_builtin_executor_resource(name)) whole.executor.emplace(name, request);
  }
  if (const auto cpus = defaults.task.find(std::string{resource_names::cpus}); cpus != defaults.task.end())
    whole.task.insert(*cpus);
  return whole;
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
  return larger;
}

} // namespace troupe
