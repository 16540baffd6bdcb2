#pragma once

/// Keeps a command within its memory where the system does not do it: by looking again and again.

#include <cstdint>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include <troupe/runtime/time.hpp>

namespace troupe {

/// How often a command with a limit is looked at, unless a look takes long. What it takes and gives back in between
/// goes unseen.
inline constexpr duration memory_watch_interval = std::chrono::milliseconds{20};

/// Looks at the memory that a process and its descendants hold for themselves, and at files that take memory. What has
/// left its parents (a daemon) is not seen. One thread.
class memory_watch {
public:
  /// @param limit bytes, of all of them together
  /// @param files directories in a file system that takes memory
  memory_watch(pid_t main, std::uint64_t limit, std::vector<std::string> files = {})
    : main_(main), limit_(limit), files_(std::move(files)) {}

  /// @returns what they hold together, where that is above the limit
  std::optional<std::uint64_t> exceeded();
  /// The most that was ever seen, bytes.
  std::uint64_t peak() const noexcept { return peak_; }

private:
  pid_t main_;
  std::uint64_t limit_;
  std::vector<std::string> files_;
  std::uint64_t peak_ = 0;
};

} // namespace troupe
