#pragma once

/// Limits on the executors of a session: what the settings ask for, enforced by what this machine lets us use.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/logger.h>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/execution/cgroup_find.hpp>
#include <troupe/runtime/execution/cpu_affinity.hpp>
#include <troupe/runtime/execution/process_limits.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/scheduling/executor_exit.hpp>

namespace troupe {

/// Owns the session's control group and everything below. Made and destroyed by whoever owns the session, used by the
/// backend of the allocator alone.
class session_limits {
public:
  /// Makes the session's group where the settings ask for what needs one, and writes its directories into the session's
  /// run directory, by which the next start finds what a killed session has left. Where something cannot be had, one
  /// line of the log says so and what takes its place; nothing fails.
  /// @param processes whether executors are processes of their own; else only their commands can be limited
  session_limits(const settings& s, const std::string& session_id, const std::string& run_directory, bool processes,
                 const std::shared_ptr<spdlog::logger>& log);
  /// Removes the group, and kills what is left in it.
  ~session_limits();
  session_limits(const session_limits&) = delete;
  session_limits& operator=(const session_limits&) = delete;

  /// What an executor may take, its group made. It holds cpus until it is given back.
  process_limits grant(const std::string& name, const executor_capacity& capacity);
  void give_back(const process_limits& limits);
  /// Most processes and threads of one command; 0: no limit can be, or is to be, enforced.
  std::uint32_t command_processes() const noexcept { return command_processes_; }

private:
  void look_for_groups(const std::string& session_id, const std::string& run_directory);

  std::shared_ptr<spdlog::logger> log_;
  found_cgroups found_;
  cgroup group_; ///< of the session; empty: none
  std::optional<cpu_pool> cpus_;
  bool processes_ = false;
  bool limit_memory_ = false;
  bool quota_ = false;
  bool told_of_sharing_ = false;
  std::uint32_t command_processes_ = 0;
};

/// How an executor's process that had these limits ended. @param status of waitpid
executor_exit describe_exit(int status, const process_limits& limits);

/// Removes the group of an executor that has ended, and kills what is left in it. @returns whether it is gone
bool remove_group(const process_limits& limits);

} // namespace troupe
