#pragma once

/// A program that a test starts as a user would.

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

/// A process with an empty standard input. Killed and waited for when it goes out of scope.
class program_process {
public:
  /// @param words the program, looked for in PATH where it has no slash, and its arguments
  /// @param own_group makes it what a shell's job is: the system stops no other for Ctrl-Z
  explicit program_process(std::vector<std::string> words, bool own_group = false);
  ~program_process();
  program_process(const program_process&) = delete;
  program_process& operator=(const program_process&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// What it wrote so far to standard output.
  std::string printed() const;
  /// What it wrote so far to standard output, then to standard error.
  std::string output() const;
  /// Waits for its end. @returns the exit code, 128 + the signal, or nothing after the deadline
  std::optional<int> wait(duration deadline = testing::patience());
  void kill(int signal) const;

private:
  testing::temporary_directory directory_;
  pid_t pid_ = 0;
  std::optional<int> code_;
};

} // namespace troupe::system_tests
