#pragma once

/// Finds where this process may make control groups.

#include <map>
#include <string>
#include <vector>

#include <troupe/runtime/execution/cgroup.hpp>

namespace troupe {

/// What the kernel says about the groups of this process; a test's own files.
struct cgroup_places {
  std::string own_groups = "/proc/self/cgroup";
  std::string mounts = "/proc/self/mountinfo";
  cgroup_files files = {};
};

struct found_cgroups {
  cgroup base; ///< groups may be made in it; exists
  /// Why a wanted controller is in none of its parts, for people.
  std::map<cgroup_controller, std::string> missing;
  /// Of v2, where nobody but this program is in this process's own group, and so the group is to be split: its members
  /// have to move into a group below first (see make_session_group). "" otherwise.
  std::string own_v2_group;
};

/// For each controller the hierarchy that carries it, v1 before v2. Groups are made in this process's own group (v1),
/// and under v2 in the nearest group above that gives the controller to its children, or in its own one where all
/// members run this program. Reads only.
found_cgroups find_cgroups(const std::vector<cgroup_controller>& wanted, const cgroup_places& places = {});

/// Makes the group of a session in the base. Error: io; nothing is left then.
result<cgroup> make_session_group(const found_cgroups& found, const std::string& name);

/// Removes what make_session_group has made, and puts members of the own group back. What does not end is left.
void remove_session_group(const found_cgroups& found, const cgroup& session);

} // namespace troupe
