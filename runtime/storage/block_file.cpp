#include <troupe/runtime/storage/block_file.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {

namespace {

error io_error(const char* what, const std::string& path, int code) {
  return make_error(ec::io, std::string{what} + " block file " + path + ": " + std::strerror(code));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

} // namespace

result<std::unique_ptr<block_file>> block_file::write(std::string path, const std::vector<std::string>& parts) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return io_error("cannot create", path, errno);
  std::uint64_t size = 0;
  bool written = true;
  for (const auto& part : parts) {
    written = written && write_all(fd, part);
    size += part.size();
  }
  const int code = errno;
  ::close(fd);
  if (!written) {
    ::unlink(path.c_str());
    return io_error("cannot write", path, code);
  }
  return std::unique_ptr<block_file>{new block_file{std::move(path), size}};
}

block_file::~block_file() { ::unlink(path_.c_str()); }

result<block_file::mapping> block_file::map() const {
  const std::lock_guard lock{mutex_};
  auto owner = mapped_.lock();
  if (!owner) {
    const int fd = ::open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return io_error("cannot open", path_, errno);
    // A file that somebody has cut short would end the process at the first access behind its end.
    struct stat status {};
    if (::fstat(fd, &status) != 0 || static_cast<std::uint64_t>(status.st_size) != size_) {
      ::close(fd);
      return make_error(ec::io, "block file " + path_ + " is no longer what was written; its task has to run again");
    }
    void* const address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    const int code = errno;
    ::close(fd);
    if (address == MAP_FAILED) return io_error("cannot map", path_, code);
    owner = std::shared_ptr<const void>{static_cast<const void*>(address),
                                        [size = size_](const void* at) { ::munmap(const_cast<void*>(at), size); }};
    mapped_ = owner;
  }
  const auto* const bytes = static_cast<const char*>(owner.get());
  return mapping{std::move(owner), {bytes, size_}};
}

} // namespace troupe
