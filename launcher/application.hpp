#pragma once

/// A session as one process has it: a driver of its own with executors in this process or beside it, or a connection to
/// a driver elsewhere. Owns the actor system, the run directory and whatever was started.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/launcher/cluster_jobs.hpp>
#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/api/session_core.hpp>
#include <troupe/runtime/config/cluster_file.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

class application {
public:
  struct options {
    settings effective;
    /// Hosts and standing executors of a cluster file; else those that `troupe.master` describes.
    std::optional<cluster_description> cluster;
    /// No executor is started from here: they connect, as clients do. `troupe.master` does not count then.
    bool by_hand = false;
    bool warn_on_stderr = false;                          ///< what is logged as a warning or worse shows there, too
    std::string name = "driver";                          ///< of the log file
    std::string program;                                  ///< executable that executors are started from; "": this one
    std::function<void(const job_progress&)> on_progress; ///< on a CAF thread; must not block
    std::function<void(const job_end&)> on_end;           ///< the same
    /// Told each private directory before it is made, for a session_guard.
    std::function<void(const std::string& directory)> before_making;
  };
  static result<std::unique_ptr<application>> start(options opts);
  /// Ends the session when it is this process's own: jobs are cancelled, executors stopped.
  ~application();
  application(const application&) = delete;
  application& operator=(const application&) = delete;

  /// Valid as long as somebody holds it; calls after the application's end fail.
  std::shared_ptr<cluster_jobs> jobs() const noexcept;
  /// What Ctrl-C does: cancels this process's jobs and, where it has the driver, ends the executors, whatever the
  /// program is about. Any thread, also after the end.
  std::function<void()> make_interruption() const;
  /// Where the driver can be reached; nothing in `local[N]`.
  const std::optional<endpoint>& address() const noexcept;
  const std::string& cluster_id() const noexcept;
  const std::string& session_id() const noexcept;
  /// Where the secret lies.
  const std::string& secret_file() const noexcept;
  const std::string& directory() const noexcept;
  /// About this machine, for people who start a session here: to be shown once.
  const std::vector<std::string>& warnings() const noexcept;
  /// Resources whose addresses were made up, since the machine has none.
  const std::vector<std::string>& fake_resources() const noexcept;
  /// Cores that the master describes; 0 for a driver elsewhere.
  std::int64_t cores() const noexcept;
  /// What sessions on this application start from; the program's own arguments are left to the caller.
  session_options make_session_options() const;

private:
  struct impl;
  explicit application(std::unique_ptr<impl> p);
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
