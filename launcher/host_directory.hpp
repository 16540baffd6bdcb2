#pragma once

/// What the processes of one cluster on this host share, whoever has started them: the sockets of their block servers,
/// and one copy of each broadcast.

#include <functional>
#include <optional>
#include <string>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

class host_directory {
public:
  /// Joins it, or makes it, beside the run directory of this process; it goes with the last process that holds it.
  /// Nothing is shared where the settings do not want that, or where it cannot be had, which `warn` is told: the
  /// processes then talk over the network.
  static host_directory join(const settings& s, const std::string& run_directory, const std::string& cluster_id,
                             const std::function<void(const error&)>& warn);

  /// For sockets; "": nothing is shared.
  std::string sockets() const { return sockets_ ? sockets_->path() : std::string{}; }
  /// For files: below the first of `local_directories_of`, where there is one, else where the sockets are. "": no files
  /// are shared.
  std::string files() const { return files_ ? files_->path() : no_disk_ ? std::string{} : sockets(); }

private:
  std::optional<run_directory> sockets_;
  std::optional<run_directory> files_; ///< null: where the sockets are, or nowhere
  bool no_disk_ = false;               ///< a local directory is wanted, and cannot be had
};

} // namespace troupe
