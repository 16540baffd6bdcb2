#include <troupe/runtime/storage/file_io.hpp>

#include <cerrno>
#include <cstring>
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

int piece_writer::append(int fd, std::string_view piece) {
  constexpr std::size_t at_once = 256 << 10;
  const bool large = piece.size() >= at_once / 4;
  if (large || waiting_.size() + piece.size() > at_once)
    if (const int code = flush(fd); code != 0) return code;
  if (large) return write_all(fd, piece);
  waiting_.append(piece);
  return 0;
}

int piece_writer::flush(int fd) {
  const int code = write_all(fd, waiting_);
  waiting_.clear();
  return code;
}

std::string describe_errno(int code) {
  std::string text = std::strerror(code);
  if (code == ENOSPC || code == EDQUOT) text += " (make room, or name directories that have some by troupe.local.dir)";
  return text;
}

} // namespace troupe
