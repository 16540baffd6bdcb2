#pragma once

/// An executor in a process of its own: how it is told what it is, and its main function.

#include <functional>
#include <string>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/execution/process_limits.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// Everything that an executor process needs to know. Handed over in a file of the run directory, so that nothing of it
/// shows in arguments or environment.
struct executor_start {
  endpoint driver;
  std::string cluster_id;
  std::string secret_file;
  std::string run_directory;                  ///< of the session, to join
  std::vector<std::string> local_directories; ///< of the session, to join; none: blocks are kept in the run directory
  executor_info info;                         ///< profile, capacity with addresses, request, host
  process_limits limits;                      ///< of the process
  bool shuffle_service = false;               ///< it only keeps what others leave
  std::uint32_t command_processes = 0;        ///< most processes and threads of one command; 0: no limit
};

/// The hidden first argument that makes a process of any Troupe program an executor.
inline constexpr const char* executor_argument = "--troupe-executor";

/// Writes the file that `executor_start` and the settings travel in. Mode 0600.
result<void> write_start_file(const std::string& path, const executor_start& start, const settings& s);

/// How the executor that was started for this request is called in the names of its files. 0: the shuffle service.
std::string name_of_executor(request_id request);

/// A link in the session's run directory to the log of the executor with this number, which says nothing about the name
/// of the file. Both stay when the executor has ended.
std::string log_link_of(executor_id executor);

/// Removes what an executor that has ended leaves in the directories of `start`: its start file, its blocks and its
/// control group. Its log and the output of its attempts stay. `killed`: its keeper may have been, too; so what its
/// commands have left is looked for and killed first.
void clear_up_after_executor(const executor_start& start, request_id request, bool killed);

/// The process's main function, called before anything else when `argv[1]` is `executor_argument`: argv[2] is the start
/// file, argv[3] the number of the liveness descriptor. `native`: the program has task functions of a user's.
/// @returns the exit code
int executor_main(int argc, char** argv, bool native);

struct executor_run {
  std::string name;            ///< of the log file: `<run directory>/<name>.log`
  bool warn_on_stderr = false; ///< what is logged as a warning or worse shows there, too
  /// Called once, on a thread of CAF's, when the driver has admitted it.
  std::function<void(executor_id, const std::string& cluster_id)> on_admitted;
  bool native =
      true; ///< false: this is the plain `troupe` program, which has commands to run and no functions of a user
};

/// Runs an executor in this process until it ends or SIGTERM or SIGINT comes: what `executor_main` does after it has
/// read its file, and what `troupe node` does. Where `start` names no cluster, it joins the one that the driver proves
/// to be. To be called below a keeper, before there is any other thread; blocks the signals that it waits for.
/// @returns the exit code; `why` says what went wrong
int run_executor(const executor_start& start, const settings& s, const executor_run& run, std::string& why);

} // namespace troupe
