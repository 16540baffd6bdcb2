#include <troupe/runtime/storage/new_file.hpp>

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace troupe {
namespace {

constexpr int access_mode = O_WRONLY | O_CLOEXEC;
constexpr mode_t own_only = 0600;

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Of a file system, or a kernel, that knows no files without a name.
bool needs_name(int why) { return why == EOPNOTSUPP || why == EISDIR || why == EINVAL; }

} // namespace

new_file::new_file(std::string path, naming when) : path_(std::move(path)) {
  if (when == naming::when_kept) {
    file_ = descriptor{::open(folder_of(path_).c_str(), access_mode | O_TMPFILE, own_only)};
    if (file_) return;
    error_ = errno;
    if (!needs_name(error_)) return;
  }
  file_ = descriptor{::open(path_.c_str(), access_mode | O_CREAT | O_EXCL | O_NOFOLLOW, own_only)};
  named_ = static_cast<bool>(file_);
  error_ = named_ ? 0 : errno;
}

new_file::~new_file() { remove(); }

void new_file::remove() noexcept {
  if (std::exchange(named_, false)) ::unlink(path_.c_str());
}

int new_file::keep() {
  if (!named_) {
    // By its descriptor alone the right to do so would be root's.
    const auto itself = "/proc/self/fd/" + std::to_string(file_.get());
    if (::linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) != 0) return errno;
    named_ = true;
  }
  if (!file_.close()) {
    const int why = errno;
    remove();
    return why;
  }
  named_ = false;
  return 0;
}

} // namespace troupe
