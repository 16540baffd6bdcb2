#include <troupe/runtime/resources/exact_rules.hpp>

#include <limits>

#include <troupe/runtime/resources/capacity.hpp>

namespace troupe::exact {
namespace {

error refused(std::string message) { return make_error(ec::invalid_profile, std::move(message)); }

/// Tasks that one address carries, and whole addresses that one task takes; one of the two is 1.
struct portion {
  std::int64_t per_address = 1;
  std::int64_t addresses = 1;
};

portion portion_of(share amount) {
  if (amount <= share::whole(1)) return {fits(share::whole(1), amount), 1};
  return {1, amount.ceil()};
}

std::int64_t tasks_for(std::int64_t addresses, share amount) {
  const auto p = portion_of(amount);
  std::int64_t tasks = 0;
  if (__builtin_mul_overflow(addresses, p.per_address, &tasks)) tasks = std::numeric_limits<std::int64_t>::max();
  return tasks / p.addresses;
}

bool knows_cores(const profile_rules& rules) {
  return rules.cores_configured || rules.master == master_kind::yarn || rules.master == master_kind::kubernetes;
}

} // namespace

result<void> check_supported(const resource_profile& written, const profile_rules& rules) {
  const bool local = rules.master == master_kind::local;
  if (written.is_task_only()) {
    if (!local) return {};
    return refused("TaskResourceProfiles are only supported for Standalone, Yarn and Kubernetes, not on a local master "
                   "(troupe.scheduler.support-matrix = spark): choose another master, or set the matrix to all");
  }
  if (rules.is_dynamic()) return {};
  return refused("ResourceProfiles are only supported on YARN and Kubernetes and Standalone with dynamic allocation" +
                 std::string{local ? "; the master is a local one" : "; troupe.dynamic-allocation.enabled is false"} +
                 " (troupe.scheduler.support-matrix = spark): change that, use a task-only profile" +
                 (local ? " on another master" : "") + ", or set the matrix to all");
}

result<void> check_barrier_supported(const profile_rules& rules) {
  if (rules.support != support_matrix::spark || !rules.is_dynamic()) return {};
  return refused(
      "[SPARK-24942]: a barrier stage needs all its executors at once, and so is not run where their number "
      "changes (troupe.scheduler.support-matrix = spark): set troupe.dynamic-allocation.enabled to false, or "
      "the matrix to all");
}

result<void> check_fractions(const resource_profile& written) {
  if (written.is_task_only()) return {};
  for (const auto& [name, amount] : written.task) {
    if (name == resource_names::cpus || amount.is_whole() || amount.units * 2 <= share::units_per_whole) continue;
    return refused("The task resource amount " + to_decimal(amount) +
                   " must be either <= 0.5, or a whole number (task resource " + name +
                   "; troupe.scheduler.profile-matching = exact): two tasks that take more than half of one address "
                   "each cannot share it, so write 1");
  }
  return {};
}

resource_profile complete(const resource_profile& written, const resource_profile& defaults,
                          const profile_rules& rules) {
  resource_profile whole = written;
  const bool reads_customs = written.is_task_only() && !rules.is_dynamic();
  for (const auto& [name, request] : defaults.executor)
    if (reads_customs || is_builtin_executor_resource(name)) whole.executor.emplace(name, request);
  const std::string cpus{resource_names::cpus};
  if (const auto clause = defaults.task.find(cpus); clause != defaults.task.end()) whole.task.insert(*clause);
  return whole;
}

task_limit limit_of(const resource_profile& completed, const profile_rules& rules) {
  task_limit limit;
  bool limited = false;
  const auto consider = [&](std::string_view name, std::int64_t tasks) {
    if (limited && tasks >= limit.tasks) return;
    limited = true;
    limit.tasks = tasks;
    limit.limiting_resource = name;
  };
  limit.cores_known = knows_cores(rules);
  if (const auto cpus = completed.task_amount(resource_names::cpus); limit.cores_known && !cpus.is_zero())
    consider(resource_names::cpus, fits(share::whole(completed.executor_amount(resource_names::cores)), cpus));
  for (const auto& [name, amount] : completed.task)
    if (name != resource_names::cpus && !amount.is_zero())
      consider(name, tasks_for(completed.executor_amount(name), amount));
  if (completed.max_tasks_per_executor > 0) consider(max_tasks_name, completed.max_tasks_per_executor);
  return limit;
}

std::vector<std::string> waste_of(const resource_profile& completed, const task_limit& limit) {
  std::vector<std::string> sentences;
  const auto tell = [&](const std::string& configuration) {
    sentences.push_back(configuration + " leaves some of it unused due to resource " +
                        (limit.limiting_resource.empty() ? "cpus" : limit.limiting_resource) +
                        ", which limits the tasks of an executor to: " + std::to_string(limit.tasks));
  };
  if (!limit.cores_known) return sentences;
  const auto cores = completed.executor_amount(resource_names::cores);
  const auto cpus = completed.task_amount(resource_names::cpus);
  if (limit.limiting_resource != resource_names::cpus && cpus.units * limit.tasks < share::whole(cores).units)
    tell("The configuration of cores (exec = " + std::to_string(cores) + " task = " + to_string(cpus) +
         ", runnable tasks = " + std::to_string(fits(share::whole(cores), cpus)) + ")");
  for (const auto& [name, amount] : completed.task) {
    if (name == resource_names::cpus || amount.is_zero()) continue;
    const auto present = completed.executor_amount(name);
    const auto tasks = tasks_for(present, amount);
    if (limit.tasks < tasks)
      tell("The configuration of resource: " + name + " (exec = " + std::to_string(present) +
           ", task = " + to_decimal(amount) + "/" + std::to_string(portion_of(amount).per_address) +
           ", runnable tasks = " + std::to_string(tasks) + ")");
  }
  return sentences;
}

resource_profile merge(const resource_profile& a, const resource_profile& b) {
  resource_profile larger = b;
  larger.build = 0;
  for (const auto& [name, request] : a.executor) {
    const auto [clause, added] = larger.executor.emplace(name, request);
    if (!added && request.amount > clause->second.amount) clause->second = request;
  }
  for (const auto& [name, amount] : a.task) {
    const auto [clause, added] = larger.task.emplace(name, amount);
    if (!added && amount > clause->second) clause->second = amount;
  }
  merge_terms(larger, a);
  return larger;
}

std::string to_string(const resource_profile& profile, profile_id id) {
  constexpr std::int64_t mib = 1 << 20;
  const auto amount_of = [](const std::string& name, const executor_request& request) {
    return name != resource_names::cores && is_builtin_executor_resource(name) ? request.amount / mib : request.amount;
  };
  std::string executor;
  for (const auto& [name, request] : profile.executor)
    executor += (executor.empty() ? "" : ",") + name + " -> name: " + name +
                ", amount: " + std::to_string(amount_of(name, request)) + ", script: " + request.discovery_script +
                ", vendor: " + request.vendor;
  std::string task;
  for (const auto& [name, amount] : profile.task)
    task += (task.empty() ? "" : ",") + name + " -> name: " + name + ", amount: " + to_decimal(amount);
  return "Profile: id = " + std::to_string(id.value) + ", executor resources: " + executor +
         ", task resources: " + task;
}

} // namespace troupe::exact
