#pragma once

/// The mark of a file that a task has made and its run has published: the extended attribute `user.troupe.made`, which
/// says which session and stage has made it, under which name, how large it was and when it was written last. So a
/// later job replaces what jobs have made, and nothing of the user's: a file that was moved to another name, or written
/// since, counts as the user's. Functions of files alone; any thread.

#include <string>
#include <string_view>

#include <troupe/runtime/execution/staged_outputs.hpp>

namespace troupe {

/// Marks a file that waits to be published as `name`. One that has other names, such as that of an input, is left
/// alone; so is one on a file system without such attributes.
void mark_made(const std::string& file, const staging_place& place, std::string_view name) noexcept;

enum class maker {
  nobody,        ///< nothing is there
  task,          ///< of Troupe's, under this name, as it was made
  somebody_else, ///< a file without the mark, or with another one; or something that is no file
  unknown,       ///< the file system has no such attributes
};

struct made_file {
  maker by = maker::nobody;
  std::string run; ///< the session and stage of the task, as `SESSION-STAGE`
};

/// Who has made what is at `name` in a stage's output directory.
made_file made_by(const std::string& output_directory, std::string_view name);

} // namespace troupe
