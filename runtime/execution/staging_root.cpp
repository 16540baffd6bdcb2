#include <troupe/runtime/execution/staging_root.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/output_publication.hpp>
#include <troupe/runtime/execution/publication_list.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Rounds of making or removing something that others remove or make at the same time.
constexpr int most_rounds = 20;

std::string over_of(const std::string& root) { return root + std::string{over_ending}; }

std::string own_folder_of(const std::string& root) { return fs::path{root}.parent_path().string(); }

/// Makes a folder and those that lead to it, and appends those that were missing.
std::error_code make_folders(const fs::path& folder, std::vector<made_folder>& made) {
  const auto make = [&]() -> std::error_code {
    if (::mkdir(folder.c_str(), 0777) == 0)
      made.push_back(identified(folder.string()));
    else if (errno != EEXIST)
      return {errno, std::generic_category()}; // of a file that is in the way the next step tells
    return {};
  };
  const auto failed = make();
  if (failed != std::errc::no_such_file_or_directory || folder.parent_path() == folder) return failed;
  const auto above = make_folders(folder.parent_path(), made);
  return above ? above : make();
}

/// A publication may begin at any moment. So what goes is put aside first: who writes its list after that does not find
/// it, and who has written it before gets it back.
void remove_unlisted(const std::string& root, const std::string& name) {
  const bool was_aside = name.starts_with(aside_beginning);
  const staging_place place{root, was_aside ? name.substr(aside_beginning.size()) : name, ""};
  const auto aside = aside_of(place);
  if (!was_aside && ::rename(place.path().c_str(), aside.c_str()) != 0) {
    if (errno != ENOENT && state_of_list(place) == list_state::none) remove_tree(place.path());
    return;
  }
  if (state_of_list(place) == list_state::none)
    remove_tree(aside);
  else
    static_cast<void>(::rename(aside.c_str(), place.path().c_str())); // else who completes it finds it there
}

/// Removes of what waits in a root what `goes` says yes to, by name, and completes publications that have begun.
template <class Predicate>
void remove_in(const std::string& root, Predicate goes) {
  static_cast<void>(complete_publications(root)); // what it cannot move stays, with its list
  std::error_code ignored;
  std::set<std::string> names; // first, since what goes while it is read may hide others
  for (fs::directory_iterator entry{root, ignored}, end; !ignored && entry != end; entry.increment(ignored))
    names.insert(entry->path().filename().string());
  auto stays = names;
  std::erase_if(stays, [](const std::string& name) { return !name.ends_with(list_ending); });
  for (const auto& list : std::set<std::string>{stays}) {
    const auto begun = read_publication_list(root + "/" + list);
    begun ? static_cast<void>(stays.insert(begun->place)) : static_cast<void>(stays.erase(list));
  }
  for (const auto& name : names)
    if (goes(name) && !stays.contains(name)) remove_unlisted(root, name);
}

/// What is left of a list whose writer was killed. @returns true where there was one
bool remove_unfinished_lists(const std::string& root) {
  bool any = false;
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(root, ignored))) return false;
  for (fs::directory_iterator entry{root, ignored}, end; !ignored && entry != end; entry.increment(ignored))
    if (entry->path().filename().string().ends_with(std::string{list_ending} + "-new"))
      any = ::unlink(entry->path().c_str()) == 0 || any;
  return any;
}

/// Of one that was renamed to be removed.
void remove_over(const std::string& over) {
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(over, ignored))) return;
  remove_in(over, [](const std::string&) { return true; });
  ::rmdir(over.c_str());
}

/// Seconds after which nobody is there any more who would publish what waits.
constexpr std::int64_t stale_after = 14 * 24 * 3600;

/// Whether a name in Troupe's own folder is that of a root, `SESSION-STAGE`, also of one that is being removed.
bool is_root_name(std::string_view name) {
  if (name.ends_with(over_ending)) name.remove_suffix(over_ending.size());
  constexpr std::size_t session = 16; // hexadecimal digits
  const auto all_of = [](std::string_view text, std::string_view digits) {
    return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
  };
  return name.size() > session && name[session] == '-' && all_of(name.substr(0, session), "0123456789abcdef") &&
         all_of(name.substr(session + 1), "0123456789");
}

} // namespace

made_folder identified(const std::string& path) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_INO | STATX_BTIME, &status) != 0) return {path};
  const bool tells = (status.stx_mask & STATX_BTIME) != 0;
  return {path, status.stx_ino, tells ? status.stx_btime.tv_sec * 1'000'000'000 + status.stx_btime.tv_nsec : 0};
}

std::vector<made_folder> folders_missing_for(const std::string& root) {
  std::vector<made_folder> missing;
  struct stat status {};
  for (auto folder = fs::path{root}.parent_path().parent_path();
       ::stat(folder.c_str(), &status) != 0 && errno == ENOENT; folder = folder.parent_path())
    missing.push_back({folder.string()});
  return missing;
}

