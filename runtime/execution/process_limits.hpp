#pragma once

/// What an executor process and its commands may take, as whoever starts the process has it decided.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/execution/cgroup.hpp>

namespace troupe {

/// In the group of an executor its process is in the group `self`. Where its memory is limited, commands are in the
/// group `commands` or in ones of their own: so it shows which of them has been killed for lack of memory.
inline constexpr const char* self_group = "self";
inline constexpr const char* commands_group = "commands";

struct process_limits {
  cgroup group;             ///< of the executor, limited; it exists, with the groups that are named above. Empty: none
  std::uint64_t memory = 0; ///< bytes of the executor with its commands; 0: none
  std::vector<int> cpus;    ///< to be bound to; empty: no others than who starts it

  /// The executor's process can be killed for lack of memory by the group, and so can its commands.
  bool by_group() const noexcept { return memory > 0 && group.has(cgroup_controller::memory); }
  /// Where no group enforces the memory, each process has to be limited by itself.
  std::uint64_t data_limit() const noexcept { return by_group() ? 0 : memory; }
};

/// Makes this process obey the limits, but for `data_limit`: joins the group, binds itself to the cpus. Before there is
/// any other thread. @returns what did not work, "" where all did
std::string enter(const process_limits& limits);

/// Lets this process have so many bytes of data (heap, private writable memory) beside what it has reserved by now;
/// what it starts inherits that. Never raises a limit. Anonymous memory counts as soon as it is reserved, touched or
/// not. 0: nothing happens.
void limit_own_data(std::uint64_t bytes);

/// Lets this process have as many open files as the system allows it, on its own behalf: see `former_file_limit`.
void raise_file_limit();
/// How many it may have.
std::uint64_t file_limit();
/// How many it might have before, which is what commands still may: many a program goes through all descriptors that it
/// could have. 0: nothing was raised.
std::uint64_t former_file_limit();

} // namespace troupe
