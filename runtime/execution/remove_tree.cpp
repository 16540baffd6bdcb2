#include <troupe/runtime/execution/remove_tree.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

/// Attempts to remove a folder that another process may still be putting files into.
constexpr int rounds = 3;
/// Folders that are open at once, one in another. What lies deeper is moved up first.
constexpr unsigned most_open = 48;

/// What is shared by all steps of one removal.
struct removal {
  int top = -1;          ///< the outermost folder, while it is open
  unsigned moved_up = 0; ///< folders, so far
};

void remove_entry(removal& all, int parent, const char* name, unsigned depth) noexcept;

/// Whether another file system, or a view of this one, begins at the folder.
bool is_mounted(int folder) noexcept {
  struct statx status {};
  if (::statx(folder, "", AT_EMPTY_PATH, STATX_TYPE, &status) == 0 &&
      (status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
    return (status.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  // The kernel does not tell, or may not be asked: at least another file system is seen.
  struct stat itself {};
  struct stat above {};
  return ::fstat(folder, &itself) != 0 || ::fstatat(folder, "..", &above, 0) != 0 || itself.st_dev != above.st_dev;
}

bool is_mounted(int parent, const char* name) noexcept {
  const int folder = ::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return false; // and it is not opened then
  const bool mounted = is_mounted(folder);
  ::close(folder);
  return mounted;
}

/// The descriptor of a folder in which the owner may do anything; -1 where there is none.
int open_folder(int parent, const char* name) noexcept {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  int folder = ::openat(parent, name, flags);
  if (folder < 0 && errno == EACCES && ::fchmodat(parent, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0)
    folder = ::openat(parent, name, flags);
  struct stat status {};
  if (folder >= 0 && ::fstat(folder, &status) == 0 && (status.st_mode & S_IRWXU) != S_IRWXU)
    static_cast<void>(::fchmod(folder, (status.st_mode & 07777) | S_IRWXU));
  return folder;
}

void remove_entries(removal& all, int folder, unsigned depth) noexcept {
  const int listed = ::fcntl(folder, F_DUPFD_CLOEXEC, 0);
  DIR* const list = listed < 0 ? nullptr : ::fdopendir(listed);
  if (list == nullptr) {
    if (listed >= 0) ::close(listed);
    return;
  }
  ::rewinddir(list); // both descriptors have one position
  while (const dirent* entry = ::readdir(list))
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      remove_entry(all, folder, entry->d_name, depth + 1);
  ::closedir(list);
}

void clear(removal& all, int folder, unsigned depth) noexcept {
  if (depth > 0) return remove_entries(all, folder, depth);
  all.top = folder;
  unsigned before = 0;
  do {
    before = all.moved_up;
    remove_entries(all, folder, depth);
  } while (all.moved_up != before);
  all.top = -1;
}

void move_up(removal& all, int parent, const char* name) noexcept {
  char new_name[32];
  std::snprintf(new_name, sizeof new_name, ".deep-%u", all.moved_up + 1);
  const int folder = open_folder(parent, name); // so that its owner may move it
  if (folder >= 0) ::close(folder);
  // Where the name is taken the next round finds it free: what has it goes in this one.
  if (::renameat(parent, name, all.top, new_name) == 0) ++all.moved_up;
}

void remove_entry(removal& all, int parent, const char* name, unsigned depth) noexcept {
  if (::unlinkat(parent, name, 0) == 0 || errno == ENOENT || errno == ENOTDIR) return;
  if (::unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT || errno == ENOTDIR) return;
  if (is_mounted(parent, name)) return;
  if (depth >= most_open) return move_up(all, parent, name);
  const int folder = open_folder(parent, name);
  if (folder < 0) return;
  clear(all, folder, depth);
  ::close(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

bool is_gone(const std::string& path) noexcept {
  struct stat status {};
  return ::lstat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

} // namespace

bool remove_tree(const std::string& path) noexcept {
  for (int round = 0; round < rounds; ++round) {
    removal all;
    remove_entry(all, AT_FDCWD, path.c_str(), 0);
    if (is_gone(path)) return true;
  }
  return false;
}

} // namespace troupe
