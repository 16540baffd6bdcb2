#include <troupe/runtime/execution/staged_outputs.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/file_move.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {

namespace {

error leaves_directory(const std::string& name) {
  return make_error(ec::invalid_argument, "output '" + name + "' does not stay below the output directory");
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// That no other attempt would fare better there.
bool is_refusal(int why) {
  constexpr std::array lasting{EROFS, EACCES, EPERM, ENAMETOOLONG, ELOOP, EFBIG};
  return std::find(lasting.begin(), lasting.end(), why) != lasting.end();
}

int make_directory(const std::string& path) { return ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno; }

/// Moves one output. @param folder that is to have the folders of its name; "" for none. @returns 0 or errno
int bring(const std::string& from, const std::string& name, const std::string& to, const std::string& folder) {
  if (!folder.empty())
    for (const auto& directory : directories_of(folder, name))
      if (const int why = make_directory(directory); why != 0 && why != EEXIST) return why;
  const auto made = from + "/" + name;
  const int why = move_to_new(made, to);
  if (why != EACCES) return why;
  // As from a folder that the command has made read-only.
  for (const auto& directory : directories_of(from, name)) ::chmod(directory.c_str(), 0700);
  ::chmod(from.c_str(), 0700);
  return move_to_new(made, to);
}

} // namespace

std::vector<std::string> directories_of(const std::string& base, const std::string& name) {
  std::vector<std::string> all;
  for (auto slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1))
    all.push_back(base + "/" + name.substr(0, slash));
  return all;
}

std::string staging_root(std::string_view session, stage_id stage, const std::string& output_directory) {
  return output_directory + "/" + own_folder + "/" + std::string{session} + "-" + std::to_string(stage.value);
}

staging_place place_of(std::string_view session, stage_id stage, partition_index partition, attempt_number attempt,
                       executor_id executor, const std::string& output_directory) {
  return {staging_root(session, stage, output_directory),
          std::to_string(partition) + "." + std::to_string(attempt) + "-" + std::to_string(executor.value),
          output_directory};
}

bool may_pass(int why) {
  constexpr std::array passing{ENOSPC, EDQUOT, EIO,    ESTALE, EMFILE,    ENFILE,   ENOMEM,
                               EBUSY,  EINTR,  EAGAIN, ENOLCK, ETIMEDOUT, EHOSTDOWN};
  return std::find(passing.begin(), passing.end(), why) != passing.end();
}

bool is_full(int why) { return why == ENOSPC || why == EDQUOT; }

result<std::uint64_t> stage_outputs(const std::string& from, const staging_place& place,
                                    const std::vector<std::string>& names, const std::function<bool()>& again) {
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
    const auto code = is_full(why) ? ec::overloaded : is_refusal(why) ? ec::refused : ec::io;
    return make_error(code, what + ": " + std::strerror(why) + (is_full(why) ? "; make room there" : ""));
  };
  // Until it succeeds, or fails in a way that does not pass.
  const auto patiently = [&](const auto& step) {
    int why = step();
    while (why != 0 && may_pass(why) && again()) why = step();
    return why;
  };
  const bool single = names.size() == 1;
  if (!single)
    if (const int why = patiently([&] { return make_directory(own); }))
      return fault("cannot make " + own + " for its outputs", why);
  for (const auto& name : names) {
    const auto to = place.file_of(name, names.size());
    const int why = patiently([&] { return bring(from, name, to, single ? std::string{} : own); });
    if (why == 0) continue;
    discard_staged(place);
    return fault("cannot bring output '" + name + "' to " + to, why);
  }
  return bytes;
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
