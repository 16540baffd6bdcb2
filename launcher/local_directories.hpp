#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

/// The directories of `troupe.local.dir`. Where that is not set: none, which means the run directory; but if that lies
/// in memory (as below /run/user), `on_disk`, which is /var/tmp, since what exceeds memory would be in memory again. If
/// that lies in memory as well: none.
std::vector<std::string> local_directories_of(const settings& s);
std::vector<std::string> local_directories_of(const settings& s, const std::string& on_disk);

/// The warning for a session without local directories whose run directory lies in memory; "": there is a disk, or the
/// user has named a place. @param made its local directories
std::string only_memory(const settings& s, const std::vector<run_directory>& made);

/// Removes what sessions of this user that were killed have left in those directories.
void sweep_local_directories(const settings& s);

/// Makes and holds, in each of those directories, the private directory `<that>/troupe-<uid>/<name>` for blocks in
/// files and for what commands write, after a sweep. An empty list means the run directory. A named directory may turn
/// out to be that of the run directory, which is then held twice. `name` is unique, such as a session's id. One that
/// cannot be made, as on a disk that is full or gone, is left out and told to `left_out`; the error is the last one's
/// where none of those that the user has named is left. `before` is told each before it is made; empty: nobody is.
result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name,
                                                          const std::function<void(const error&)>& left_out,
                                                          const std::function<void(const std::string&)>& before = {});

/// The directory `<that>/troupe-<uid>/<name>` in the first of those that works, together with whoever else wants it.
/// Null where there are none.
result<std::optional<run_directory>> share_local_directory(const settings& s, const std::string& name);

std::vector<std::string> paths_of(const std::vector<run_directory>& directories);

} // namespace troupe
