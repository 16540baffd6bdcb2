#pragma once

/// What every actor of this folder has in common: where it logs, and what it does about surprises.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <spdlog/logger.h>

#include <troupe/messages/caf_compat.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Gives the logger of the named actor (`driver`, `dag-scheduler`, `resource-profile-manager`, `allocator`, `executor`,
/// `client`). Never null. Called once per actor, on any thread.
using logger_source = std::function<std::shared_ptr<spdlog::logger>(std::string_view actor)>;

/// Loggers that drop everything: what embedders get who pass none.
logger_source silent_loggers();

/// The hooks of an actor that logs surprises and lives on. Messages that no handler takes, and orders to end from other
/// nodes, are counted in `*surprises`, which the actor's state owns.
actor_hooks logging_hooks(const std::shared_ptr<spdlog::logger>& log, std::uint64_t* surprises);

/// The actor's own monotonic clock; virtual in tests that run on CAF's test coordinator.
template <class Self>
time_point now_of(Self* self) {
  return time_point{self->clock().now().time_since_epoch()};
}

} // namespace troupe
