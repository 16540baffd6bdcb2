#pragma once

/// Starts and watches one child of its own session. No shell, no handler and no descriptor of this process reaches it.

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

struct child_spec {
  std::string program;                  ///< path; not searched for
  std::vector<std::string> arguments;   ///< all, that is with the name at position 0
  std::vector<std::string> environment; ///< `NAME=value`
  std::string directory;                ///< to run in
  std::string stdout_file;              ///< made anew, mode 0600
  std::string stderr_file;
  std::vector<std::string> member_files = {}; ///< of control groups that it joins first; see cgroup::member_files
  std::uint64_t data_limit = 0;               ///< bytes of its RLIMIT_DATA; 0: as this process
};

/// How a child ended and what it used.
struct child_end {
  int exit_code = 0;
  int signal = 0; ///< that ended it, else 0
  std::uint64_t cpu_nanoseconds = 0;
  std::uint64_t peak_memory = 0; ///< bytes, of the largest process; see child_process::reap
};

/// One child. The thread that starts it must live until it ends: the kernel kills the child with it. One thread.
class child_process {
public:
  /// Error: not_found where there is no such program, io for whatever else keeps it from starting.
  static result<child_process> start(const child_spec& spec);
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&&) = delete;
  /// @pre reaped
  ~child_process();

  pid_t pid() const noexcept { return pid_; }
  /// Waits until it has ended or `wake_fd` is readable (-1: none) or the time is over. @returns true when it has ended;
  /// it stays a zombie until `reap`, so that its process id and group still are its own.
  bool wait(int wake_fd, duration timeout);
  /// Whether the child has ended with exit code 0. @pre not reaped
  bool has_ended_well() const noexcept;
  /// Signals the process and its group. @pre not reaped
  void signal_group(int signal) const noexcept;
  /// Takes the end of a child that has ended. The kernel counts what this process had in memory at the start as the
  /// child's peak: below that, the highest value that was seen while it ran is given instead, which may lack what it
  /// took just before its end. Error: io where somebody else has taken it, as the kernel does for a process that
  /// ignores SIGCHLD: nobody knows then how the child ended.
  result<child_end> reap();

private:
  child_process(pid_t pid, int pidfd, std::uint64_t own_peak) : pid_(pid), pidfd_(pidfd), own_peak_(own_peak) {}

  pid_t pid_ = -1;
  int pidfd_ = -1;
  std::uint64_t own_peak_ = 0;
  std::uint64_t seen_peak_ = 0;
};

} // namespace troupe
