#include <troupe/runtime/execution/remove_tree.hpp>

#include <exception>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Attempts to remove a folder that another process may still be putting files into.
constexpr int rounds = 3;

/// Lets the owner do anything in all folders below, which needs leave in each before the next one can be seen.
void open_folders(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  if ((status.st_mode & S_IRWXU) != S_IRWXU)
    ::fchmodat(AT_FDCWD, path.c_str(), (status.st_mode & 07777) | S_IRWXU, AT_SYMLINK_NOFOLLOW);
  std::error_code ec;
  for (fs::directory_iterator entry{path, ec}, end; !ec && entry != end; entry.increment(ec))
    if (std::error_code unknown; !entry->is_symlink(unknown) && entry->is_directory(unknown))
      open_folders(entry->path());
}

} // namespace

bool remove_tree(const std::string& path) noexcept {
  try {
    std::error_code failed;
    for (int round = 0; round < rounds; ++round) {
      fs::remove_all(path, failed);
      if (!failed) return true;
      if (failed == std::errc::permission_denied) open_folders(path);
    }
  } catch (const std::exception&) { // no memory
  }
  return false;
}

} // namespace troupe
