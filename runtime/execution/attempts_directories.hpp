#pragma once

/// The directories in which an executor's commands run, with what they write. That may be large, so they lie in the
/// session's local directories (troupe.local.dir), one in each. The session's own directory, which may lie in memory,
/// has a link to each, by which everybody finds them who knows the session. Functions of files alone; any thread.

#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Makes those of the executor `name` below `parents`, for this user alone, and the links in `session_directory`, which
/// may be the only parent. What is there is taken. A parent that does not work is left out; the error is the last one's
/// where none does. @pre `parents` is not empty. @returns their paths as tasks are told them
result<std::vector<std::string>> make_attempts_directories(const std::string& session_directory,
                                                           const std::vector<std::string>& parents,
                                                           const std::string& name);

/// Their paths as tasks were told them; none where there are none.
std::vector<std::string> attempts_directories_of(const std::string& session_directory, const std::string& name);

/// Those of all executors of the session that are there on this machine.
std::vector<std::string> all_attempts_directories(const std::string& session_directory);

/// The directory of a job's attempts in one of them, which the first attempt makes; each has a directory
/// `<stage>.<partition>.<attempt>` in it.
std::string attempts_of(const std::string& attempts_directory, job_id job);

/// Removes what the job's attempts have left in these directories.
void remove_attempts(const std::vector<std::string>& attempts_directories, job_id job);

/// Removes them with all that is in them, and the links.
void remove_attempts_directories(const std::string& session_directory, const std::string& name);

} // namespace troupe
