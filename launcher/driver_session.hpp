#pragma once

/// A driver that is not part of a job: what `troupe node` and `troupe cluster up` run.

#include <functional>
#include <optional>
#include <string>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

struct driver_session_options {
  settings effective;
  /// Whose executors are started from here; none: they are started by hand.
  std::optional<cluster_description> cluster;
  std::string config_file;     ///< for people, absolute
  bool warn_on_stderr = false; ///< see application::options
  /// Called once, when the driver takes connections and its standing executors are there.
  std::function<void(const session_record&, std::size_t executors)> on_ready;
  /// Asked until then, if there is one: nobody waits for it any more, so it ends.
  std::function<bool()> abandoned;
};

/// Runs a driver until SIGTERM, SIGINT or SIGHUP, but for those that this process ignores, as below nohup. Enters it
/// into the user's list of sessions. Blocks signals; call it before there is any other thread. Errors: what kept it
/// from starting. Standing executors that do not come within `troupe.dynamic-allocation.launch-timeout` are one; a
/// signal before they have come is ec::cancelled.
result<void> run_driver_session(const driver_session_options& options);

} // namespace troupe
