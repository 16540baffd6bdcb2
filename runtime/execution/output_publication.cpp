#include <troupe/runtime/execution/output_publication.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/file_move.hpp>
#include <troupe/runtime/execution/publication_list.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

std::string cannot(const std::string& name, const std::string& to, const std::string& why) {
  return "cannot publish output '" + name + "' as " + to + ": " + why;
}

published not_seen(std::string why) { return {publication_outcome::not_seen, std::move(why)}; }
published gone(std::string why) {
  auto end = not_seen(std::move(why));
  end.gone = true;
  return end;
}
published unpublished(std::string why) { return {publication_outcome::failed, std::move(why)}; }

/// The end of a publication that failed before it moved a file. Another process may be allowed what this one is not.
published untouched(int why, std::string text) {
  if (why == EACCES || why == EPERM || why == EROFS) return not_seen(std::move(text));
  auto end = unpublished(std::move(text));
  end.may_pass = may_pass(why);
  return end;
}
bool says_missing(int why) { return why == ENOENT || why == ENOTDIR; }

/// The fault of what waits under one of several names. It has to be a regular file, with no link on the way to it.
std::optional<published> fault_of_staged(const staging_place& place, const std::string& name) {
  const auto own = place.path();
  const auto to = place.to + "/" + name;
  struct stat status {};
  const auto missing = [&](const std::string& what, int why) {
    auto text = cannot(name, to, what + ": " + std::strerror(why));
    return says_missing(why) ? gone(std::move(text)) : untouched(why, std::move(text));
  };
  for (const auto& directory : directories_of(own, name)) {
    if (::lstat(directory.c_str(), &status) != 0) {
      const int why = errno;
      return missing(directory, why);
    }
    if (!S_ISDIR(status.st_mode)) return unpublished(cannot(name, to, directory + " is no directory"));
  }
  const auto file = own + "/" + name;
  if (::lstat(file.c_str(), &status) != 0) {
    const int why = errno;
    return missing(file, why);
  }
  if (!S_ISREG(status.st_mode)) return unpublished(cannot(name, to, file + " is no regular file"));
  return {};
}

/// The fault of the place itself: nothing is there for this process, or nothing that it may move.
std::optional<published> fault_of_place(const staging_place& place, bool holds_file) {
  const auto own = place.path();
  const auto text = [&](const char* why) { return "cannot publish what waits in " + own + ": " + why; };
  struct stat status {};
  if (::lstat(own.c_str(), &status) != 0) {
    const int why = errno;
    return says_missing(why) ? gone(text(std::strerror(why))) : untouched(why, text(std::strerror(why)));
  }
  if (holds_file && !S_ISREG(status.st_mode)) return unpublished(text("it is no regular file"));
  if (!holds_file && !S_ISDIR(status.st_mode)) return unpublished(text("it is no directory"));
  // Before anything is made for the targets: another user's files cannot be moved from here.
  const auto& folder = holds_file ? place.root : own;
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    const int why = errno;
    return untouched(why, text(std::strerror(why)));
  }
  return {};
}

