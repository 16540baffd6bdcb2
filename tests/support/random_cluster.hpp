#pragma once

/// What a simulated cluster is made of, and what is submitted to it: all of it by the dice.

#include <vector>

#include <troupe/runtime/allocation/allocation_policy.hpp>
#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/tests/support/builders.hpp>
#include <troupe/tests/support/dice.hpp>

namespace troupe::testing {

dag_scheduler::options random_options(dice& d, profile_matching matching);
/// One to three hosts, the first with a GPU.
std::vector<carving_host> random_hosts(dice& d);
allocation_policy::options random_policy(dice& d);
/// Names the datasets that jobs keep: all are of one program.
inline constexpr std::uint64_t program_of_jobs = 7;
/// One to four stages under up to four profiles.
job_builder random_job(dice& d, profile_matching matching);

} // namespace troupe::testing
