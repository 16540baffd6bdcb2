#include <troupe/runtime/storage/file_lock.hpp>

#include <algorithm>
#include <cerrno>
#include <thread>

#include <sys/file.h>

namespace troupe {

bool lock_within(int fd, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds between{20};
  const auto end = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(between);
  }
  return true;
}

} // namespace troupe
