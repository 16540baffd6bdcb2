#pragma once

/// Interns resource profiles; a thin shell around profile_registry.

#include <caf/actor_system.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

struct resource_profile_manager_config {
  resource_profile defaults; ///< complete; profile 0
  profile_rules rules;
  overhead_rule overhead; ///< of profiles without a memoryOverhead
  logger_source loggers = silent_loggers();
  /// The one node whose messages it takes beside its own: set where it runs in another process than the driver.
  caf::node_id driver_node;
};

resource_profile_manager_actor spawn_resource_profile_manager(caf::actor_system& system,
                                                              resource_profile_manager_config config);

} // namespace troupe
