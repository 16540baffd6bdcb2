#pragma once

/// A file descriptor that is closed with its object.

#include <utility>

#include <unistd.h>

namespace troupe {

/// Owner: whoever holds it. One thread at a time for what changes it; any for `get`.
class descriptor {
public:
  descriptor() = default;
  /// Takes over an open descriptor; negative: none.
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor& operator=(descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const noexcept { return fd_; }
  /// Gives it up to somebody else.
  int release() noexcept { return std::exchange(fd_, -1); }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  /// Closes it now, since some systems tell only then that they could not keep what they took. False with errno where
  /// that failed.
  bool close() noexcept { return ::close(std::exchange(fd_, -1)) == 0; }

private:
  int fd_ = -1;
};

} // namespace troupe
