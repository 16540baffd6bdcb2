#include <troupe/runtime/storage/file_io.hpp>

#include <cerrno>
#include <unistd.h>

namespace troupe {

int write_all(int fd, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

} // namespace troupe
