#pragma once

#include <string>

namespace troupe {

/// Removes what is at `path`, a folder with all that is in it: also folders that a command has made read-only, and
/// while another process still puts files there, for some rounds. Links are not followed, and what is mounted below
/// stays as it is, with the folders that lead there: it is a view of something else. Needs at most a hundred
/// descriptors, however deep the tree is. Any thread. @returns true where nothing is there any more
bool remove_tree(const std::string& path) noexcept;

} // namespace troupe
