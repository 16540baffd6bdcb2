#pragma once

/// The control group that one attempt of a command runs in.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/execution/process_limits.hpp>

namespace troupe {

/// What the commands of an executor may take.
struct command_limits {
  cgroup group; ///< of the executor; empty: none
  /// `commands_group` exists in it, and is for commands without a group of their own, so that it shows whether they or
  /// the executor's process have been killed for lack of memory. Joining costs a command about a millisecond.
  bool shared = false;
  std::uint64_t data = 0;      ///< bytes of RLIMIT_DATA of each process where no group limits memory; 0: none
  std::uint32_t processes = 0; ///< most processes and threads of one command; 0: no limit
};

/// Made before the command starts, ends with it. One thread.
class attempt_group {
public:
  /// A group of its own where a limit of the attempt's own can be enforced so, else that of all commands if there is
  /// one.
  /// @param memory_limit bytes; 0: none
  attempt_group(const command_limits& limits, const std::string& name, std::uint64_t memory_limit);
  /// Kills what is left in a group of its own and removes it.
  ~attempt_group();
  attempt_group(const attempt_group&) = delete;
  attempt_group& operator=(const attempt_group&) = delete;

  /// For child_spec.
  std::vector<std::string> member_files() const { return group_.member_files(); }
  /// Whether the kernel keeps the attempt to its memory limit; if not, somebody else has to.
  bool limits_memory() const noexcept { return limits_memory_; }

  struct usage {
    std::uint64_t peak_memory = 0; ///< bytes, of the attempt alone; 0: not known
    /// Since the start the kernel has killed a process of the group for lack of memory: of this attempt, or where it is
    /// in the group of all commands, of one of them.
    bool killed = false;
    bool at_own_limit = false; ///< the limit was that of the attempt
    bool at_limit = false;     ///< the limit was that of the attempt, or of the executor, and not that of the machine
    std::uint64_t limit = 0;   ///< bytes that were the limit then
  };
  usage used() const;

private:
  cgroup group_;
  cgroup executor_;
  bool own_ = false;
  bool limits_memory_ = false;
  std::uint64_t kills_before_ = 0;
};

} // namespace troupe
