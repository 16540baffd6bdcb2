#pragma once

/// A process that is started by hand with a node file: a driver, or an executor of one.

#include <string>

#include <troupe/runtime/config/node_file.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

struct node_run {
  std::string config_file; ///< absolute; others find the session by it
  /// The program has task functions of a user's: native stages run in an executor that was started from the program
  /// that submits them.
  bool native = false;
  bool json = false; ///< the line that says that it is ready
};

/// Plays the part until it ends or SIGTERM, SIGINT or SIGHUP comes. Prints one line on standard output when it is
/// ready: `driver HOST:PORT cluster ID secret-file PATH` or `executor N cluster ID`, or an object with these names as
/// its keys. To be called before there is any other thread. @returns the exit code; errors are printed on standard
/// error
int run_node(const node_description& node, const settings& s, const node_run& run);

} // namespace troupe
