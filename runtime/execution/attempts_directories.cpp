#include <troupe/runtime/execution/attempts_directories.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/remove_tree.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
constexpr auto attempts_prefix = "attempts-";

/// In the session's directory: a link, or the directory itself.
std::string entry_of(const std::string& session_directory, const std::string& name, std::size_t number) {
  const auto first = session_directory + "/" + attempts_prefix + name;
  return number == 0 ? first : first + "." + std::to_string(number);
}

/// Where it leads, as it was written; the entry itself where it is no link.
std::string target_of(const std::string& entry) {
  std::error_code none;
  const auto target = fs::read_symlink(entry, none);
  return none ? entry : target.string();
}

error failed(const std::string& what, int why) {
  return make_error(ec::io, "cannot make " + what + ": " + std::strerror(why) +
                                "; commands run in the directories of troupe.local.dir: name one with room that this "
                                "user may write to");
}

/// @returns errno
int make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return 0;
  const int why = errno;
  struct stat found {};
  return why == EEXIST && ::lstat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode) ? 0 : why;
}

/// @returns errno
int make_link(const std::string& path, const std::string& entry) {
  if (path == entry || ::symlink(path.c_str(), entry.c_str()) == 0) return 0;
  const int why = errno;
  return why == EEXIST && target_of(entry) == path ? 0 : why;
}

} // namespace

result<std::vector<std::string>> make_attempts_directories(const std::string& session_directory,
                                                           const std::vector<std::string>& parents,
                                                           const std::string& name) {
  std::vector<std::string> made;
  error last;
  // The session's own first, which has the name of the first link.
  auto all = parents;
  std::stable_partition(all.begin(), all.end(), [&](const auto& parent) { return parent == session_directory; });
  for (const auto& parent : all) {
    const auto path = parent + "/" + attempts_prefix + name;
    const auto entry = entry_of(session_directory, name, made.size());
    if (const int no_folder = make_folder(path))
      last = failed(path, no_folder);
    else if (const int no_link = make_link(path, entry))
      last = failed(entry, no_link);
    else
      made.push_back(path);
  }
  if (made.empty()) return last;
  return made;
}

std::vector<std::string> attempts_directories_of(const std::string& session_directory, const std::string& name) {
  std::vector<std::string> all;
  struct stat found {};
  for (auto entry = entry_of(session_directory, name, 0); ::lstat(entry.c_str(), &found) == 0;
       entry = entry_of(session_directory, name, all.size()))
    all.push_back(target_of(entry));
  return all;
}

std::vector<std::string> all_attempts_directories(const std::string& session_directory) {
  std::vector<std::string> all;
  std::error_code ec;
  for (fs::directory_iterator entry{session_directory, ec}, end; !ec && entry != end; entry.increment(ec)) {
    std::error_code gone;
    if (entry->path().filename().string().starts_with(attempts_prefix) && entry->is_directory(gone))
      all.push_back(target_of(entry->path().string()));
  }
  return all;
}

std::string attempts_of(const std::string& attempts_directory, job_id job) {
  return attempts_directory + "/" + std::to_string(job.value);
}

void remove_attempts(const std::vector<std::string>& attempts_directories, job_id job) {
  for (const auto& directory : attempts_directories) remove_tree(attempts_of(directory, job));
}

void remove_attempts_directories(const std::string& session_directory, const std::string& name) {
  const auto all = attempts_directories_of(session_directory, name);
  for (const auto& path : all) remove_tree(path);
  for (std::size_t i = 0; i < all.size(); ++i) remove_tree(entry_of(session_directory, name, i));
}

} // namespace troupe
