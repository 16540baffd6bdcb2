#include <troupe/launcher/run_directory.hpp>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/cgroup.hpp>
#include <troupe/runtime/execution/remove_tree.hpp>
#include <troupe/runtime/execution/staging_journal.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;
constexpr const char* lock_name = "lock";
constexpr const char* unfinished_prefix = ".new-";
constexpr time_t unfinished_age = 60; ///< seconds after which nobody is still making it
constexpr time_t orphan_age = 2;      ///< where its maker is not seen: one in another container is as quick

error failed(const std::string& what, const std::string& path, std::string_view setting) {
  return make_error(ec::io,
                    "cannot " + what + " " + path + ": " + std::strerror(errno) + " (" + std::string{setting} + ")");
}

result<void> make_private(const std::string& path, std::string_view setting) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return failed("make directory", path, setting);
  struct stat s {};
  if (lstat(path.c_str(), &s) != 0) return failed("look at", path, setting);
  if (!S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
    return make_error(ec::io, path + " must be a directory of this user that nobody else may enter (mode 0700): set " +
                                  std::string{setting} + " to another place");
  return {};
}

int open_lock(const std::string& directory, int flags) {
  return open((directory + "/" + lock_name).c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/// Whether nobody else can have put anything there, who could make us kill and remove what he likes.
bool is_own_directory(const std::string& directory) {
  struct stat s {};
  return lstat(directory.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 077) == 0;
}

/// Whether nobody else can have written the file of the directory.
bool is_own_file(const std::string& directory, const std::string& file) {
  struct stat s {};
  return lstat(file.c_str(), &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1 &&
         is_own_directory(directory);
}

/// Whether the lock that is held is the directory's own: whoever was its last holder may have removed it before the
/// lock was got, and somebody else may have made another one of this name.
bool is_lock_of(int lock, const std::string& directory) {
  struct stat held {};
  struct stat there {};
  return fstat(lock, &held) == 0 && stat((directory + "/" + lock_name).c_str(), &there) == 0 &&
         held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

/// Removes the control groups that the directory lists. `kill`: and what runs in them. @returns false where one is left
/// that could be removed later
bool remove_groups_of(const std::string& directory, bool kill) {
  constexpr duration patience = std::chrono::milliseconds{500};
  const auto file = directory + "/" + group_list_name;
  if (!is_own_file(directory, file)) return true;
  std::ifstream list{file};
  bool gone = true;
  for (std::string group; std::getline(list, group);) {
    if (!group.starts_with('/') || !fs::path{group}.filename().string().starts_with("troupe-")) continue;
    const bool removed = remove_cgroup_directory(group, kill, kill ? patience : duration::zero());
    gone = gone && (removed || access(group.c_str(), W_OK) != 0);
  }
  return gone;
}

/// Removes what executors of the directory have left where outputs wait.
void remove_staging_of(const std::string& directory, const char* journal, noted what) {
  std::vector<std::string> files;
  std::error_code ec;
  for (fs::directory_iterator entry{directory, ec}, end; !ec && entry != end; entry.increment(ec)) {
    const auto file = entry->path().string();
    if (entry->path().filename().string().starts_with(journal) && is_own_file(directory, file)) files.push_back(file);
  }
  remove_noted(files, what);
}

/// Removes a directory that nobody holds. First it goes out of the way, at once: another process may make one of this
/// name at any moment.
void remove_directory(const std::string& path) {
  static std::atomic<unsigned> number = 0;
  const fs::path place{path};
  const auto over = place.parent_path() / (unfinished_prefix + place.filename().string() + "." +
                                           std::to_string(getpid()) + "." + std::to_string(++number));
  if (rename(path.c_str(), over.c_str()) == 0)
    remove_tree(over.string());
  else if (errno != ENOENT) // as on a disk without room for another name
    remove_tree(path);
}

/// Of `.new-NAME.PID`, or of `.new-NAME.PID.NUMBER`, which is being removed.
bool maker_lives(const std::string& unfinished) {
  const auto begin = unfinished.find('.', std::strlen(unfinished_prefix));
  pid_t pid = 0;
  if (begin == unfinished.npos) return true; // nobody knows
  std::from_chars(unfinished.data() + begin + 1, unfinished.data() + unfinished.size(), pid);
  return pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH;
}

/// Bases of the local directories of a session, as far as the links to its attempts tell: whoever removes the session's
/// own directory is the last one who can know them.
std::set<std::string> local_bases_of(const std::string& directory) {
  std::set<std::string> bases;
  if (!is_own_directory(directory)) return bases;
  for (const auto& attempts : all_attempts_directories(directory)) {
    const auto local = fs::path{attempts}.parent_path();
    const auto base = local.parent_path();
    if (local != directory && local.filename() == fs::path{directory}.filename() &&
        base.filename() == run_directory::private_name())
      bases.insert(base.string());
  }
  return bases;
}

} // namespace

std::string run_directory::base_of(const std::string& configured) {
  struct stat s {};
  const auto is_directory = [&](const std::string& path) {
    return path.starts_with('/') && stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode);
  };
  if (!configured.empty()) {
    // As scratch disks are: everybody has a directory of his own in it.
    const bool is_of_all = is_directory(configured) && (s.st_mode & S_ISVTX) != 0 && (s.st_mode & 022) != 0;
    return is_of_all ? configured + "/" + private_name() : configured;
  }
  // It is somebody else's after `su` and `sudo -E`, and not there where no session of the system has made it.
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && is_directory(runtime) && s.st_uid == geteuid())
    return std::string{runtime} + "/troupe";
  return temporary_base();
}

/// The same for all shells of a user, whatever TMPDIR each has: they are to see each other's sessions.
std::string run_directory::temporary_base() {
  const std::string usual = "/tmp/" + private_name();
  const char* const other = std::getenv("TMPDIR");
  const bool is_good = access(usual.c_str(), W_OK | X_OK) == 0 || access("/tmp", W_OK | X_OK) == 0;
  return is_good || !other || *other != '/' ? usual : std::string{other} + "/" + private_name();
}

std::string run_directory::private_name() { return "troupe-" + std::to_string(geteuid()); }

result<run_directory> run_directory::create(const std::string& base, const std::string& name,
                                            std::string_view setting) {
  std::error_code ignored;
  if (const auto parent = fs::path{base}.parent_path(); !parent.empty()) fs::create_directories(parent, ignored);
  if (auto made = make_private(base, setting); !made) return made.error();
  // Under its own name only once it is held: a sweep in between would take it for an abandoned one.
  const auto unfinished = base + "/" + unfinished_prefix + name + "." + std::to_string(getpid());
  const auto path = base + "/" + name;
  if (mkdir(unfinished.c_str(), 0700) != 0) return failed("make directory", unfinished, setting);
  const int lock = open_lock(unfinished, O_RDWR | O_CREAT | O_EXCL);
  if (lock < 0 || flock(lock, LOCK_SH) != 0 || rename(unfinished.c_str(), path.c_str()) != 0) {
    const auto why = failed("set up", path, setting);
    if (lock >= 0) close(lock);
    remove_tree(unfinished);
    return why;
  }
  return run_directory{path, lock, setting};
}

result<run_directory> run_directory::join(const std::string& path, std::string_view setting) {
  const int lock = open_lock(path, O_RDWR);
  if (lock < 0) return failed("open the lock of", path, setting);
  if (flock(lock, LOCK_SH | LOCK_NB) != 0) {
    const auto why = failed("hold", path, setting);
    close(lock);
    return why;
  }
  if (!is_lock_of(lock, path)) {
    close(lock);
    errno = ENOENT;
    return failed("hold", path, setting);
  }
  return run_directory{path, lock, setting};
}

result<run_directory> run_directory::share(const std::string& base, const std::string& name, std::string_view setting) {
  constexpr int rounds = 100; // each but the last is lost to somebody who has just made it or left it
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds{5}; // who is at it may stand still
  for (int round = 1;; ++round) {
    auto joined = join(base + "/" + name, setting);
    if (joined) return joined;
    auto made = create(base, name, setting);
    if (made) return made;
    const bool in_the_way =
        access((base + "/" + name).c_str(), F_OK) == 0 ||
        access((base + "/" + unfinished_prefix + name + "." + std::to_string(getpid())).c_str(), F_OK) == 0;
    if (round >= rounds && (!in_the_way || std::chrono::steady_clock::now() > end)) return made;
    poll(nullptr, 0, 1);
  }
}

void run_directory::sweep(const std::string& base, std::time_t now) {
  if (!is_own_directory(base)) return; // what lies there may be anybody's
  std::error_code ec;
  std::set<std::string> later;
  for (const auto& entry : fs::directory_iterator{base, ec}) {
    if (!entry.is_directory(ec)) continue;
    if (entry.path().filename().string().starts_with(unfinished_prefix)) {
      // Being made, which takes no time, or left by somebody who was killed meanwhile.
      struct stat s {};
      if (lstat(entry.path().c_str(), &s) != 0 || s.st_uid != geteuid()) continue;
      const auto age = now - s.st_ctime;
      if (age > unfinished_age || (age > orphan_age && !maker_lives(entry.path().filename().string())))
        remove_tree(entry.path().string());
      continue;
    }
    const int lock = open_lock(entry.path().string(), O_RDWR);
    if (lock < 0) continue;
    if (flock(lock, LOCK_EX | LOCK_NB) == 0 && is_lock_of(lock, entry.path().string()) &&
        remove_groups_of(entry.path().string(), true)) {
      remove_staging_of(entry.path().string(), staging_journal_name, noted::all);
      remove_staging_of(entry.path().string(), own_staging_journal_name, noted::own_outputs);
      for (const auto& other : local_bases_of(entry.path().string())) later.insert(other);
      remove_directory(entry.path().string());
    }
    close(lock);
  }
  for (const auto& other : later) sweep(other, now);
}

run_directory::run_directory(run_directory&& other) noexcept
  : path_(std::move(other.path_)), setting_(other.setting_), lock_(std::exchange(other.lock_, -1)) {}

run_directory& run_directory::operator=(run_directory&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    setting_ = other.setting_;
    lock_ = std::exchange(other.lock_, -1);
  }
  return *this;
}

run_directory::~run_directory() { release(); }

void run_directory::release() noexcept {
  if (lock_ < 0) return;
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0 && remove_groups_of(path_, false)) {
    remove_staging_of(path_, staging_journal_name, noted::all);
    remove_staging_of(path_, own_staging_journal_name, noted::empty_folders);
    remove_directory(path_);
  }
  close(lock_);
  lock_ = -1;
}

result<std::string> run_directory::subdirectory(const std::string& name) const {
  const auto path = path_ + "/" + name;
  if (auto made = make_private(path, setting_); !made) return made.error();
  return path;
}

} // namespace troupe
