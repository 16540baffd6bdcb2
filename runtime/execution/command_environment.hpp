#pragma once

/// What a command finds in its environment. Pure, but for `inherited_environment`.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

using environment_map = std::map<std::string, std::string, std::less<>>;

/// This process's variables without those that Troupe sets for each task (task_variables.hpp): a command gets its own
/// of them. Where this process runs in a task itself, without the thread variables that were set for that one. Not
/// while others change it.
environment_map inherited_environment();

/// What distinguishes the command's task from others.
struct command_identity {
  std::string session;
  std::uint64_t job = 0;
  std::string stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  std::uint32_t tasks = 0;             ///< partitions of the stage
  const packed_column* gang = nullptr; ///< where the tasks of a gang run, by partition; null: no gang
  std::string mark;                    ///< names the attempt among all of all sessions: its directory
  std::string directory;               ///< it starts in
  bool thread_variables = false;       ///< see command_terms
  std::string inputs_file = {};        ///< lists the inputs (inputs_file.hpp); "": there are none
};

/// Whether a variable that lists these files is no longer than the system takes.
bool fits_variable(const std::vector<std::string>& files);

/// `base` (of the executor), then `own` (of the stage) over it, then what Troupe says:
/// TROUPE_SESSION, TROUPE_SESSIONS (with those of `base` before it), TROUPE_JOB, TROUPE_STAGE, TROUPE_PARTITION,
/// TROUPE_TASKS (partitions of the stage), TROUPE_ATTEMPT_NUMBER, TROUPE_ATTEMPT, TROUPE_CPUS, PWD; TROUPE_GANG for a
/// task of a barrier stage, where all of them run, `host:port` or `host`, by partition, separated by commas (left out
/// beyond 64 KiB); TROUPE_MEMORY in bytes where the task has a part of the memory; TROUPE_AMOUNT_<NAME> for each
/// resource without addresses, in bytes for a counted size; TROUPE_ADDRESSES_<NAME> for each resource of the task,
/// addresses separated by commas, the name in capitals with `_` for whatever is neither letter nor digit;
/// CUDA_VISIBLE_DEVICES with the addresses of `gpu`, empty where the executor has GPUs (`gpus`) and the task none;
/// TROUPE_INPUTS and TROUPE_OUTPUTS, one path a line, or where that does not fit (64 KiB) a text that is no path, so
/// that a command which reads them stumbles; TROUPE_INPUTS_FILE, a file that lists the inputs, where there is one;
/// TROUPE_INPUT and TROUPE_OUTPUT where there is exactly one. With `thread_variables` those too, unless `base` or `own`
/// has one.
std::vector<std::string> make_command_environment(const environment_map& base,
                                                  const std::map<std::string, std::string>& own,
                                                  const command_identity& identity, const task_resources& resources,
                                                  bool gpus, const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& outputs);

} // namespace troupe
