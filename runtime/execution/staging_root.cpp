#include <troupe/runtime/execution/staging_root.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/remove_tree.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Rounds of making or removing something that others remove or make at the same time.
constexpr int most_rounds = 20;

/// The name of a root that is being removed.
std::string over_of(const std::string& root) { return root + "-over"; }

} // namespace

std::vector<std::string> folders_missing_for(const std::string& root) {
  std::vector<std::string> missing;
  struct stat status {};
  for (auto folder = fs::path{root}.parent_path(); ::stat(folder.c_str(), &status) != 0 && errno == ENOENT;
       folder = folder.parent_path())
    missing.push_back(folder.string());
  return missing;
}

result<void> make_root(const std::string& root) {
  std::error_code failed;
  for (int round = 0; round < most_rounds; ++round) {
    fs::create_directories(fs::path{root}.parent_path(), failed);
    if (!failed && ::mkdir(root.c_str(), 0777) != 0 && errno != EEXIST) failed = {errno, std::generic_category()};
    if (failed != std::errc::no_such_file_or_directory) break; // else somebody has just removed what was empty
  }
  if (!failed) return {};
  return make_error(ec::io, "cannot make " + root + ", where outputs would wait: " + failed.message());
}

void remove_own_staging(const std::string& root, executor_id executor) noexcept {
  try {
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(root, ignored))) return;
    const auto mine = "-" + std::to_string(executor.value);
    std::vector<std::string> own; // first, since what goes while it is read may hide others
    for (fs::directory_iterator entry{root, ignored}, end; !ignored && entry != end; entry.increment(ignored))
      if (entry->path().filename().string().ends_with(mine)) own.push_back(entry->path().string());
    for (const auto& path : own) remove_tree(path);
  } catch (const std::exception&) { // no memory: it is left to who ends the job
  }
}

void remove_empty_root(const std::string& root) noexcept {
  ::rmdir(root.c_str());
  try {
    remove_tree(over_of(root));
  } catch (const std::exception&) { // no memory: it stays, and nobody looks at it
  }
}

void remove_staging(const std::string& root) noexcept {
  try {
    const auto over = over_of(root);
    for (int round = 0; round < most_rounds; ++round) {
      if (::rename(root.c_str(), over.c_str()) == 0 || (errno != ENOTEMPTY && errno != EEXIST)) break;
      remove_tree(over); // of a process that was killed in the middle of this
    }
    remove_tree(over);
  } catch (const std::exception&) { // no memory: it stays, and nobody looks at it
  }
}

void remove_empty_folders(std::vector<std::string> folders) noexcept {
  std::sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const auto& folder : folders) ::rmdir(folder.c_str()); // the innermost first
}

} // namespace troupe
