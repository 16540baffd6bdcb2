#pragma once

/// Counts primes by running Troupe jobs.

#include <memory>

#include <troupe/actors/embedding.hpp>

#include "messages.hpp"

namespace primes {

/// The job that answers `request`: one task for each part, whose result is a count. Its executors are as `profile`
/// says; what that does not name is as the driver has it.
std::shared_ptr<const troupe::job_spec> make_job(const count_request& request, troupe::resource_profile profile = {});

/// The answer that the results of such a job add up to.
std::int64_t total(const troupe::job_end& end);

/// Spawns a desk that submits its jobs to `driver`. Progress goes to `listener` where there is one.
desk_actor spawn_desk(caf::actor_system& system, troupe::driver_actor driver, listener_actor listener);

} // namespace primes
