#pragma once

/// Which roots (see staging_root.hpp) an executor has made and which folders for them, as long as it has not removed
/// them itself: in a file of the session's own directory, written before each is made. So whoever removes that
/// directory, when all have ended or were killed, removes what waits in them, and the folders where they are empty: a
/// job that has made nothing leaves nothing. Functions of files alone; any thread.

#include <string>
#include <vector>

#include <troupe/runtime/execution/staging_root.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Begins its name in the directory of a session whose executors all hold that directory: once nobody does, all have
/// ended. The executor's number follows.
inline constexpr const char* staging_journal_name = "staging-roots-";
/// Begins its name in the directory of an executor that was started by hand. Where such an executor ends by itself, its
/// driver may still publish what waits.
inline constexpr const char* own_staging_journal_name = "own-staging-roots-";

/// Writes the file anew. @pre the executor has one writer at a time
result<void> write_staging_journal(const std::string& journal, executor_id executor,
                                   const std::vector<std::string>& roots, const std::vector<made_folder>& folders);

/// What of the noted goes: folders that are empty, besides them what waits of the executors that are named, and besides
/// both the roots where nothing else waits, which others that work on the stage would miss.
enum class noted { empty_folders, own_outputs, all };

/// Removes that. @pre none of these executors runs, and the files are this user's own; for `all`: nor does any other of
/// their session
void remove_noted(const std::vector<std::string>& journals, noted what) noexcept;

} // namespace troupe
