#pragma once

/// The parent process of an executor process, which sees to it that nothing of the executor outlives it.

#include <functional>
#include <optional>

#include <troupe/runtime/time.hpp>

namespace troupe {

struct keeper_options {
  int liveness_fd = -1; ///< read end of a pipe whose other end the starter holds open while it lives; -1: none
  /// How long the executor may live on once that end is closed, as after kill -9 of the starter. An executor that can
  /// still act ends by itself before.
  duration grace = std::chrono::seconds{3};
  /// How long it may live on once it has been told to end by TERM, INT or HUP.
  duration end_grace = std::chrono::seconds{3};
  /// How long it may be stopped (SIGSTOP) at a stretch: a driver gives up a silent executor, and whether the driver
  /// itself still lives nobody can tell a stopped one. Zero: for ever.
  duration stopped_grace = duration::zero();
  /// What the keeper does when nothing of the executor is left. `orphaned`: the starter is gone and sees to nothing.
  std::function<void(bool orphaned)> clear_up = {};
};

/// Ends this process as the child did whose `waitpid` status this is: by its signal, or gives its exit code.
int end_like(int status);

/// Forks; to be called at the start of main, before there is any other thread. In the child it returns nothing: that
/// goes on as the executor, a process group leader and child subreaper that is killed when the keeper is and does not
/// ignore SIGCHLD. The parent
/// becomes the keeper. It passes TERM, INT, HUP, QUIT, USR1, USR2, TSTP (as STOP) and CONT on to the executor, but for
/// what this process was told to ignore, as by nohup; kills it (a stopped one too)
/// when `grace` has passed since the end of the liveness pipe, `end_grace` since the first TERM, INT or HUP, or
/// `stopped_grace` since it was stopped; and when the executor has ended for whatever reason kills all that it has
/// started and left, whatever sessions they have made. Then it ends by the signal that ended the executor, or returns
/// its exit code, which main returns at once. Where the system does not let it, it says so on standard error and
/// returns 1.
std::optional<int> keep(const keeper_options& options);

} // namespace troupe
