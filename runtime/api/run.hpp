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
/// and ends what it started. Where this process was started as an executor, it is one and `body` is never called, so
/// nothing before or after this call should matter to tasks.
///
/// Troupe's own options (`--master`, `--conf key=value`, `--config-file`, …) are taken from the arguments; the rest is
/// `session.arguments()`. Exceptions of `body` are printed on standard error.
/// @returns the exit code for main: 0 ok, 1 job failed, 2 usage or configuration, 3 infeasible, 4 cluster unreachable,
/// 130 interrupted
int run(int argc, char** argv, const std::function<void(session&)>& body, const run_options& options = {});

} // namespace troupe