result<std::vector<made_folder>> make_root(const std::string& root) {
  const auto own = own_folder_of(root);
  std::vector<made_folder> made;
  std::error_code failed;
  for (int round = 0; round < most_rounds; ++round) {
    failed = make_folders(fs::path{own}.parent_path(), made);
    if (!failed && ::mkdir(own.c_str(), 0777) != 0 && errno != EEXIST) failed = {errno, std::generic_category()};
    std::error_code unknown;
    if (const auto status = fs::symlink_status(own, unknown); fs::exists(status) && !fs::is_directory(status))
      return make_error(ec::invalid_argument,
                        "cannot make " + root + ", where outputs would wait: " + own +
                            " is no folder; it is Troupe's own name there, so choose another for that");
    if (!failed && ::mkdir(root.c_str(), 0777) != 0 && errno != EEXIST) failed = {errno, std::generic_category()};
    // Else somebody has just removed what was empty.
    if (failed != std::errc::no_such_file_or_directory && failed != std::errc::file_exists &&
        failed != std::errc::not_a_directory)
      break;
  }
  if (!failed) return made;
  const bool lasts = failed == std::errc::not_a_directory || failed == std::errc::file_exists ||
                     failed == std::errc::permission_denied || failed == std::errc::operation_not_permitted ||
                     failed == std::errc::read_only_file_system || failed == std::errc::filename_too_long ||
                     failed == std::errc::too_many_symbolic_link_levels;
  const bool wants_room = is_full(failed.value());
  const auto code = lasts ? ec::invalid_argument : wants_room ? ec::overloaded : ec::io;
  return make_error(code, "cannot make " + root + ", where outputs would wait: " + failed.message() +
                              (wants_room ? "; make room there" : ""));
}

void remove_own_staging(const std::string& root, executor_id executor) noexcept {
  try {
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(root, ignored))) return;
    const auto mine = "-" + std::to_string(executor.value);
    remove_in(root, [&](const std::string& name) { return name.ends_with(mine); });
  } catch (const std::exception&) { // no memory: it is left to who ends the job
  }
}

void remove_empty_root(const std::string& root) noexcept {
  try {
    if (::rmdir(root.c_str()) != 0 && (errno == ENOTEMPTY || errno == EEXIST) && remove_unfinished_lists(root))
      ::rmdir(root.c_str());
    remove_over(over_of(root));
    ::rmdir(own_folder_of(root).c_str());
  } catch (const std::exception&) { // no memory: it stays, and nobody looks at it
  }
}

void remove_staging(const std::string& root) noexcept {
  try {
    const auto over = over_of(root);
    for (int round = 0; round < most_rounds; ++round) {
      if (::rename(root.c_str(), over.c_str()) == 0 || (errno != ENOTEMPTY && errno != EEXIST)) break;
      remove_over(over); // of a process that was killed in the middle of this
    }
    remove_over(over);
    ::rmdir(own_folder_of(root).c_str());
  } catch (const std::exception&) { // no memory: it stays, and nobody looks at it
  }
}

void remove_stale_staging(const std::string& output_directory, std::string_view session, std::int64_t now) noexcept {
  try {
    const auto own = output_directory + "/" + own_folder;
    const auto is_stale = [&](const std::string& path) {
      struct stat status {};
      return ::lstat(path.c_str(), &status) == 0 && status.st_uid == ::geteuid() &&
             now - std::max(status.st_mtim.tv_sec, status.st_ctim.tv_sec) > stale_after;
    };
    std::vector<std::string> roots;
    std::error_code ignored;
    if (!fs::is_directory(fs::symlink_status(own, ignored))) return;
    for (fs::directory_iterator entry{own, ignored}, end; !ignored && entry != end; entry.increment(ignored)) {
      const auto name = entry->path().filename().string();
      if (is_root_name(name) && !name.starts_with(session) &&
          fs::is_directory(fs::symlink_status(entry->path(), ignored)))
        roots.push_back(entry->path().string());
    }
    for (const auto& root : roots) {
      // Where nothing is as old an attempt may still run, and want to leave something.
      bool any = false;
      std::error_code gone;
      for (fs::directory_iterator entry{root, gone}, end; !any && !gone && entry != end; entry.increment(gone))
        any = is_stale(entry->path().string());
      if (!any) continue;
      const bool is_over = is_stale(root); // nothing has come or gone for as long
      remove_in(root, [&](const std::string& name) { return is_stale(root + "/" + name); });
      if (is_over) ::rmdir(root.c_str());
    }
  } catch (const std::exception&) { // no memory: it stays, and nobody looks at it
  }
}

bool remove_made_folder(const made_folder& folder) noexcept {
  try {
    if (folder.inode != 0 && identified(folder.path) != folder) return true;
    return ::rmdir(folder.path.c_str()) == 0 || errno == ENOENT;
  } catch (const std::exception&) { // no memory
    return false;
  }
}

} // namespace troupe
