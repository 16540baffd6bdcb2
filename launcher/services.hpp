#pragma once

/// The allocator and the resource profile manager in another process than their driver, whose
/// `driver_config::remote_services` is set.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>

#include <troupe/actors/allocator.hpp>
#include <troupe/actors/resource_profile_manager.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {

struct services_options {
  driver_actor driver;
  std::string cluster_id; ///< that they mean to work for
  std::shared_ptr<const session_secret> secret;
  std::string name;                          ///< for people: host and pid
  resource_profile defaults;                 ///< the complete default profile
  profile_rules rules;                       ///< that the driver has, too
  overhead_rule overhead;                    ///< of profiles without a memoryOverhead
  allocation_policy::options allocation;     ///< `fixed` as its shapes are numbered here
  std::shared_ptr<executor_backend> backend; ///< never null; used by the allocator alone
  duration request_timeout = std::chrono::seconds{10};
  logger_source loggers = silent_loggers();
};

/// The two actors; they end with their system, or when they are told to.
struct running_services {
  allocator_actor allocator;
  resource_profile_manager_actor profiles;
};

/// Says hello to the driver and starts the two actors, which the driver uses from then on. Blocks the calling thread.
result<running_services> start_services(caf::actor_system& system, services_options opts);

} // namespace troupe
