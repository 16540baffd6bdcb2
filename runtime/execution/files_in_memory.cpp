#include <troupe/runtime/execution/files_in_memory.hpp>

#include <filesystem>
#include <set>
#include <utility>

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

namespace {

void add_bytes_below(const std::string& directory, std::set<std::pair<dev_t, ino_t>>& seen, std::uint64_t& bytes) {
  constexpr std::uint64_t block = 512; // of st_blocks, whatever the file system's own is
  std::error_code ec;
  for (fs::directory_iterator entry{directory, ec}, end; !ec && entry != end; entry.increment(ec)) {
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      add_bytes_below(entry->path().string(), seen, bytes);
    } else if (S_ISREG(status.st_mode) &&
               (status.st_nlink == 1 || seen.insert({status.st_dev, status.st_ino}).second)) { // of several names once
      bytes += static_cast<std::uint64_t>(status.st_blocks) * block;
    }
  }
}

} // namespace

std::uint64_t bytes_taken_below(const std::string& directory) {
  std::set<std::pair<dev_t, ino_t>> seen;
  std::uint64_t bytes = 0;
  add_bytes_below(directory, seen, bytes);
  return bytes;
}

} // namespace troupe
