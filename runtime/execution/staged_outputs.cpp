#include <troupe/runtime/execution/staged_outputs.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/file_move.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

std::string cannot(const std::string& name, const std::string& to, const std::string& why) {
  return "cannot publish output '" + name + "' as " + to + ": " + why;
}

error leaves_directory(const std::string& name) {
  return make_error(ec::invalid_argument, "output '" + name + "' does not stay below the output directory");
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The directories that `name` leads through below `base`, outermost first.
std::vector<std::string> directories_of(const std::string& base, const std::string& name) {
  std::vector<std::string> all;
  for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
    all.push_back(base + "/" + name.substr(0, slash));
  return all;
}

published not_seen(std::string why) { return {publication_outcome::not_seen, std::move(why)}; }
published unpublished(std::string why) { return {publication_outcome::failed, std::move(why)}; }

/// The end of a publication that failed before it moved a file. Another process may be allowed what this one is not.
published untouched(int why, std::string text) {
  const bool may_not = why == EACCES || why == EPERM || why == EROFS;
  return may_not ? not_seen(std::move(text)) : unpublished(std::move(text));
}

/// The fault of what waits under one of several names. It has to be a regular file, with no link on the way to it.
std::optional<published> fault_of_staged(const staging_place& place, const std::string& name) {
  const auto own = place.path();
  const auto to = place.to + "/" + name;
  struct stat status {};
  for (const auto& directory : directories_of(own, name)) {
    if (::lstat(directory.c_str(), &status) != 0) return untouched(errno, cannot(name, to, std::strerror(errno)));
    if (!S_ISDIR(status.st_mode)) return unpublished(cannot(name, to, directory + " is no directory"));
  }
  const auto file = own + "/" + name;
  if (::lstat(file.c_str(), &status) != 0)
    return untouched(errno, cannot(name, to, file + ": " + std::strerror(errno)));
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
    return why == ENOENT || why == ENOTDIR ? not_seen(text(std::strerror(why)))
                                           : untouched(why, text(std::strerror(why)));
  }
  if (holds_file && !S_ISREG(status.st_mode)) return unpublished(text("it is no regular file"));
  if (!holds_file && !S_ISDIR(status.st_mode)) return unpublished(text("it is no directory"));
  // Before anything is made for the targets: another user's files cannot be moved from here.
  const auto& folder = holds_file ? place.root : own;
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return untouched(errno, text(std::strerror(errno)));
  return {};
}

/// The fault of the target under this name. The directories that lead to it are made.
std::optional<published> fault_of_target(const staging_place& place, const std::string& name) {
  const auto to = place.to + "/" + name;
  struct stat status {};
  if (::lstat(to.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return unpublished(cannot(name, to, "a directory is in its place"));
  } else if (errno == ENOENT && name.find('/') != name.npos) {
    std::error_code why;
    fs::create_directories(fs::path{to}.parent_path(), why);
    if (why) return untouched(why.value(), cannot(name, to, why.message()));
  }
  return {};
}

published publish_all(const staging_place& place, const std::vector<std::string>& names) {
  const bool single = names.size() == 1;
  if (auto fault = fault_of_place(place, single)) return *std::move(fault);
  for (const auto& name : names) {
    if (!is_output_name(name)) return unpublished(leaves_directory(name).message);
    if (single) continue;
    if (auto fault = fault_of_staged(place, name)) return *std::move(fault);
  }
  for (const auto& name : names)
    if (auto fault = fault_of_target(place, name)) return *std::move(fault);
  const auto temporary = "/" + fs::path{place.root}.filename().string() + "-" + place.name;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto to = place.to + "/" + names[i];
    const int why =
        move_over(place.file_of(names[i], names.size()), to, fs::path{to}.parent_path().string() + temporary);
    if (why == 0) continue;
    auto text = cannot(names[i], to, std::strerror(why));
    if (i == 0) return untouched(why, std::move(text));
    text += "; of this attempt's outputs these are in place:";
    for (std::size_t k = 0; k < i; ++k) text += (k == 0 ? " " : ", ") + names[k];
    return unpublished(std::move(text));
  }
  return {};
}

} // namespace

