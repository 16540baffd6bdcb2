#pragma once

/// Where the jobs of a client go, and why, so that nobody has to find out by looking for results.

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

struct destination {
  std::string master;  ///< `local[2]`, or the address of a driver
  std::string because; ///< who has said so: an option, a variable, a place in a file, or what was found
  /// Clusters of this user on this machine that a job without a word could have meant.
  std::vector<session_record> others;

  bool operator==(const destination&) const = default;
};

/// Whether jobs go to a driver that is there already.
bool goes_to_driver(const settings& s);

/// Where run directories are by default, with and without XDG_RUNTIME_DIR: a session of another login may have either.
std::set<std::string> usual_bases();

/// @param s `troupe.master` in it is where jobs go
/// @param found the session that was chosen for them; nothing: `troupe.master` was taken as it is
/// @param asked what the user has called it; "": nothing
/// @param bases where run directories may be, beside that of the settings
destination destination_of(const settings& s, const std::optional<session_record>& found, std::string_view asked,
                           std::set<std::string> bases = usual_bases());

/// For people: `jobs go to local[2] (--master)`.
std::string to_string(const destination& where);

} // namespace troupe
