#include <troupe/runtime/execution/files_in_memory.hpp>

#include <filesystem>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace troupe {

namespace fs = std::filesystem;

bool lies_in_memory(const std::string& path) {
  struct statfs status {};
  for (fs::path there{path}; ::statfs(there.c_str(), &status) != 0; there = there.parent_path())
    if (!there.has_relative_path()) return false;
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

std::uint64_t bytes_taken_below(const std::string& directory) {
  constexpr std::uint64_t block = 512; // of st_blocks, whatever the file system's own is
  std::uint64_t bytes = 0;
  std::error_code ec;
  for (fs::recursive_directory_iterator entry{directory, ec}, end; !ec && entry != end; entry.increment(ec)) {
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes += static_cast<std::uint64_t>(status.st_blocks) * block;
  }
  return bytes;
}

} // namespace troupe
