#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

/// The directories of `troupe.local.dir`. Where that is not set: none, which means the run directory; but if that lies
/// in memory (as below /run/user), the disk's /var/tmp, since what exceeds memory would be in memory again.
std::vector<std::string> local_directories_of(const settings& s);

/// Removes what sessions of this user that were killed have left in those directories.
void sweep_local_directories(const settings& s);

/// Makes and holds, in each of those directories, the private directory `<that>/troupe-<uid>/<name>` for blocks in
/// files, after a sweep. None: blocks are kept in the run directory. `name` is unique, such as a session's id. One that
/// cannot be made, as on a disk that is full or gone, is left out and told to `left_out`; the error is the last one's
/// where none of those that the user has named is left.
result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name,
                                                          const std::function<void(const error&)>& left_out);

/// The directory `<that>/troupe-<uid>/<name>` in the first of those that works, together with whoever else wants it.
/// Null where there are none.
result<std::optional<run_directory>> share_local_directory(const settings& s, const std::string& name);

std::vector<std::string> paths_of(const std::vector<run_directory>& directories);

} // namespace troupe
