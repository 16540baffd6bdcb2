#pragma once

/// The front door of a program that is a job.

#include <functional>
#include <string>
#include <vector>

namespace troupe {

class session;

/// What a program fixes for itself.
struct run_options {
  /// `key=value` settings that are weaker than every file, variable and argument of the user's.
  std::vector<std::string> defaults;
};

/// Connects to the cluster that configuration and arguments name, or starts a local one, calls `body` with a session,
/// and ends what it started.
///
/// Executors of a local cluster are this program, started again with the same arguments: main is run in every executor
/// up to this call, which does not come back there, and `body` is called in none. So what stands before it should
/// change nothing outside (what it reads from its own arguments is fine), and what stands behind it runs once. Exit
/// handlers and destructors of static objects do not run in executors. So it is for drivers and executors that the
/// program becomes by a file with a `node` section.
///
/// Troupe's own options (`--master`, `--conf key=value`, `--config-file`, …) are taken from the arguments; the rest is
/// `session.arguments()`. Exceptions of `body`, of whatever type, are printed on standard error.
/// To be called before there is any other thread.
/// @returns the exit code for main: 0 ok, 1 job failed, 2 usage or configuration, 3 infeasible, 4 cluster unreachable,
/// 130 interrupted
int run(int argc, char** argv, const std::function<void(session&)>& body, const run_options& options = {});

} // namespace troupe
