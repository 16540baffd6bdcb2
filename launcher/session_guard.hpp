#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <sys/types.h>

namespace troupe {

/// A process that outlives this one for as long as it takes to clear up after it: when this process ends without having
/// ended its session, as by kill -9, whatever commands it had started itself are killed, and its directories are
/// removed. Below a keeper, which ends it and does the same more thoroughly, it is there for when the keeper is killed.
/// To be made before there is any other thread.
class session_guard {
public:
  session_guard();
  /// The session has ended in order: the guard has nothing to do.
  ~session_guard();
  session_guard(const session_guard&) = delete;
  session_guard& operator=(const session_guard&) = delete;

  /// Names a private directory of the session, before it is made.
  void watch(const std::string& directory);

private:
  pid_t pid_ = -1;
  int pipe_ = -1; ///< its end tells the guard that we are gone
};

/// Kills every process of this user whose attempt directory (`TROUPE_ATTEMPT`) lies in one of these, until none is
/// left. @returns how many it killed
std::size_t kill_attempts_below(const std::vector<std::string>& directories);

} // namespace troupe