std::string staging_root(std::string_view session, stage_id stage, const std::string& output_directory) {
  return output_directory + "/" + std::string{root_prefix} + std::string{session} + "-" + std::to_string(stage.value);
}

staging_place place_of(std::string_view session, stage_id stage, partition_index partition, attempt_number attempt,
                       executor_id executor, const std::string& output_directory) {
  return {staging_root(session, stage, output_directory),
          std::to_string(partition) + "." + std::to_string(attempt) + "-" + std::to_string(executor.value),
          output_directory};
}

result<std::uint64_t> stage_outputs(const std::string& from, const staging_place& place,
                                    const std::vector<std::string>& names) {
  std::uint64_t bytes = 0;
  for (const auto& name : names) {
    if (!is_output_name(name)) return leaves_directory(name);
    const auto made = from + "/" + name;
    struct stat found {};
    // Not followed: a link could lead anywhere, and its target may go with the attempt.
    if (::lstat(made.c_str(), &found) != 0)
      return make_error(ec::not_found, "the command ended well, but its output '" + name +
                                           "' is missing; it is expected at {output} or under this name in the "
                                           "directory that the command starts in");
    if (S_ISDIR(found.st_mode))
      return make_error(ec::invalid_argument, "the command's output '" + name +
                                                  "' is a folder, and outputs are files: name the files in it, as in "
                                                  "outputs: [" +
                                                  name + "/part], or pack it, as with tar -cf {output}");
    if (S_ISLNK(found.st_mode))
      return make_error(ec::invalid_argument,
                        "the command's output '" + name +
                            "' is no regular file but a link: copy what it leads to, as with cp -L");
    if (!S_ISREG(found.st_mode))
      return make_error(ec::invalid_argument, "the command's output '" + name + "' is no regular file");
    for (const auto& folder : directories_of(from, name))
      if (!is_directory(folder))
        return make_error(ec::invalid_argument, "the command's output '" + name + "' lies behind a link, " + folder +
                                                    ": make it in a folder of its own");
    bytes += static_cast<std::uint64_t>(found.st_size);
    // The target is not looked at from here: a host would remember that nothing is there, and not see it published.
  }
  const auto own = place.path();
  const auto fault = [&](const std::string& what, int why) {
    if (!is_directory(place.root))
      return make_error(ec::cancelled, "its job is over: " + place.root + ", where its outputs would wait, is gone");
    return make_error(ec::io, what + ": " + std::strerror(why));
  };
  const bool single = names.size() == 1;
  if (!single && ::mkdir(own.c_str(), 0777) != 0) return fault("cannot make " + own + " for its outputs", errno);
  for (const auto& name : names) {
    const auto to = place.file_of(name, names.size());
    int why = 0;
    if (!single)
      for (const auto& directory : directories_of(own, name))
        if (why == 0 && ::mkdir(directory.c_str(), 0777) != 0 && errno != EEXIST) why = errno;
    if (why == 0) why = move_to_new(from + "/" + name, to);
    if (why == EACCES) { // as from a folder that the command has made read-only
      for (const auto& folder : directories_of(from, name)) ::chmod(folder.c_str(), 0700);
      ::chmod(from.c_str(), 0700);
      why = move_to_new(from + "/" + name, to);
    }
    if (why == 0) continue;
    discard_staged(place);
    return fault("cannot bring output '" + name + "' to " + to, why);
  }
  return bytes;
}

published publish_staged(const staging_place& place, const std::vector<std::string>& names) {
  auto end = publish_all(place, names);
  const bool nothing_left = end.outcome == publication_outcome::published && names.size() == 1;
  if (end.outcome != publication_outcome::not_seen && !nothing_left) discard_staged(place);
  return end;
}

void discard_staged(const staging_place& place) noexcept {
  try {
    const auto own = place.path();
    if (::unlink(own.c_str()) == 0 || errno == ENOENT) return;
    if (::rmdir(own.c_str()) != 0 && errno == ENOTEMPTY) remove_tree(own);
  } catch (const std::exception&) { // no memory: it goes with the root
  }
}

} // namespace troupe
