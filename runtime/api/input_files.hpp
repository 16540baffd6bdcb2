#pragma once

/// Finds the files that a dataset is read from, and groups them into partitions.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// A regular file as the driver sees it.
struct input_file {
  std::string path; ///< absolute
  std::uint64_t bytes = 0;

  bool operator==(const input_file&) const = default;
};

/// The regular files that `patterns` name: paths, or patterns with `*`, `?` and `[…]` as a shell has them. One file
/// with several names (links) comes once, under a name that is not a symbolic link where it has one. Sorted by path.
/// Directories that a wildcard matches are left out. A name or pattern without any file, or a directory named outright,
/// is an error (not_found, invalid_argument) that repeats it.
result<std::vector<input_file>> find_input_files(const std::vector<std::string>& patterns);

namespace detail {

/// Per partition the encoded list of its paths: files in order, cut into `partitions` runs of about equally many bytes
/// (as many runs as files at most; 0 stands for that many).
/// @pre files is not empty
std::shared_ptr<const packed_column> group_files(const std::vector<input_file>& files, std::uint32_t partitions);

/// Source of the lines of the files in the task's argument, without their line ends (`\n` or `\r\n`).
operation text_lines_source();
/// Source of (path, content) of the files in the task's argument.
operation whole_text_source();

} // namespace detail

} // namespace troupe
