#include <troupe/runtime/execution/attempts_directories.hpp>

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

error failed(const std::string& what) {
  return make_error(ec::io, "cannot make " + what + ": " + std::strerror(errno));
}

} // namespace

result<std::vector<std::string>> make_attempts_directories(const std::string& session_directory,
                                                           const std::vector<std::string>& parents,
                                                           const std::string& name) {
  std::vector<std::string> made;
  error last;
  for (const auto& parent : parents) {
    const auto path = parent + "/" + attempts_prefix + name;
    const auto entry = entry_of(session_directory, name, made.size());
    if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
      last = failed(path);
    else if (path != entry && ::symlink(path.c_str(), entry.c_str()) != 0 && errno != EEXIST)
      last = failed(entry);
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

void remove_attempts_directories(const std::string& session_directory, const std::string& name) {
  const auto all = attempts_directories_of(session_directory, name);
  for (const auto& path : all) remove_tree(path);
  for (std::size_t i = 0; i < all.size(); ++i) remove_tree(entry_of(session_directory, name, i));
}

} // namespace troupe
