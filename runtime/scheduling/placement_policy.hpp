#pragma once

/// Which of several executors with room gets the next task.

#include <cstdint>

namespace troupe {

/// `troupe.scheduler.placement`, among executors that have equally little of what the task does not ask for.
enum class placement_policy : std::uint8_t {
  spread,  ///< the one with the fewest leases: each task has as much of its machine as can be
  pack,    ///< the one with the fewest free cores: others become idle and can be given back
  balance, ///< the one whose cores are busy to the smallest part: large ones get more than small ones
};

} // namespace troupe
