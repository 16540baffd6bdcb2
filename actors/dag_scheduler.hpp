#pragma once

/// Owns jobs, stages, executors and placement; a thin shell around the core of the same name in runtime/dag.

#include <cstdint>
#include <functional>
#include <string>

#include <caf/actor_system.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

struct dag_scheduler_config {
  dag_scheduler::options core;
  std::string session_id;                         ///< part of the names of staged files
  local_driver_actor driver;                      ///< hears the events
  std::function<std::int64_t()> unix_nanoseconds; ///< wall clock of the events; unset: the driver's, a little later
  /// Removes what the job's commands have left on this machine; on a thread that may wait for files. Unset: executors
  /// do it alone, which those that have ended do not.
  std::function<void(job_id)> forget_files;
  /// Keeps what the command of a lost attempt has printed, where this machine has it; on the same thread. Unset: it
  /// goes with the session.
  std::function<void(const effects::keep_printed&)> keep_printed;
  logger_source loggers = silent_loggers();
  duration tick_interval = std::chrono::milliseconds{100};
  duration progress_interval = std::chrono::milliseconds{200};
  duration request_timeout = std::chrono::seconds{10};
};

local_dag_scheduler_actor spawn_dag_scheduler(caf::actor_system& system, dag_scheduler_config config);

} // namespace troupe
