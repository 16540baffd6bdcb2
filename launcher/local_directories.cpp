#include <troupe/launcher/local_directories.hpp>

#include <filesystem>
#include <set>

#include <unistd.h>

#include <troupe/runtime/config/path_text.hpp>
#include <troupe/runtime/execution/files_in_memory.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

/// The directories themselves may be everybody's, as scratch disks are.
std::string base_in(const std::string& directory, const settings& s) {
  auto base = plain_path(fs::path{directory} / run_directory::private_name());
  // It may be the base of run directories, written in another way: one place has one name.
  auto runs = run_directory::base_of(s.get(keys::run_directory));
  std::error_code ignored;
  return fs::weakly_canonical(base, ignored) == fs::weakly_canonical(runs, ignored) ? runs : base;
}

/// Which is a disk's by convention, and survives a restart.
constexpr auto directory_on_disk = "/var/tmp";

} // namespace

std::vector<std::string> local_directories_of(const settings& s, const std::string& on_disk) {
  if (const auto& named = s.get(keys::local_dir); !named.empty()) return named;
  if (!lies_in_memory(run_directory::base_of(s.get(keys::run_directory))) || lies_in_memory(on_disk)) return {};
  return {on_disk};
}

std::vector<std::string> local_directories_of(const settings& s) { return local_directories_of(s, directory_on_disk); }

std::string only_memory(const settings& s, const std::vector<run_directory>& made) {
  const auto base = run_directory::base_of(s.get(keys::run_directory));
  if (!made.empty() || !lies_in_memory(base)) return {};
  return "no disk was found, neither at " + std::string{directory_on_disk} + " nor at " + base +
         ": what commands write takes memory, and counts towards that of their task; blocks that exceed the memory of "
         "their executor take more of it. Name a directory on a disk (" +
         std::string{keys::local_dir.name} + ")";
}

void sweep_local_directories(const settings& s) {
  for (const auto& directory : local_directories_of(s)) run_directory::sweep(base_in(directory, s));
}

result<std::vector<run_directory>> make_local_directories(const settings& s, const std::string& name,
                                                          const std::function<void(const error&)>& left_out,
                                                          const std::function<void(const std::string&)>& before) {
  sweep_local_directories(s);
  std::vector<run_directory> all;
  std::set<std::string> seen; // named twice is once
  error last;
  for (const auto& directory : local_directories_of(s)) {
    std::error_code ignored;
    if (!seen.insert(fs::weakly_canonical(directory, ignored).string()).second) continue;
    const auto base = base_in(directory, s);
    if (before) before(base + "/" + name);
    // Where it is the base of run directories, too, the session's own is there already.
    auto made = base == run_directory::base_of(s.get(keys::run_directory))
                    ? run_directory::join(base + "/" + name, keys::local_dir.name)
                    : run_directory::create(base, name, keys::local_dir.name);
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
    auto shared = run_directory::share(base_in(directory, s), name, keys::local_dir.name);
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
