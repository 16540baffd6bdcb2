#pragma once

/// Descriptors of processes, by the system calls themselves: the header of Debian 12's C library declares them without
/// C linkage.

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

namespace troupe {

/// Readable once the process has ended; close-on-exec. -1 and errno where it cannot be had.
inline int open_pidfd(pid_t pid) noexcept { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

/// True when the signal was sent to the process that the descriptor was opened for, and to no other.
inline bool signal_pidfd(int fd, int signal) noexcept {
  return ::syscall(SYS_pidfd_send_signal, fd, signal, nullptr, 0) == 0;
}

} // namespace troupe
