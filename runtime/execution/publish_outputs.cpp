#include <troupe/runtime/execution/publish_outputs.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/command_arguments.hpp>

namespace troupe {

namespace {

namespace fs = std::filesystem;

struct move {
  fs::path made;   ///< where the command left it
  fs::path staged; ///< next to its destination
  fs::path final;
};

error cannot(const std::string& name, const fs::path& to, const std::string& why) {
  return make_error(ec::io, "cannot publish output '" + name + "' as " + to.string() + ": " + why);
}

/// Brings the file to its destination's directory. Across filesystems that is a copy.
result<void> stage(const std::string& name, const move& m) {
  std::error_code failed;
  fs::create_directories(m.final.parent_path(), failed);
  if (failed) return cannot(name, m.final, failed.message());
  if (fs::is_directory(fs::symlink_status(m.final, failed)))
    return cannot(name, m.final, "a directory is in its place");
  if (::rename(m.made.c_str(), m.staged.c_str()) == 0) return {};
  if (errno != EXDEV) return cannot(name, m.final, std::strerror(errno));
  fs::copy_file(m.made, m.staged, fs::copy_options::overwrite_existing, failed);
  if (failed) return cannot(name, m.final, failed.message());
  ::unlink(m.made.c_str()); // it may be large, and the run directory's filesystem small
  return {};
}

void discard(const std::vector<move>& moves, fs::path move::*which) {
  for (const auto& m : moves) ::unlink((m.*which).c_str());
}

} // namespace

result<std::uint64_t> publish_outputs(const std::string& from, const std::string& to,
                                      const std::vector<std::string>& names, const std::string& unique) {
  std::uint64_t bytes = 0;
  std::vector<move> moves;
  for (const auto& name : names) {
    if (!is_output_name(name))
      return make_error(ec::invalid_argument, "output '" + name + "' does not stay below the output directory");
    move m{fs::path{from} / name, {}, fs::path{to} / name};
    m.staged = m.final.parent_path() / (".troupe-" + unique + "-" + std::to_string(moves.size()));
    struct stat status {};
    // Not followed: a link could lead anywhere, and its target may go with the attempt.
    if (::lstat(m.made.c_str(), &status) != 0)
      return make_error(ec::not_found, "the command ended well, but its output '" + name +
                                           "' is missing; it is expected at {output} or under this name in the "
                                           "directory that the command starts in");
    if (!S_ISREG(status.st_mode))
      return make_error(ec::invalid_argument, "the command's output '" + name + "' is no regular file");
    bytes += static_cast<std::uint64_t>(status.st_size);
    moves.push_back(std::move(m));
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (auto staged = stage(names[i], moves[i]); !staged) {
      discard(moves, &move::staged);
      return staged.error();
    }
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (::rename(moves[i].staged.c_str(), moves[i].final.c_str()) == 0) continue;
    const auto failed = cannot(names[i], moves[i].final, std::strerror(errno));
    discard(moves, &move::staged);
    moves.resize(i);
    discard(moves, &move::final);
    return failed;
  }
  return bytes;
}

} // namespace troupe
