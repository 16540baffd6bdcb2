#pragma once

/// What a process was told to ignore, as by nohup or by a shell for what it runs in the background.

#include <csignal>
#include <initializer_list>

namespace troupe {

/// Those of the signals that this process does not ignore. Whoever blocks a signal and waits for it gets it although it
/// is ignored.
inline sigset_t unless_ignored(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

/// A process that ignores SIGCHLD, which it may have inherited, learns neither that its children end nor how.
inline void hear_of_children() {
  const auto heard = unless_ignored({SIGCHLD});
  if (sigismember(&heard, SIGCHLD) == 0) std::signal(SIGCHLD, SIG_DFL);
}

} // namespace troupe
