#pragma once

/// The root below which the outputs of a stage wait (see staged_outputs.hpp), and the folders that have to be made for
/// it, from their making to their end. Functions of files alone; any thread, any process that sees them. Symbolic links
/// are never followed below a root.

#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// The folders that lead to the root and are not there yet, the innermost first.
std::vector<std::string> folders_missing_for(const std::string& root);

/// Makes the root where it is missing, and what leads to it.
result<void> make_root(const std::string& root);

/// Removes what waits of one executor's attempts. The root stays: attempts of others may want to wait there.
void remove_own_staging(const std::string& root, executor_id executor) noexcept;
/// Removes a root where nothing waits, and what is left of one that somebody was killed removing. @pre the stage is
/// over
void remove_empty_root(const std::string& root) noexcept;

/// Removes a root and all that waits there. From its first moment nothing more can be staged. @pre the stage is over
void remove_staging(const std::string& root) noexcept;

/// Removes those that are empty. @param folders that were made for roots
void remove_empty_folders(std::vector<std::string> folders) noexcept;

} // namespace troupe
