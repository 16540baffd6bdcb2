#pragma once

/// Where an executor's files lie: several directories, best on disks of their own, used in turn. One that is full or
/// broken is left out for that file.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// Any thread.
class block_directories {
public:
  /// @param directories of this executor alone, mode 0700; at least one
  explicit block_directories(std::vector<std::string> directories) : directories_(std::move(directories)) {}

  /// Calls `make` with the path of a file that does not exist yet, in the next directory; as long as that fails with
  /// the error io, in the others. The last error, where it failed in all, with the number of directories.
  /// @param name what the file's name begins with
  result<void> make_file(const std::string& name, const std::function<result<void>(const std::string& path)>& make);

  const std::vector<std::string>& all() const noexcept { return directories_; }

private:
  const std::vector<std::string> directories_;
  std::atomic<std::uint64_t> files_{0}; ///< begun; makes names unique
};

} // namespace troupe
