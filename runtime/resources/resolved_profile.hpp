#pragma once

/// A profile under its number, as everybody but the profile registry sees it. A plain immutable copy.

#include <vector>

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
  std::vector<resolved_profile> alternatives{}; ///< in order of preference; they have none themselves
  /// Under which its tasks are tried again that ran out of memory, each with more; they have neither themselves.
  std::vector<resolved_profile> escalations{};
  bool operator==(const resolved_profile&) const = default;
};

} // namespace troupe
