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

/// A piece of a text file: the lines that begin in [begin, end).
struct file_range {
  std::string path;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size = 0; ///< of the file when the job was made: it must not have shrunk

  bool operator==(const file_range&) const = default;
  template <class Archive>
  friend void troupe_serialize(Archive& archive, file_range& r) {
    archive(r.path, r.begin, r.end, r.size);
  }
};

/// Per partition the encoded list of its files, each as one whole range: in order, cut into `partitions` runs of about
/// equally many bytes (as many runs as files at most; 0 stands for that many).
/// @pre files is not empty
std::shared_ptr<const packed_column> group_files(const std::vector<input_file>& files, std::uint32_t partitions);

/// How files are cut where nobody says into how many partitions.
struct cutting {
  std::uint64_t most = std::uint64_t{128} << 20; ///< bytes of a piece
  std::uint64_t least = 4 << 20;                 ///< pieces for the sake of parallelism alone have as many bytes
  std::uint32_t most_partitions = max_tasks_per_stage;
  std::uint32_t parallelism = 1; ///< so many pieces of all files together are worth having
};

/// Per partition the encoded list of its ranges. With 0: each file by itself, in pieces where it is large; else as many
/// partitions of equally many bytes, but not more than there are bytes.
/// @pre files is not empty
std::shared_ptr<const packed_column> cut_files(const std::vector<input_file>& files, std::uint32_t partitions,
                                               const cutting& how);

} // namespace detail

} // namespace troupe
