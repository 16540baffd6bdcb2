#include <troupe/runtime/execution/keeper.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/runtime/execution/pidfd.hpp>
#include <troupe/runtime/execution/process_tree.hpp>
#include <troupe/runtime/execution/signals.hpp>

namespace troupe {

namespace {

constexpr auto lateness_that_counts = std::chrono::milliseconds{200};
/// Where the keeper holds the liveness pipe.
constexpr int kept_liveness_fd = 3;

int failed(const char* what) {
  ::dprintf(STDERR_FILENO, "troupe: executor: %s: %s\n", what, std::strerror(errno));
  return 1;
}

/// The executor's side of the fork.
void become_executor(pid_t keeper, const sigset_t& mask, int liveness_fd) {
  // A group of its own, so that a terminal's signals come once, by way of the keeper.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(128 + SIGKILL); // it ended before the line above
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (liveness_fd >= 0) ::close(liveness_fd);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

/// Lets go of everything that others might wait to see closed.
void hold_only(int liveness_fd) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) ::dup2(null, fd);
  if (liveness_fd >= 0 && liveness_fd != kept_liveness_fd) ::dup2(liveness_fd, kept_liveness_fd);
  ::close_range(liveness_fd >= 0 ? kept_liveness_fd + 1 : 3, ~0u, 0);
}

} // namespace

int end_like(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  const int signal = WTERMSIG(status);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core); // the executor's own was worth keeping, the keeper's is not
  ::signal(signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  ::sigprocmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  return 128 + signal;
}

namespace {

int watch(pid_t executor, int liveness_fd, const keeper_options& options) {
  ::prctl(PR_SET_NAME, "troupe-keeper");
  hold_only(liveness_fd);
  const auto signals = unless_ignored({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGCHLD});
  const int signal_fd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  const int executor_fd = open_pidfd(executor);
  if (signal_fd < 0 || executor_fd < 0) {
    ::kill(executor, SIGKILL); // unwatched it must not run
    liveness_fd = -1;
  }
  using clock = std::chrono::steady_clock;
  std::optional<clock::time_point> deadline;
  // The first reason to end sets it, a later one can only bring it nearer.
  const auto end_within = [&](duration grace) {
    const auto at = clock::now() + grace;
    deadline = deadline ? std::min(*deadline, at) : at;
  };
  std::optional<clock::time_point> stopped_until;
  const auto look_at_executor = [&] {
    siginfo_t change{};
    while (::waitid(P_PID, static_cast<id_t>(executor), &change, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
           change.si_pid == executor) {
      if (change.si_code == CLD_CONTINUED)
        stopped_until.reset();
      else if (change.si_code == CLD_STOPPED && options.stopped_grace > duration::zero())
        stopped_until = clock::now() + options.stopped_grace;
      change = {};
    }
  };
  pollfd fds[3] = {
      {executor_fd, POLLIN, 0}, {signal_fd, POLLIN, 0}, {liveness_fd >= 0 ? kept_liveness_fd : -1, POLLIN, 0}};
  while (executor_fd >= 0) {
    int timeout = -1;
    if (deadline || stopped_until) {
      const auto next =
          std::min(deadline.value_or(clock::time_point::max()), stopped_until.value_or(clock::time_point::max()));
      const auto rest = std::chrono::ceil<std::chrono::milliseconds>(next - clock::now()).count();
      if (rest <= 0) {
        ::kill(executor, SIGKILL); // ends stopped processes too
        deadline.reset();
        stopped_until.reset();
        continue;
      }
      timeout = static_cast<int>(std::min<long long>(rest, 1'000'000));
    }
    const auto began = clock::now();
    const int ready = ::poll(fds, 3, timeout);
    // A keeper that was stopped itself, or got no time, does not count that against the executor.
    const auto late = clock::now() - began - std::chrono::milliseconds{timeout};
    if (timeout >= 0 && late > lateness_that_counts) {
      if (deadline) *deadline += late;
      if (stopped_until) *stopped_until += late;
    }
    if (ready <= 0) continue;
    if (fds[0].revents != 0) break;
    signalfd_siginfo info{};
    while (fds[1].revents != 0 && ::read(signal_fd, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) {
        look_at_executor();
        continue;
      }
      // Whatever the executor does with SIGTSTP.
      ::kill(executor, info.ssi_signo == SIGTSTP ? SIGSTOP : static_cast<int>(info.ssi_signo));
      if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGHUP)
        end_within(options.end_grace);
    }
    if (fds[2].revents != 0) {
      char byte;
      const auto n = ::read(kept_liveness_fd, &byte, 1);
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        fds[2].fd = -1;
        end_within(options.grace);
      }
    }
  }
  int status = 0;
  while (::waitpid(executor, &status, 0) < 0 && errno == EINTR) {}
  end_all_descendants();
  if (options.clear_up) {
    pollfd starter{kept_liveness_fd, POLLIN, 0};
    options.clear_up(liveness_fd >= 0 && ::poll(&starter, 1, 0) > 0);
  }
  return end_like(status);
}

} // namespace

std::optional<int> keep(const keeper_options& options) {
  if (options.liveness_fd >= 0 && ::fcntl(options.liveness_fd, F_GETFD) < 0)
    return failed("the liveness pipe's descriptor is not open");
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return failed("cannot become a child subreaper");
  hear_of_children(); // the keeper and the executor
  const pid_t keeper = ::getpid();
  sigset_t all, before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t executor = ::fork();
  if (executor < 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return failed("cannot start the executor below its keeper");
  }
  if (executor == 0) {
    become_executor(keeper, before, options.liveness_fd);
    return std::nullopt;
  }
  return watch(executor, options.liveness_fd, options);
}

} // namespace troupe
