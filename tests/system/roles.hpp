#pragma once

/// Processes that system tests start from their own program, beside executors.

#include <optional>
#include <string>
#include <vector>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {

/// Plays the role that `argv[1]` names (`--role=…`) and gives the exit code; nothing where it names none.
std::optional<int> play_role(int argc, char** argv);

/// Settings of a driver that notices soon that an executor is silent, and yet gives none up that stands still for some
/// seconds, as a machine may.
inline std::vector<std::string> noticing_silence() {
  return {"troupe.executor.heartbeat-interval=100ms", "troupe.executor.heartbeat-timeout=6s"};
}

/// A process of this very program in a role.
class role_process : public program_process {
public:
  /// @param prefix words before the program, such as `ip netns exec NAME`
  role_process(const std::string& role, const std::vector<std::string>& arguments,
               const std::vector<std::string>& prefix = {});
};

} // namespace troupe::system_tests
