#pragma once

/// The front door of a session: the only published endpoint. Owns the hello, suspicion of silent executors, and the
/// event stream; passes submissions on. Spawns the dag scheduler, and the allocator and the resource profile manager
/// unless these run in a process of their own. What it spawned ends when it does.

#include <functional>
#include <memory>
#include <string>

#include <caf/actor_system.hpp>

#include <troupe/actors/allocator.hpp>
#include <troupe/actors/common.hpp>
#include <troupe/actors/dag_scheduler.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/events/event.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {

struct driver_config {
  std::string cluster_id;
  std::string session_id;
  std::string master; ///< for people
  std::shared_ptr<const session_secret> secret;
  resource_profile defaults; ///< the complete default profile
  profile_rules rules;       ///< that profiles obey; `scheduler.matching` says the same
  overhead_rule overhead;    ///< of profiles without a memoryOverhead
  dag_scheduler::options scheduler;
  allocation_policy::options allocation; ///< without `fixed`
  /// Executors that are always there: profiles and how many of each.
  std::vector<std::pair<resource_profile, std::uint32_t>> fixed_executors;
  /// Makes the allocator's backend; it is told whom executors are to join. Unset: executors are started by hand.
  std::function<std::shared_ptr<executor_backend>(driver_actor)> make_backend;
  /// The allocator and the resource profile manager say hello from another process; until then submissions wait.
  bool remote_services = false;
  duration heartbeat_interval = std::chrono::seconds{1};
  duration heartbeat_timeout = std::chrono::seconds{10};
  duration request_timeout = std::chrono::seconds{10};
  /// How many events may come while a subscriber has no credit; the driver keeps twice as many.
  std::size_t max_event_lag = 10'000;
  /// Takes every event, numbered and in order. Called in the actor; must not block.
  std::function<void(const events::record&)> on_event;
  std::function<void(job_id)> forget_files;                            ///< see dag_scheduler_config
  std::function<void(const effects::keep_printed&)> keep_printed = {}; ///< likewise
  logger_source loggers = silent_loggers();
  /// Wall clock of the event stream.
  std::function<std::int64_t()> unix_nanoseconds;
};

local_driver_actor spawn_driver(caf::actor_system& system, driver_config config);

} // namespace troupe
