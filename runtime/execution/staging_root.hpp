#pragma once

/// The root below which the outputs of a stage wait (see staged_outputs.hpp), and the folders that have to be made for
/// it, from their making to their end. Functions of files alone; any thread, any process that sees them. Symbolic links
/// are never followed below a root, nor at Troupe's own folder that it lies in. Outputs that are just being put in
/// place are never removed: their publication is completed (output_publication.hpp), and they stay where that cannot be
/// done.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// A folder that was made for a root, and which one it is: one of the same name may be somebody else's, who removed
/// this one and made another.
struct made_folder {
  std::string path;
  std::uint64_t inode = 0; ///< 0: it is just being made, or it is not known
  std::int64_t born = 0;   ///< nanoseconds since 1970; 0 where the file system does not tell

  bool operator==(const made_folder&) const = default;
};

/// The folders that lead to Troupe's own folder of the root and are not there yet, the innermost first.
std::vector<made_folder> folders_missing_for(const std::string& root);

/// The same folder as it is now.
made_folder identified(const std::string& path);

/// Makes the root where it is missing, and what leads to it. Others may remove that at the same time. Error
/// ec::invalid_argument: it could not be made another time either.
/// @returns the folders that lead to Troupe's own one and that this call has made, the outermost first
result<std::vector<made_folder>> make_root(const std::string& root);

/// Removes what waits of one executor's attempts. The root stays: attempts of others may want to wait there.
void remove_own_staging(const std::string& root, executor_id executor) noexcept;
/// Removes a root where nothing waits, and what is left of one that somebody was killed removing. @pre the stage is
/// over
void remove_empty_root(const std::string& root) noexcept;

/// Removes a root and all that waits there. From its first moment nothing more can be staged. @pre the stage is over
void remove_staging(const std::string& root) noexcept;

/// Removes what other sessions have left waiting in an output directory for 14 days: a machine that went down takes
/// with it what is noted of them elsewhere. @param now seconds since 1970
void remove_stale_staging(const std::string& output_directory, std::string_view session, std::int64_t now) noexcept;

/// Removes a folder if it is empty and still the one that was made. @returns true where it is there no more
bool remove_made_folder(const made_folder& folder) noexcept;

} // namespace troupe
