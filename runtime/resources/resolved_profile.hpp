#pragma once

/// A profile under its number, as everybody but the profile registry sees it. A plain immutable copy.

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>

namespace troupe {

struct resolved_profile {
  profile_id profile;
  shape_id shape;           ///< of its executor half
  resource_profile content; ///< complete
  /// Its tasks run wherever they fit, whatever the executor was started for: a task-only profile under `exact` where
  /// nothing is allocated dynamically (spec MP-8).
  bool any_executor = false;
  bool operator==(const resolved_profile&) const = default;
};

} // namespace troupe
