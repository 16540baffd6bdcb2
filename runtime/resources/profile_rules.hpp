#pragma once

/// Which of two sets of rules the profiles of a session obey: Troupe's own, or Spark's to the letter. Plain values; any
/// thread. Spec: MP-2, MP-8, MP-9.

#include <cstdint>

namespace troupe {

/// `troupe.scheduler.profile-matching`. `compatible`: equal contents are one profile, and an executor runs any task
/// whose profile it satisfies. `exact`: every build of a profile has an id of its own, and an executor runs only tasks
/// of the very profile that it was started for.
enum class profile_matching : std::uint8_t { compatible, exact };

/// `troupe.scheduler.support-matrix`. `all`: every profile on every master. `spark`: what Spark refuses is refused.
enum class support_matrix : std::uint8_t { all, spark };

/// The kinds of masters that the rules tell apart.
enum class master_kind : std::uint8_t { local, local_cluster, node_agents, yarn, kubernetes };

/// What happens where the datasets of one stage carry different profiles (`troupe.scheduler.profile-change`).
enum class profile_change : std::uint8_t {
  error = 0,       ///< the job is refused
  merge = 1,       ///< the stage gets the larger amount of each
  cut = 2,         ///< the stage is cut there, and its parts are a pipeline
  by_matching = 3, ///< under `compatible` cut, under `exact` error
};

/// What the rules depend on, fixed for a session.
struct profile_rules {
  profile_matching matching = profile_matching::compatible;
  support_matrix support = support_matrix::all;
  master_kind master = master_kind::local;
  bool dynamic_allocation = true; ///< as configured; a local master counts as without it, see `is_dynamic`
  bool cores_configured = false;  ///< troupe.executor.cores was set, not only defaulted

  bool is_exact() const noexcept { return matching == profile_matching::exact; }
  /// MP-9
  bool is_dynamic() const noexcept { return dynamic_allocation && master != master_kind::local; }
};

} // namespace troupe
