#pragma once

/// Runs tasks: says hello to the driver, checks every order against its own ledger, hands accepted work to a
/// task_runner and reports outcomes. A thin shell around executor_core.

#include <functional>
#include <memory>
#include <string>

#include <caf/actor_system.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/execution/task_runner.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/transfer/handshake.hpp>
#include <troupe/runtime/transfer/takeover_worker.hpp>

namespace troupe {

struct executor_config {
  driver_actor driver;
  executor_info info;     ///< without an id; everything else filled in
  std::string cluster_id; ///< that it means to join
  std::shared_ptr<const session_secret> secret;
  task_runner::options runner; ///< without id, `on_outcomes` and `on_arrival`
  std::shared_ptr<block_store> blocks;
  takeover_worker::action take_over; ///< of a shuffle service, else empty
  logger_source loggers = silent_loggers();
  duration driver_timeout = std::chrono::seconds{6};   ///< see `troupe.executor.driver-timeout`
  duration abandon_timeout = std::chrono::seconds{60}; ///< see `troupe.executor.abandon-timeout`
  duration request_timeout = std::chrono::seconds{10};
  duration tick_interval = std::chrono::milliseconds{100};
  duration shutdown_grace = std::chrono::seconds{1}; ///< for what still runs when it ends
  /// Called once, in the actor, when it was admitted under this id.
  std::function<void(executor_id)> on_admitted;
  /// Called once, when no task of it runs any more: removes what would be left of it. Before `on_end`, but for native
  /// tasks that do not end. On a thread that may wait; where a defect has ended the actor, on the one that destroys it.
  std::function<void()> clear_up;
  /// Called once, in the actor, when nothing of it runs any more: ec::none after an orderly stop. `clean` is false when
  /// a native task would not end within `shutdown_grace`. A process of the executor's own then ends; in an
  /// application's process (`executor_info::in_process`) the actor, and so its system, lives until the task has ended.
  std::function<void(const error& why, bool clean)> on_end;
};

local_executor_actor spawn_executor(caf::actor_system& system, executor_config config);

} // namespace troupe
