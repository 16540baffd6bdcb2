#include <troupe/runtime/execution/file_move.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/new_file.hpp>

namespace troupe {
namespace {

constexpr off_t most_at_once = 64 << 20;
constexpr std::size_t longest_attribute = 64 << 10; ///< that Linux allows

/// @returns 0 or errno
int copy_bytes_in_memory(int from, int to, off_t at, off_t end) {
  std::vector<char> buffer(static_cast<std::size_t>(std::min<off_t>(end - at, 1 << 20)));
  while (at < end) {
    const auto wanted = std::min(buffer.size(), static_cast<std::size_t>(end - at));
    const auto n = ::pread(from, buffer.data(), wanted, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return 0; // it became shorter meanwhile
    for (ssize_t done = 0; done < n;) {
      const auto written = ::pwrite(to, buffer.data() + done, static_cast<std::size_t>(n - done), at + done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      done += written;
    }
    at += n;
  }
  return 0;
}

/// @returns 0 or errno
int copy_range(int from, int to, off_t at, off_t end) {
  while (at < end) {
    off_t in = at;
    off_t out = at;
    const auto n =
        ::copy_file_range(from, &in, to, &out, static_cast<std::size_t>(std::min(end - at, most_at_once)), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
      return copy_bytes_in_memory(from, to, at, end);
    if (n < 0) return errno;
    if (n == 0) return copy_bytes_in_memory(from, to, at, end); // as of files in /proc, and of ones that became shorter
    at += n;
  }
  return 0;
}

/// @returns 0 or errno
int copy_data(int from, int to, off_t size) {
  if (::ioctl(to, FICLONE, from) == 0) return 0;
  if (::ftruncate(to, size) != 0) return errno;
  for (off_t at = 0; at < size;) {
    const auto data = ::lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return 0; // only a hole is left
    const auto begin = data < 0 ? at : data;  // a file system that does not know its holes has none
    const auto hole = data < 0 ? size : ::lseek(from, begin, SEEK_HOLE);
    const auto end = hole < 0 ? size : std::min(hole, size);
    if (const int why = copy_range(from, to, begin, end)) return why;
    at = std::max(end, at + 1);
  }
  return 0;
}

/// Those of the user's, and who else may do what with the file. The target need not take them.
void copy_attributes(int from, int to) {
  const auto size = ::flistxattr(from, nullptr, 0);
  if (size <= 0) return;
  std::vector<char> names(static_cast<std::size_t>(size));
  const auto listed = ::flistxattr(from, names.data(), names.size());
  for (const char* name = names.data(); listed > 0 && name < names.data() + listed;
       name += std::string_view{name}.size() + 1) {
    const std::string_view text{name};
    if (!text.starts_with("user.") && text != "system.posix_acl_access") continue;
    std::vector<char> value(longest_attribute);
    const auto length = ::fgetxattr(from, name, value.data(), value.size());
    if (length >= 0) static_cast<void>(::fsetxattr(to, name, value.data(), static_cast<std::size_t>(length), 0));
  }
}

/// A file that is made in a folder with the set-group-id bit has the folder's group; one that is moved there has not.
/// Who is not in that group cannot give it one.
void take_group_of_folder(const std::string& file, const std::string& folder) {
  struct stat above {};
  struct stat status {};
  if (::stat(folder.c_str(), &above) != 0 || (above.st_mode & S_ISGID) == 0 || ::lstat(file.c_str(), &status) != 0 ||
      status.st_gid == above.st_gid || status.st_nlink > 1) // which other names have, such as that of an input
    return;
  if (::lchown(file.c_str(), static_cast<uid_t>(-1), above.st_gid) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0)
    // A change of group takes these bits away.
    static_cast<void>(::fchmodat(AT_FDCWD, file.c_str(), status.st_mode & 07777, AT_SYMLINK_NOFOLLOW));
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Also where its owner may not read it: nothing keeps him from moving it. @returns a descriptor, or -1 with errno
int open_to_copy(const std::string& path) {
  constexpr int how = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int fd = ::open(path.c_str(), how);
  struct stat status {};
  if (fd >= 0 || errno != EACCES || ::lstat(path.c_str(), &status) != 0) return fd;
  if (::fchmodat(AT_FDCWD, path.c_str(), (status.st_mode & 07777) | S_IRUSR, AT_SYMLINK_NOFOLLOW) != 0) return -1;
  const int opened = ::open(path.c_str(), how);
  const int why = errno;
  static_cast<void>(::fchmodat(AT_FDCWD, path.c_str(), status.st_mode & 07777, AT_SYMLINK_NOFOLLOW));
  errno = why;
  return opened;
}

/// The copy's owner, group and mode. Where it has another owner or group, the bits that let others act as these go.
bool take_owner_and_mode(const struct stat& from, int to) {
  static_cast<void>(!::fchown(to, from.st_uid, from.st_gid)); // most users may do neither
  struct stat copy {};
  if (::fstat(to, &copy) != 0) return false;
  auto mode = from.st_mode & 07777;
  if (copy.st_uid != from.st_uid || copy.st_gid != from.st_gid) mode &= ~static_cast<mode_t>(S_ISUID | S_ISGID);
  return ::fchmod(to, mode) == 0;
}

} // namespace

int copy_file_as_it_is(const std::string& from, const std::string& to) {
  const descriptor in{open_to_copy(from)};
  if (!in) return errno;
  struct stat status {};
  if (::fstat(in.get(), &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return EINVAL;
  new_file out{to};
  if (!out) return out.error();
  int why = copy_data(in.get(), out.get(), status.st_size);
  if (why == 0) copy_attributes(in.get(), out.get());
  const std::array<timespec, 2> times{status.st_atim, status.st_mtim};
  if (why == 0 && (!take_owner_and_mode(status, out.get()) || ::futimens(out.get(), times.data()) != 0)) why = errno;
  return why != 0 ? why : out.keep();
}

int move_to_new(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    if (errno != EXDEV) return errno;
    if (const int why = copy_file_as_it_is(from, to)) return why;
    ::unlink(from.c_str()); // it may be large, and its file system small
  }
  take_group_of_folder(to, folder_of(to));
  return 0;
}

int move_over(const std::string& from, const std::string& to, const std::string& beside) {
  const auto folder = folder_of(to);
  take_group_of_folder(from, folder); // before anybody can see it
  if (::rename(from.c_str(), to.c_str()) == 0) return 0;
  if (errno != EXDEV) return errno;
  ::unlink(beside.c_str());
  if (const int why = copy_file_as_it_is(from, beside)) return why;
  take_group_of_folder(beside, folder);
  if (::rename(beside.c_str(), to.c_str()) != 0) {
    const int why = errno;
    ::unlink(beside.c_str());
    return why;
  }
  ::unlink(from.c_str());
  return 0;
}

} // namespace troupe
