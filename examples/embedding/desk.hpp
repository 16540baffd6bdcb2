#pragma once

/// Counts primes by running Troupe jobs.

#include <troupe/actors/embedding.hpp>

#include "messages.hpp"

namespace primes {

/// Spawns a desk that submits its jobs to `driver`. Progress goes to `listener` where there is one.
desk_actor spawn_desk(caf::actor_system& system, troupe::driver_actor driver, listener_actor listener);

} // namespace primes
