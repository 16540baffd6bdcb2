#include <troupe/runtime/events/line_file.hpp>

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace troupe::events {

result<std::unique_ptr<line_file>> line_file::create(std::string path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) return make_error(ec::io, "cannot create " + path + ": " + std::strerror(errno));
  return std::unique_ptr<line_file>{new line_file{std::move(path), file}};
}

line_file::~line_file() { ::close(file_); }

result<void> line_file::append(std::string_view line) {
  ssize_t written = 0;
  do {
    written = ::write(file_, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) {
    size_ += written;
    return {};
  }
  const std::string why = written < 0 ? std::strerror(errno) : "no room for all of a line";
  // Half a line would spoil the next one as well.
  if (written > 0 && ::ftruncate(file_, size_) != 0)
    return make_error(ec::io, path_ + ": " + why + ", and what was written of it stays: " + std::strerror(errno));
  return make_error(ec::io, path_ + ": " + why);
}

} // namespace troupe::events
