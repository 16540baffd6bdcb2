#pragma once

/// Moving the outputs of an accepted attempt from where they wait (staged_outputs.hpp) to where the job wants them: all
/// of them in the end, or none. Functions of files alone; any thread, any process that sees them. Symbolic links are
/// never followed below a root.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/publication.hpp>

namespace troupe {

/// What came of `publish_staged`.
struct published {
  publication_outcome outcome = publication_outcome::published;
  std::string reason;    ///< "" where published
  bool may_pass = false; ///< the same may succeed later, as when there is room again: what waits is still there
  bool begun = false;    ///< some are in place, and somebody else may complete it
  bool gone = false;     ///< not seen, since it is not there (any more)

  bool operator==(const published&) const = default;
};

/// Moves what waits in the place over what earlier attempts have published; missing directories are made. What can be
/// known beforehand is looked at before the first file is moved. `not_seen`: there is no such place for this process,
/// or it may not move the first file; everything is as it was. `failed` before the first of several is moved: nothing
/// of it is in place, and where it cannot pass what waits is discarded. `failed` later: the reason names those in
/// place, and a list of all (publication_list.hpp) stays with the others, so that this, or `complete_publications`, can
/// move them when what is in the way has gone.
published publish_staged(const staging_place& place, const std::vector<std::string>& names);
/// The same for who has made the outputs: nobody else can be asked to move them. So `not_seen` says that they are gone,
/// and nothing is left of them.
published publish_own(const staging_place& place, const std::vector<std::string>& names);

/// Moves what is left of all publications in a root that have begun; others may do the same at the same time. Error:
/// some cannot be moved, and stay.
result<void> complete_publications(const std::string& root);
/// The same of all roots that other sessions have left in this output directory.
result<void> complete_earlier_publications(const std::string& output_directory, std::string_view session);

/// Removes what waits in the place, unless it is being put in place.
void give_up_staged(const staging_place& place) noexcept;

} // namespace troupe
