#include <troupe/launcher/local_directories.hpp>

#include <filesystem>
#include <set>

#include <unistd.h>

namespace troupe {

namespace {

/// The directories themselves may be everybody's, as scratch disks are.
std::string base_in(const std::string& directory) { return directory + "/troupe-" + std::to_string(geteuid()); }

} // namespace

void sweep_local_directories(const settings& s) {
  for (const auto& directory : s.get(keys::local_dir)) run_directory::sweep(base_in(directory));
}

result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name,
                                                          const std::function<void(const error&)>& left_out) {
  sweep_local_directories(s);
  std::vector<run_directory> all;
  std::set<std::string> seen; // named twice is once
  error last;
  for (const auto& directory : s.get(keys::local_dir)) {
    std::error_code ignored;
    if (!seen.insert(std::filesystem::weakly_canonical(directory, ignored).string()).second) continue;
    auto made = run_directory::create(base_in(directory), name, keys::local_dir.name);
    if (made) {
      all.push_back(std::move(*made));
    } else {
      last = made.error();
      left_out(last);
    }
  }
  if (all.empty() && last) return last;
  return all;
}

result<run_directory> share_local_directory(const settings& s, const std::string& name) {
  result<run_directory> shared = make_error(ec::io, "there is none");
  for (const auto& directory : s.get(keys::local_dir)) {
    shared = run_directory::share(base_in(directory), name, keys::local_dir.name);
    if (shared) break;
  }
  return shared;
}

std::vector<std::string> paths_of(const std::vector<run_directory>& directories) {
  std::vector<std::string> paths;
  for (const auto& d : directories) paths.push_back(d.path());
  return paths;
}

} // namespace troupe
