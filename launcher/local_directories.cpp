#include <troupe/launcher/local_directories.hpp>

#include <unistd.h>

namespace troupe {

namespace {

/// The directories themselves may be everybody's, as scratch disks are.
std::string base_in(const std::string& directory) { return directory + "/troupe-" + std::to_string(geteuid()); }

} // namespace

void sweep_local_directories(const settings& s) {
  for (const auto& directory : s.get(keys::local_dir)) run_directory::sweep(base_in(directory));
}

result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name) {
  sweep_local_directories(s);
  std::vector<run_directory> all;
  for (const auto& directory : s.get(keys::local_dir)) {
    auto made = run_directory::create(base_in(directory), name, keys::local_dir.name);
    if (!made) return made.error();
    all.push_back(std::move(*made));
  }
  return all;
}

std::vector<std::string> paths_of(const std::vector<run_directory>& directories) {
  std::vector<std::string> paths;
  for (const auto& d : directories) paths.push_back(d.path());
  return paths;
}

} // namespace troupe
