#pragma once

/// The files that a command publishes, for the commands that read it file by file on hosts which may see other files
/// under the same names: a block set whose first bucket lists the files and whose others hold them. Whoever finds the
/// listed file where it was published, as it was, reads that; else a copy is made from the block.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/execution/stop_event.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/bucket_writer.hpp>

namespace troupe {

/// False on file systems that are known to be the same on all hosts which mount them: nothing has to be handed over.
bool may_differ_between_hosts(const std::string& directory);

/// A file to pack.
struct packed_file {
  std::string read_from;
  std::string listed_as; ///< where it lies once it is published
};

/// The block set of these files. `how.buckets` is set here. Throws std::runtime_error where one cannot be read, there
/// is no room, or `stop` is asked for meanwhile.
block_content pack_files(const std::vector<packed_file>& files, bucket_writer::options how, const stop_event& stop);

/// Where each of the files can be read: under its own path, or as a copy below `directory`, which is made. By the path
/// under which it was published. Throws fetch_failure where the block cannot be had, std::runtime_error where a copy
/// cannot be written, or `stop` is asked for meanwhile.
std::map<std::string, std::string> unpack_files(shuffle_source& source, const partition_place& input,
                                                const std::string& directory, const stop_event& stop);

} // namespace troupe
