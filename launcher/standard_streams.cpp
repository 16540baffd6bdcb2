#include <troupe/launcher/standard_streams.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

namespace troupe {

void open_standard_streams() noexcept {
  // Each gets the lowest number that is free, which is its own. Standard output stays one that cannot be written.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY));
}

std::string loss_of_output() {
  errno = 0; // the reason is known where it is this flush that fails
  std::cout.flush();
  const bool lost = std::cout.bad() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (!lost) return {};
  return "standard output could not be written" +
         (errno == 0 ? std::string{} : std::string{": "} + std::strerror(errno));
}

} // namespace troupe
