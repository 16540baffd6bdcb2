#pragma once

/// An executor in a process of its own.

#include <functional>
#include <string>

#include <troupe/launcher/executor_start.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// How the executor that was started for this request is called in the names of its files. 0: the shuffle service.
std::string name_of_executor(request_id request);

/// A link in the session's run directory to the log of the executor with this number, which says nothing about the name
/// of the file. Both stay when the executor has ended.
std::string log_link_of(executor_id executor);
/// The file that an executor has printed to which this session has started, also when it has ended; "" where there is
/// none. @param directory of the session
std::string printed_by(const std::string& directory, executor_id executor);

/// Removes what an executor that has ended leaves in the directories of `start`: its blocks and its
/// control group. Its log and the output of its attempts stay. `killed`: its keeper may have been, too; so what its
/// commands have left is looked for and killed first.
void clear_up_after_executor(const executor_start& start, request_id request, bool killed);

/// Where this process was started as an executor, runs it and ends the process with its exit code: whoever calls this
/// first in main never sees it return there. Elsewhere does nothing. To be called before there is any other thread.
/// `native`: the program has task functions of a user's.
void enter_executor(bool native);

struct executor_run {
  std::string name;            ///< of the log file: `<run directory>/<name>.log`
  bool warn_on_stderr = false; ///< what is logged as a warning or worse shows there, too
  /// Called once, on a thread of CAF's, when the driver has admitted it.
  std::function<void(executor_id, const std::string& cluster_id)> on_admitted;
  bool native =
      true; ///< false: this is the plain `troupe` program, which has commands to run and no functions of a user
};

/// Runs an executor in this process until it ends or SIGTERM, SIGINT or SIGHUP comes: what `enter_executor` does after
/// it has read its start, and what `troupe node` does. Where `start` names no cluster, it joins the one that the driver
/// proves to be. To be called below a keeper, before there is any other thread; blocks the signals that it waits for.
/// @returns the exit code; `why` says what went wrong
int run_executor(const executor_start& start, const settings& s, const executor_run& run, std::string& why);

} // namespace troupe
