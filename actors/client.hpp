#pragma once

/// The small actor in each submitting process that hands its jobs over, hears how they go and passes that on.

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
  /// The driver's answer to a submission, which may come after the job's end. @returns false where nobody waits for the
  /// job any more: it is cancelled
  std::function<bool(const boxed<job_submission>&, const result<job_id>&)> on_answer;
  std::function<void(const boxed<job_progress>&)> on_progress;
  std::function<void(const boxed<job_end>&)> on_end;
  std::function<void(const boxed<event_batch>&)> on_events;
  std::function<void(const boxed<subscription_cut_off>&)> on_cut_off;
};

local_client_actor spawn_client(caf::actor_system& system, client_config config);

} // namespace troupe
