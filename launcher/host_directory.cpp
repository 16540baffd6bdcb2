#include <troupe/launcher/host_directory.hpp>

#include <filesystem>

#include <troupe/launcher/local_directories.hpp>

namespace troupe {

host_directory host_directory::join(const settings& s, const std::string& run_directory, const std::string& cluster_id,
                                    const std::function<void(const error&)>& warn) {
  host_directory shared;
  if (s.get(keys::transfer_same_host) != "auto") return shared;
  const auto name = "host-" + cluster_id;
  auto sockets = troupe::run_directory::share(std::filesystem::path{run_directory}.parent_path().string(), name);
  if (!sockets) {
    warn(sockets.error());
    return shared;
  }
  shared.sockets_.emplace(std::move(*sockets));
  auto files = share_local_directory(s, name);
  shared.no_disk_ = !files;
  if (files)
    shared.files_ = std::move(*files);
  else
    warn(files.error());
  return shared;
}

} // namespace troupe
