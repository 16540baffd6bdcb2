#pragma once

/// Starts and stops executors through a backend; a thin shell around allocation_policy.

#include <memory>

#include <caf/actor_system.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/allocation/allocation_policy.hpp>

namespace troupe {

struct allocator_config {
  allocation_policy::options policy;
  std::shared_ptr<executor_backend> backend; ///< never null; used by this actor alone
  dag_scheduler_actor scheduler;             ///< whom it works for
  logger_source loggers = silent_loggers();
  caf::node_id driver_node; ///< see resource_profile_manager_config
  duration tick_interval = std::chrono::milliseconds{100};
  duration request_timeout = std::chrono::seconds{10};
};

local_allocator_actor spawn_allocator(caf::actor_system& system, allocator_config config);

/// The backend of a cluster whose executors are all started by hand: it never starts any.
std::shared_ptr<executor_backend> make_manual_backend();

} // namespace troupe
