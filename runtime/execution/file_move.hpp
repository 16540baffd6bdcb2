#pragma once

/// Moving a file without changing what it is: its holes, mode, times and the user's extended attributes stay, and its
/// owner and group as far as this process may give them, the same by rename and by copy. Where the target's folder has
/// the set-group-id bit the file takes the folder's group, as one that was made there would have. Any thread. Symbolic
/// links are never followed at the file itself.

#include <string>

namespace troupe {

/// Copies a regular file: by sharing its blocks where the file system can, else only what it holds data for. Extended
/// attributes that the target does not take are left out. @pre nothing is at `to`, nor is before the copy is whole
/// (new_file.hpp) or where it failed. @returns 0 or errno
int copy_file_as_it_is(const std::string& from, const std::string& to);

/// Renames, or copies where that is another file system. @pre nothing is at `to`. @returns 0 or errno
int move_to_new(const std::string& from, const std::string& to);

/// Renames over what is there. Where that is another file system, by way of a copy at `beside`, which is in the same
/// folder as `to` and may be left over from a process that was killed. @returns 0 or errno
int move_over(const std::string& from, const std::string& to, const std::string& beside);

} // namespace troupe