/// The fault of the target under this name, one of `count`. The directories that lead to it are made.
std::optional<published> fault_of_target(const staging_place& place, const std::string& name, std::size_t count) {
  const fs::path to{place.to + "/" + name};
  struct stat status {};
  if (::lstat(to.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return unpublished(cannot(name, to.string(), "a directory is in its place"));
  } else if (says_missing(errno) && name.find('/') != name.npos) {
    std::error_code why;
    fs::create_directories(to.parent_path(), why);
    if (why) return untouched(why.value(), cannot(name, to.string(), why.message()));
  }
  // Of one the move itself tells; of several it would tell when others have been moved.
  if (count > 1 && ::faccessat(AT_FDCWD, to.parent_path().c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    const int why = errno;
    return untouched(why, cannot(name, to.string(), std::strerror(why)));
  }
  return {};
}

std::optional<published> fault_of(const staging_place& place, const std::vector<std::string>& names) {
  const bool single = names.size() == 1;
  if (auto fault = fault_of_place(place, single)) return fault;
  for (const auto& name : names) {
    if (!is_output_name(name)) return unpublished("output '" + name + "' does not stay below the output directory");
    if (single) continue;
    if (auto fault = fault_of_staged(place, name)) return fault;
  }
  for (const auto& name : names)
    if (auto fault = fault_of_target(place, name, names.size())) return fault;
  return {};
}

std::optional<published> fault_of_putting_in_place(const staging_place& place, const std::string& name,
                                                   std::size_t count) {
  const fs::path to{place.to + "/" + name};
  auto root = fs::path{place.root}.filename().string();
  if (root.ends_with(over_ending)) root.resize(root.size() - over_ending.size());
  const auto beside = (to.parent_path() / own_folder).string() + "-" + root;
  const auto from = place.file_of(name, count);
  const int why = move_over(from, to.string(), beside + "-" + place.name);
  if (why == 0) return {};
  auto text = cannot(name, to.string(), std::strerror(why));
  struct stat status {};
  const bool is_gone = says_missing(why) && ::lstat(from.c_str(), &status) != 0 && says_missing(errno);
  return is_gone ? gone(std::move(text)) : untouched(why, std::move(text));
}

enum class progress { waits, moved, aside };

/// How far one of several outputs is whose list was written: by whomever it was moved. `aside`: it cannot be told.
progress progress_of(const staging_place& place, const std::string& name) {
  struct stat status {};
  if (::lstat((place.path() + "/" + name).c_str(), &status) == 0 || !says_missing(errno)) return progress::waits;
  if (::lstat(place.path().c_str(), &status) == 0) return progress::moved;
  const auto list = state_of_list(place);
  const bool is_aside = list == list_state::own && ::lstat(aside_of(place).c_str(), &status) == 0;
  return is_aside || list == list_state::unknown ? progress::aside : progress::moved;
}

/// The fault that keeps one of several outputs from its place; none where it is there.
std::optional<published> fault_of_moving(const staging_place& place, const std::string& name, std::size_t count) {
  if (progress_of(place, name) == progress::moved) return {};
  auto fault = fault_of_staged(place, name);
  if (!fault) fault = fault_of_target(place, name, count);
  if (!fault) fault = fault_of_putting_in_place(place, name, count);
  if (!fault) return {};
  const auto now = progress_of(place, name);
  if (now == progress::moved) return {}; // by another process, meanwhile
  if (now == progress::aside) fault->may_pass = true;
  return fault;
}

std::size_t count_moved(const staging_place& place, const std::vector<std::string>& names, std::string& some) {
  constexpr std::size_t most_named = 5;
  std::size_t count = 0;
  for (const auto& name : names)
    if (progress_of(place, name) == progress::moved && ++count <= most_named) some += (count == 1 ? "" : ", ") + name;
  if (count > most_named) some += ", ...";
  return count;
}

/// True where somebody has put another file there since the list was written.
bool is_newer(const std::string& file, const std::string& list) {
  struct stat target {
  }, begun{};
  if (::lstat(file.c_str(), &target) != 0 || !S_ISREG(target.st_mode) || ::lstat(list.c_str(), &begun) != 0)
    return false;
  const auto& a = target.st_ctim;
  const auto& b = begun.st_mtim;
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/// Undoes what somebody has begun who was killed while he looked whether it may be removed.
void bring_back(const staging_place& place) {
  struct stat status {};
  if (::lstat(place.path().c_str(), &status) != 0)
    static_cast<void>(::rename(aside_of(place).c_str(), place.path().c_str()));
}

/// Moves what is left of a publication that has begun. @param later what was put there since stays: nobody waits for
/// this one any more. @pre the lock is held, and the list is of this attempt. @returns the fault that keeps it from its
/// end
std::optional<published> complete(const staging_place& place, const std::vector<std::string>& names, bool later) {
  bring_back(place);
  const auto list = list_of(place);
  for (const auto& name : names) {
    if (later && is_newer(place.to + "/" + name, list)) continue;
    if (auto fault = fault_of_moving(place, name, names.size())) return fault;
  }
  remove_publication_list(place);
  discard_staged(place);
  return {};
}

/// Says how far a publication came that cannot go on.
published cut_short(const staging_place& place, const std::vector<std::string>& names, published fault) {
  std::string some;
  const auto count = count_moved(place, names, some);
  fault.outcome = publication_outcome::failed;
  fault.gone = false;
  fault.begun = true;
  fault.reason += "; of its " + std::to_string(names.size()) + " outputs " + std::to_string(count) + " are in place (" +
                  some + "), and the others wait in " + place.to + "/" + own_folder +
                  ": mend that, and the next job that writes to " + place.to + " puts them in place";
  return fault;
}

published busy(const staging_place& place, bool begun) {
  auto end = unpublished("another process is just putting in place what waits in " + place.path() +
                         ", or it cannot be told whether one is");
  end.may_pass = true;
  end.begun = begun;
  return end;
}

/// @param begun some may be in place
published publish_several(const staging_place& place, const std::vector<std::string>& names, bool begun) {
  if (!begun)
    if (const int why = write_publication_list(place, names))
      return untouched(why, "cannot write " + list_of(place) +
                                ", which says what is to be published: " + std::strerror(why));
  const publication_lock alone{place}; // else two could copy one file to one place
  if (!alone.is_held()) return busy(place, true);
  const auto list = state_of_list(place);
  if (list == list_state::unknown) return busy(place, true);
  // Somebody else has found the list, and has completed it. (Where another user's files look like nobody's it is never
  // believed, and the place is there.)
  struct stat status {};
  if (list == list_state::none && ::lstat(place.path().c_str(), &status) != 0) return {};
  if (auto fault = begun ? std::nullopt : fault_of_place(place, false)) {
    remove_publication_list(place); // it was taken away before the list was there, which keeps it
    return *std::move(fault);
  }
  auto fault = complete(place, names, false);
  if (!fault) return {};
  if (begun || std::any_of(names.begin(), names.end(),
                           [&](const auto& name) { return progress_of(place, name) != progress::waits; }))
    return cut_short(place, names, *std::move(fault));
  remove_publication_list(place); // as if it had not begun: another attempt of this one may
  return *std::move(fault);
}

published publish_all(const staging_place& place, const std::vector<std::string>& names) {
  const bool single = names.size() == 1;
  if (!single) {
    const auto list = state_of_list(place);
    if (list == list_state::unknown) return busy(place, false);
    if (list == list_state::own) return publish_several(place, names, true);
  }
  if (auto fault = fault_of(place, names)) return *std::move(fault);
  if (!single) return publish_several(place, names, false);
  auto fault = fault_of_putting_in_place(place, names[0], 1);
  return fault ? *std::move(fault) : published{};
}

/// Lists in a root; none where it is gone.
std::vector<fs::path> lists_in(const fs::path& root) {
  std::vector<fs::path> lists;
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(root, ignored))) return lists;
  for (fs::directory_iterator entry{root, ignored}, end; !ignored && entry != end; entry.increment(ignored))
    if (entry->path().filename().string().ends_with(list_ending)) lists.push_back(entry->path());
  return lists;
}

} // namespace

