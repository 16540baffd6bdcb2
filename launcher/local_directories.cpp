#include <troupe/launcher/local_directories.hpp>

#include <filesystem>
#include <set>

#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace troupe {

namespace {

/// The directories themselves may be everybody's, as scratch disks are.
std::string base_in(const std::string& directory) { return directory + "/troupe-" + std::to_string(geteuid()); }

/// Which is a disk's by convention, and survives a restart.
constexpr auto directory_on_disk = "/var/tmp";

/// Whether it, or what there is of its path, is in a file system that takes memory.
bool lies_in_memory(std::filesystem::path path) {
  struct statfs status {};
  while (::statfs(path.c_str(), &status) != 0) {
    if (!path.has_relative_path()) return false;
    path = path.parent_path();
  }
  return status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC;
}

} // namespace

std::vector<std::string> local_directories_of(const settings& s) {
  if (const auto& named = s.get(keys::local_dir); !named.empty()) return named;
  if (!lies_in_memory(run_directory::base_of(s.get(keys::run_directory))) || lies_in_memory(directory_on_disk))
    return {};
  return {directory_on_disk};
}

void sweep_local_directories(const settings& s) {
  for (const auto& directory : local_directories_of(s)) run_directory::sweep(base_in(directory));
}

result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name,
                                                          const std::function<void(const error&)>& left_out) {
  sweep_local_directories(s);
  std::vector<run_directory> all;
  std::set<std::string> seen; // named twice is once
  error last;
  for (const auto& directory : local_directories_of(s)) {
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
  if (all.empty() && last && !s.get(keys::local_dir).empty()) return last;
  return all;
}

result<std::optional<run_directory>> share_local_directory(const settings& s, const std::string& name) {
  error last;
  for (const auto& directory : local_directories_of(s)) {
    auto shared = run_directory::share(base_in(directory), name, keys::local_dir.name);
    if (shared) return std::optional{std::move(*shared)};
    last = shared.error();
  }
  if (last) return last;
  return std::optional<run_directory>{};
}

std::vector<std::string> paths_of(const std::vector<run_directory>& directories) {
  std::vector<std::string> paths;
  for (const auto& d : directories) paths.push_back(d.path());
  return paths;
}

} // namespace troupe
