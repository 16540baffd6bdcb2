#include <troupe/launcher/session_limits.hpp>

#include <algorithm>
#include <fstream>

#include <sys/wait.h>

#include <troupe/launcher/run_directory.hpp>

namespace troupe {
namespace {

using enum cgroup_controller;

/// Below this an executor is not limited, however small its profile: its own program takes some, and a test or a
/// profile for tiny tasks must not keep it from starting.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t least_memory = 512 << 20;
#else
constexpr std::uint64_t least_memory = 64 << 20;
#endif
constexpr duration patience = std::chrono::seconds{1};

std::string place_of(const cgroup& group, cgroup_controller controller) {
  for (const auto& part : group.parts())
    if (std::find(part.controllers.begin(), part.controllers.end(), controller) != part.controllers.end())
      return "cgroup v" + std::to_string(part.version) + " " + part.directory;
  return {};
}

} // namespace

session_limits::session_limits(const settings& s, const std::string& session_id, const std::string& run_directory,
                               bool processes, const std::shared_ptr<spdlog::logger>& log)
  : log_(log), processes_(processes) {
  limit_memory_ = s.get(keys::executor_limits_memory) == "auto";
  const auto& cpu = s.get(keys::executor_limits_cpu);
  quota_ = processes && cpu == "quota";
  command_processes_ = static_cast<std::uint32_t>(s.get(keys::task_max_processes));
  look_for_groups(session_id, run_directory);
  if (cpu != "none" && !processes)
    log_->warn("limits: troupe.executor.limits.cpu = {} has no effect: executors are in the driver's process", cpu);
  else if (cpu == "affinity" || (cpu == "quota" && !quota_))
    cpus_.emplace(allowed_cpus());
  // Nothing of an executor within the driver can be limited but its commands, each by what it asked for.
  limit_memory_ = limit_memory_ && processes;
}

void session_limits::look_for_groups(const std::string& session_id, const std::string& run_directory) {
  std::vector<cgroup_controller> wanted;
  if (limit_memory_) wanted.push_back(memory);
  if (quota_) wanted.push_back(cpu);
  if (command_processes_ > 0) wanted.push_back(pids);
  if (wanted.empty()) return;
  found_ = find_cgroups(wanted);
  if (!found_.base.empty()) {
    const auto name = "troupe-" + session_id;
    // First of all, so that whoever finds the directory knows of the groups.
    std::ofstream list{run_directory + "/" + group_list_name};
    const auto group = found_.base.child(name);
    for (const auto& part : group.parts()) list << part.directory << '\n';
    list.close();
    auto made = make_session_group(found_, name);
    if (made)
      group_ = std::move(*made);
    else
      for (const auto controller : wanted) found_.missing.try_emplace(controller, made.error().message);
  }
  for (const auto controller : wanted) {
    if (group_.has(controller)) {
      log_->info("limits: {} by {}", to_string(controller), place_of(group_, controller));
      continue;
    }
    const auto& why = found_.missing[controller];
    if (controller == memory) {
      log_->info("limits: memory by RLIMIT_DATA of each {} and looking at commands, as there is no cgroup for it: {}",
                 processes_ ? "process" : "command", why);
    } else if (controller == cpu) {
      quota_ = false;
      log_->warn("limits: executors are bound to as many cpus as they have cores instead of "
                 "troupe.executor.limits.cpu = quota, as there is no cgroup for it: {}",
                 why);
    } else {
      command_processes_ = 0;
      log_->warn("limits: troupe.task.max-processes has no effect, as there is no cgroup for it: {}", why);
    }
  }
}

session_limits::~session_limits() {
  if (!group_.empty()) remove_session_group(found_, group_);
}

process_limits session_limits::grant(const std::string& name, const executor_capacity& capacity) {
  process_limits out;
  if (limit_memory_) out.memory = std::max(static_cast<std::uint64_t>(container_memory(capacity)), least_memory);
  if (cpus_) {
    out.cpus = cpus_->take(capacity.cores);
    if (cpus_->is_shared() && !std::exchange(told_of_sharing_, true))
      log_->warn("limits: there are fewer cpus than cores of executors, which share some");
  }
  if (group_.empty()) return out;
  cgroup_limits limits;
  limits.memory = out.memory;
  if (quota_)
    limits.cpu_thousandths = static_cast<std::uint32_t>(std::min<std::int64_t>(capacity.cores, 1'000'000)) * 1000;
  const auto group = group_.child(name);
  auto made = group.make();
  if (made) made = group.limit(limits);
  if (made && processes_) made = group.child(self_group).make();
  if (made && out.memory > 0 && group.has(memory)) made = group.child(commands_group).make();
  if (made) {
    out.group = group;
  } else {
    group.remove(false, {});
    log_->warn("limits: {} gets no group of its own: {}", name, made.error().message);
  }
  return out;
}

void session_limits::give_back(const process_limits& limits) {
  if (cpus_) cpus_->give_back(limits.cpus);
}

executor_exit describe_exit(int status, const process_limits& limits) {
  executor_exit out;
  out.memory_limit = limits.memory;
  const auto used = limits.group.memory();
  out.peak_memory = used.peak;
  if (!WIFSIGNALED(status)) {
    out.cause = exit_cause::exit_code;
    out.exit_code = WEXITSTATUS(status);
    return out;
  }
  out.signal = WTERMSIG(status);
  const bool starved = out.signal == SIGKILL && limits.group.child(self_group).memory().kills > 0;
  out.cause = !starved ? exit_cause::signal : used.at_limit ? exit_cause::memory_limit : exit_cause::no_memory;
  return out;
}

bool remove_group(const process_limits& limits) { return limits.group.remove(true, patience); }

} // namespace troupe