published publish_staged(const staging_place& place, const std::vector<std::string>& names) {
  auto end = publish_all(place, names);
  if (end.outcome == publication_outcome::failed && !end.may_pass) give_up_staged(place);
  return end;
}

published publish_own(const staging_place& place, const std::vector<std::string>& names) {
  auto end = publish_staged(place, names);
  if (end.outcome != publication_outcome::not_seen) return end;
  give_up_staged(place);
  return end.gone ? end : unpublished(std::move(end.reason));
}

result<void> complete_publications(const std::string& root) {
  result<void> end;
  for (const auto& path : lists_in(root)) {
    const auto list = read_publication_list(path.string());
    if (!list) continue;
    const staging_place place{root, list->place, fs::path{root}.parent_path().parent_path().string()};
    const publication_lock alone{place};
    if (!alone.is_held()) continue; // somebody is at it
    if (state_of_list(place) != list_state::own) continue;
    bring_back(place);
    if (is_cut_short(place, *list)) { // of what waited for its end no file is certain to be whole
      remove_publication_list(place);
      discard_staged(place);
      continue;
    }
    if (auto fault = complete(place, list->names, true))
      end = make_error(ec::io, cut_short(place, list->names, *std::move(fault)).reason);
  }
  return end;
}

result<void> complete_earlier_publications(const std::string& output_directory, std::string_view session) {
  std::vector<std::string> roots;
  const auto own = fs::path{output_directory} / own_folder;
  const auto live = std::string{session} + "-"; // but for those that are over, whose jobs nobody minds any more
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(own, ignored))) return {};
  for (fs::directory_iterator entry{own, ignored}, end; !ignored && entry != end; entry.increment(ignored))
    if (const auto name = entry->path().filename().string(); !name.starts_with(live) || name.ends_with(over_ending))
      roots.push_back(entry->path().string());
  result<void> end;
  for (const auto& root : roots) {
    if (auto completed = complete_publications(root); !completed) end = std::move(completed);
    if (root.ends_with(over_ending)) ::rmdir(root.c_str()); // nobody waits there any more
  }
  return end;
}

void give_up_staged(const staging_place& place) noexcept {
  try {
    if (state_of_list(place) == list_state::none) discard_staged(place);
  } catch (const std::exception&) { // no memory: it goes with the root
  }
}

} // namespace troupe
