#include <troupe/launcher/kept_session.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/runtime/execution/keeper.hpp>
#include <troupe/runtime/execution/signals.hpp>

namespace troupe {
namespace {

/// Signals to pass on: those that the keeper takes, but for what this process was told to ignore, as by nohup.
sigset_t passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&set, signal);
  }
  return set;
}

int failed(const char* what) {
  std::cerr << "troupe: cannot " << what << ": " << std::strerror(errno) << '\n';
  return 1;
}

/// What this process does from now on. @returns the exit code
int stand_in_front(pid_t keeper, sigset_t signals) {
  sigaddset(&signals, SIGCHLD);
  for (;;) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGCHLD) {
      kill(keeper, signal);
      continue;
    }
    int status = 0;
    if (waitpid(keeper, &status, WNOHANG) == keeper) return end_like(status);
  }
}

} // namespace

std::optional<int> run_below_keeper(duration end_grace, std::function<void()> clear_up) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return failed("make a pipe");
  hear_of_children();
  const auto signals = passed_on();
  auto blocked = signals;
  sigaddset(&blocked, SIGCHLD);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &blocked, &before);
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
  keeper_options options;
  options.liveness_fd = ends[0];
  options.grace = duration::zero();
  options.end_grace = end_grace;
  options.clear_up = std::move(clear_up);
  return keep(options);
}

} // namespace troupe
