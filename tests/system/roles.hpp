#pragma once

/// Processes that system tests start from their own program, beside executors.

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

/// Plays the role that `argv[1]` names (`--role=…`) and gives the exit code; nothing where it names none.
std::optional<int> play_role(int argc, char** argv);

/// A process of this very program in a role. Killed and waited for when it goes out of scope.
class role_process {
public:
  /// @param prefix words before the program, such as `ip netns exec NAME`
  role_process(const std::string& role, const std::vector<std::string>& arguments,
               const std::vector<std::string>& prefix = {});
  ~role_process();
  role_process(const role_process&) = delete;
  role_process& operator=(const role_process&) = delete;

  pid_t pid() const noexcept { return pid_; }
  /// What it wrote to standard output and standard error so far.
  std::string output() const;
  /// Waits for its end. @returns the exit code, 128 + the signal, or nothing after the deadline
  std::optional<int> wait(duration deadline = std::chrono::seconds{30});
  void kill(int signal) const;

private:
  testing::temporary_directory directory_;
  pid_t pid_ = 0;
  std::optional<int> code_;
};

} // namespace troupe::system_tests
