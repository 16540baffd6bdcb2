#pragma once

/// One command attempt from its directory to its published outputs, on the lease thread that waits for it.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/attempt_group.hpp>
#include <troupe/runtime/execution/command_environment.hpp>
#include <troupe/runtime/execution/command_terms.hpp>
#include <troupe/runtime/execution/failure_logs.hpp>
#include <troupe/runtime/execution/handed_files.hpp>
#include <troupe/runtime/execution/installed_stage.hpp>
#include <troupe/runtime/execution/native_task.hpp>
#include <troupe/runtime/execution/staging_roots.hpp>
#include <troupe/runtime/execution/stop_event.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// What all commands of an executor share.
struct command_settings {
  /// Absolute; each attempt gets a directory of its own in one of them (see attempts_of), another attempt of the same
  /// task in the next one. One that does not work is passed over.
  std::vector<std::string> attempts_directories;
  environment_map environment; ///< of the executor
  bool gpus = false;           ///< the executor has some, so that a task without any sees none
  duration kill_grace{};       ///< between SIGTERM and SIGKILL
  command_terms terms;
  command_limits limits = {};
  /// Executors of other hosts may be asked to read what its commands publish.
  bool hand_over = false;
  std::string session;
  staging_roots* staging = nullptr; ///< where outputs wait; outlives the commands. Null: commands have none
  failure_logs* logs = nullptr;     ///< likewise, where failed ones leave what they have printed. Null: nowhere
};

/// One attempt and what its lease gives it.
struct command_task {
  const stage_install& stage;
  const command_program& program;
  const task_resources& resources;
  partition_index partition = 0;
  attempt_number attempt = 0;
  std::string_view argument;              ///< encoded command_arguments; "" for none
  std::vector<partition_place> inputs;    ///< of its files, what executors keep of other stages
  shuffle_source* source = nullptr;       ///< for those
  result_policy results;                  ///< where it leaves what commands of another stage read
  std::uint64_t memory = 0;               ///< bytes that may take meanwhile
  const installed_stage* known = nullptr; ///< the stage as long as it runs; null: it is never removed
};

/// Runs the command and waits for it. When `stop` is requested its group gets SIGTERM, after the grace SIGKILL; when it
/// takes more memory than it was given, SIGKILL at once. Once the main process has ended well, who still writes its
/// outputs is waited for (see output_watch); whatever else it left behind is killed (see end_left_behind). Then its
/// outputs are staged: whoever accepts the attempt publishes them. Never throws.
attempt_end run_command_task(const command_task& task, const command_settings& settings,
                             const stop_event& stop) noexcept;

} // namespace troupe
