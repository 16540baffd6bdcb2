#pragma once

/// The small actor in each submitting process that hears how its jobs go and passes it on.

#include <functional>

#include <caf/actor_system.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/messages/interfaces.hpp>

namespace troupe {

/// Called in the actor; must not block.
struct client_config {
  logger_source loggers = silent_loggers();
  /// Where jobs are submitted. Its hello has passed: what its process says is believed, and this actor's own process.
  driver_actor driver;
  std::function<void()> on_driver_gone; ///< the driver has ended or cannot be reached any more
  std::function<void(const boxed<job_progress>&)> on_progress;
  std::function<void(const boxed<job_end>&)> on_end;
  std::function<void(const boxed<event_batch>&)> on_events;
};

client_actor spawn_client(caf::actor_system& system, client_config config);

} // namespace troupe
