#include <troupe/runtime/config/path_search.hpp>

#include <cerrno>
#include <cstring>
#include <memory>

#include <dirent.h>
#include <glob.h>
#include <sys/stat.h>

namespace troupe {
namespace {

/// What a pattern could not look at: `glob` itself takes that for what is not there.
thread_local std::string out_of_reach;

int note_out_of_reach(const char* path, int why) {
  if (why != ENOENT && why != ENOTDIR && out_of_reach.empty())
    out_of_reach = std::string{"'"} + path + "': " + std::strerror(why);
  return out_of_reach.empty() ? 0 : 1;
}

template <int (*Look)(const char*, struct stat*)>
int look(const char* path, struct stat* at) {
  const int status = Look(path, at);
  if (status != 0) note_out_of_reach(path, errno);
  return status;
}

} // namespace

result<std::vector<std::string>> matching_paths(const std::string& pattern) {
  glob_t matches{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> guard{&matches, &::globfree};
  matches.gl_opendir = [](const char* path) -> void* { return ::opendir(path); };
  matches.gl_readdir = [](void* folder) { return ::readdir(static_cast<DIR*>(folder)); };
  matches.gl_closedir = [](void* folder) { ::closedir(static_cast<DIR*>(folder)); };
  matches.gl_stat = look<::stat>;
  matches.gl_lstat = look<::lstat>;
  out_of_reach.clear();
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT | GLOB_ALTDIRFUNC, note_out_of_reach, &matches);
  if (!out_of_reach.empty())
    return make_error(ec::io, "cannot read all that '" + pattern + "' may match: " + out_of_reach +
                                  "; make that readable, or give a pattern that does not lead there");
  if (status == GLOB_NOMATCH) return std::vector<std::string>{};
  if (status != 0) return make_error(ec::io, "cannot read the folders of '" + pattern + "'");
  return std::vector<std::string>{matches.gl_pathv, matches.gl_pathv + matches.gl_pathc};
}

} // namespace troupe
