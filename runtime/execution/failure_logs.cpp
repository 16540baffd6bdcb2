#include <troupe/runtime/execution/failure_logs.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <troupe/runtime/execution/file_move.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/storage/file_io.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Files after which a folder is looked through again, and the part of the most bytes after which it is.
constexpr std::size_t files_between = 256;
constexpr std::uint64_t part_between = 16;

/// Seconds for which an empty folder may be one that somebody has just made to put something in.
constexpr std::int64_t youngest = 60;

/// Folders in which logs may be kept, the best first: several users may have jobs with one folder of outputs, and who
/// has made its folder of logs keeps the others out; and only the stage's own folder may be writable.
std::array<fs::path, 3> places_for(const std::string& output_directory) {
  const auto own = fs::path{output_directory}.parent_path() / own_folder;
  return {own / "logs", own / ("logs-" + std::to_string(::geteuid())),
          fs::path{output_directory} / own_folder / "logs"};
}

bool is_folder(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// Whether a place is of no use to this user, so that another one is no surprise: what failed there is no news.
bool is_of_others(int fault) { return fault == EACCES || fault == EPERM || fault == ENOTDIR; }

/// A folder with those above it. @returns 0, or an errno
int make_folder_of_all(const fs::path& path) {
  std::error_code failed;
  fs::create_directories(path.parent_path(), failed);
  if (failed) return failed.value();
  const int made = ::mkdir(path.c_str(), 0777) == 0 ? 0 : errno;
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return made == 0 || made == EEXIST ? errno : made;
  return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}

/// A folder that only this user can look into. @returns 0, or an errno
int make_private(const fs::path& path) {
  struct stat status {};
  if ((::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) || ::lstat(path.c_str(), &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  return status.st_uid == ::geteuid() ? 0 : EACCES;
}

/// As where an executor has kept a file and was killed before it could keep the other one.
bool are_one_file(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  return ::lstat(a.c_str(), &one) == 0 && ::lstat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

struct log_file {
  std::int64_t printed = 0; ///< seconds since 1970
  std::uint64_t bytes = 0;
  fs::path path;
};

/// Those of all jobs, the oldest first.
std::vector<log_file> all_in(const fs::path& logs, std::int64_t now) {
  std::vector<log_file> all;
  std::error_code ignored;
  for (fs::directory_iterator job{logs, ignored}, end; !ignored && job != end; job.increment(ignored)) {
    struct stat folder {};
    if (::lstat(job->path().c_str(), &folder) != 0 || !S_ISDIR(folder.st_mode) || folder.st_uid != ::geteuid())
      continue;
    if (now - folder.st_mtim.tv_sec > youngest) ::rmdir(job->path().c_str()); // where it is empty
    std::error_code gone;
    for (fs::directory_iterator file{job->path(), gone}; !gone && file != end; file.increment(gone)) {
      struct stat status {};
      if (::lstat(file->path().c_str(), &status) == 0 && S_ISREG(status.st_mode))
        all.push_back({status.st_mtim.tv_sec, static_cast<std::uint64_t>(status.st_size), file->path()});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return std::tie(a.printed, a.path) < std::tie(b.printed, b.path); });
  return all;
}

} // namespace

std::int64_t failure_logs::system_seconds() { return std::time(nullptr); }

failure_logs::failure_logs(std::string session, log_limits limits, clock now)
  : session_(std::move(session)), limits_(limits), now_(std::move(now)) {}

/// Calls `keep`, which returns 0 or an errno, when the folder is there, and again while it keeps nothing. @returns the
/// same, or why there is no folder
template <class Keep>
int failure_logs::keep_in(const fs::path& logs, const fs::path& folder, Keep keep) {
  constexpr int most_rounds = 5;
  constexpr int most_of_races = 100; // others may be removing what was empty
  int fault = 0;
  for (int round = 0; round < (fault == ENOENT ? most_of_races : most_rounds); ++round) {
    fault = make_folder_of_all(logs.parent_path());
    if (fault == 0) fault = make_private(logs);
    if (fault == 0) fault = make_private(folder);
    if (fault == 0) fault = keep();
    if (fault == 0) break;
  }
  return fault;
}

kept_logs failure_logs::keep(const std::string& output_directory, job_id job, const std::string& attempt,
                             const std::string& attempt_directory) {
  if (limits_.age <= duration::zero()) return {};
  struct stat status {};
  bool any = false;
  for (const auto* name : {"/stdout", "/stderr"})
    any = any || (::lstat((attempt_directory + name).c_str(), &status) == 0 && status.st_size > 0 &&
                  static_cast<std::uint64_t>(status.st_size) <= limits_.bytes);
  if (!any) return {};
  fs::path logs;
  kept_logs kept;
  bool is_news = false; // the fault that is told
  for (const auto& place : places_for(output_directory)) {
    logs = place;
    const auto folder = logs / folder_of(job);
    const auto file = (folder / attempt).string();
    int of_one = 0;
    const int of_both = keep_in(logs, folder, [&] {
      const int out = keep_one(attempt_directory + "/stdout", file + ".out", kept.out);
      const int err = keep_one(attempt_directory + "/stderr", file + ".err", kept.err);
      of_one = std::max(out, err);
      return !kept.out.empty() || !kept.err.empty() ? 0 : of_one;
    });
    const int failed = of_both != 0 ? of_both : of_one;
    if (failed == 0)
      kept.fault.clear();
    else if (kept.fault.empty() || (!is_news && !is_of_others(failed)))
      kept.fault = logs.string() + ": " + std::generic_category().message(failed);
    is_news = !is_of_others(failed) || is_news;
    if (of_both == 0) break;
  }
  if (kept.out.empty() && kept.err.empty()) return kept;
  tally since;
  for (const auto& path : {kept.out, kept.err})
    if (!path.empty() && ::lstat(path.c_str(), &status) == 0) {
      since.bytes += static_cast<std::uint64_t>(status.st_size);
      ++since.files;
    }
  {
    const std::lock_guard lock{mutex_};
    const auto [entry, is_new] = kept_.try_emplace(logs.string());
    entry->second.bytes += since.bytes;
    entry->second.files += since.files;
    if (!is_new && entry->second.files < files_between && entry->second.bytes < limits_.bytes / part_between)
      return kept;
    entry->second = {};
  }
  tidy(logs.string());
  return kept;
}

std::string failure_logs::folder_of(job_id job) const { return session_ + "-" + std::to_string(job.value); }

std::string failure_logs::keep_report(const std::string& output_directory, job_id job, std::string_view text) {
  if (limits_.age <= duration::zero() || text.size() > limits_.bytes) return "";
  const auto places = places_for(output_directory);
  for (const auto& logs : places) {
    const auto folder = logs / folder_of(job);
    // Among the outputs themselves nothing is put that is not there already.
    if (logs == places.back() && !is_folder(folder)) break;
    const auto path = (folder / "why.txt").string();
    bool kept = false;
    keep_in(logs, folder, [&] {
      const descriptor file{
          ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)};
      const int failed = file ? write_all(file.get(), text) : errno;
      kept = failed == 0;
      if (file && !kept) ::unlink(path.c_str()); // a part of it would mislead
      return failed;
    });
    if (kept) return path;
    ::rmdir(folder.c_str()); // where nothing else was kept
    ::rmdir(logs.c_str());
  }
  return "";
}

/// @param kept the new path; "" where there is nothing, or more than may be kept, or where that has failed
/// @returns 0, or an errno where it has failed
int failure_logs::keep_one(const std::string& from, const std::string& to, std::string& kept) {
  kept.clear();
  struct stat status {};
  if (::lstat(from.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0 ||
      static_cast<std::uint64_t>(status.st_size) > limits_.bytes)
    return 0;
  // The same file under another name where it can be: its attempt's directory goes with the session.
  if (::link(from.c_str(), to.c_str()) != 0 && !are_one_file(from, to))
    if (const int failed = copy_file_as_it_is(from, to)) return failed;
  kept = to;
  return 0;
}

void failure_logs::tidy_once(const std::string& output_directory) {
  for (const auto& logs : places_for(output_directory)) {
    {
      const std::lock_guard lock{mutex_};
      if (!kept_.try_emplace(logs.string()).second) continue;
    }
    tidy(logs.string());
  }
}

void failure_logs::tidy(const std::string& logs) {
  if (!is_folder(fs::path{logs}.parent_path()) || !is_folder(logs)) return;
  const auto all = all_in(logs, now_());
  std::uint64_t bytes = 0;
  for (const auto& file : all) bytes += file.bytes;
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(limits_.age).count();
  for (const auto& file : all) {
    if (bytes <= limits_.bytes && now_() - file.printed <= age) continue;
    ::unlink(file.path.c_str());
    ::rmdir(file.path.parent_path().c_str()); // when it was the last
    bytes -= file.bytes;
  }
  ::rmdir(logs.c_str()); // where none is left
}

} // namespace troupe
