#pragma once

#include <functional>
#include <string>
#include <vector>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

/// Removes what sessions of this user that were killed have left in the directories of `troupe.local.dir`.
void sweep_local_directories(const settings& s);

/// Makes and holds, in each directory of `troupe.local.dir`, the private directory `<that>/troupe-<uid>/<name>` for
/// blocks in files, after a sweep. None where that is not set: blocks are kept in the run directory. `name` is unique,
/// such as a session's id. One that cannot be made, as on a disk that is full or gone, is left out and told to
/// `left_out`; the error is the last one's where none is left.
result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name,
                                                          const std::function<void(const error&)>& left_out);

/// The directory `<that>/troupe-<uid>/<name>` in the first of `troupe.local.dir` that works, together with whoever else
/// wants it. @pre one is set
result<run_directory> share_local_directory(const settings& s, const std::string& name);

std::vector<std::string> paths_of(const std::vector<run_directory>& directories);

} // namespace troupe
