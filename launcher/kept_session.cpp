#include <troupe/launcher/kept_session.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

int failed(const char* what) {
  std::cerr << "troupe: cannot " << what << ": " << std::strerror(errno) << '\n';
  return 1;
}

/// As the terminal wants it. Returns when this process goes on; at once where nobody could make it go on.
void stop_here() {
  struct sigaction by_default {
  }, before{};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &by_default, &before);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTSTP);
  raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &only, nullptr); // here it stops
  sigprocmask(SIG_BLOCK, &only, nullptr);
  sigaction(SIGTSTP, &before, nullptr);
}

/// What this process does from now on. @returns the exit code
int stand_in_front(pid_t keeper, const sigset_t& signals) {
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGCHLD) {
      kill(keeper, signal);
      if (signal != SIGTSTP) continue;
      stop_here();
      kill(keeper, SIGCONT);
      continue;
    }
    int status = 0;
    if (waitpid(keeper, &status, WNOHANG) == keeper) return end_like(status);
  }
}

} // namespace

std::optional<int> run_below_keeper(keeper_options options) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("make a pipe");
  hear_of_children();
  const auto signals = unless_ignored({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCHLD});
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  // Else each of the processes would write what main has written so far.
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t keeper = fork();
  if (keeper < 0) return failed("start a process");
  if (keeper > 0) {
    close(ends[0]);
    return stand_in_front(keeper, signals);
  }
  close(ends[1]);
  setpgid(0, 0);            // a terminal's signals come once, by way of the process in front
  signal(SIGTTOU, SIG_IGN); // it may go on to write there
  sigprocmask(SIG_SETMASK, &before, nullptr);
  options.liveness_fd = ends[0];
  options.grace = duration::zero();
  return keep(options);
}

} // namespace troupe
