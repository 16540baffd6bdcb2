#include <troupe/launcher/session_guard.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/execution/kernel_file.hpp>
#include <troupe/runtime/execution/process_tree.hpp>

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Ends a path, which never holds it.
constexpr char end_of_path = '\0';
/// The last byte of an ordered end.
constexpr char done = '\n';
/// A process that is being started shows its environment a moment later: looked for again so often, 20 ms apart.
constexpr int looks = 10;

bool is_attempt_below(const fs::path& process, const std::vector<std::string>& directories) {
  struct stat s {};
  if (stat(process.c_str(), &s) != 0 || s.st_uid != geteuid()) return false;
  const auto all = read_kernel_file((process / "environ").string());
  return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
    const auto wanted = std::string{attempt_variable} + "=" + directory + "/";
    return std::string_view{all}.starts_with(wanted) || all.find('\0' + wanted) != all.npos;
  });
}

/// The guard's life. @returns never
[[noreturn]] void guard(int pipe) {
  // A group of its own, for who kills ours; no session: in another one it would pass for something that a command left.
  setpgid(0, 0);
  prctl(PR_SET_NAME, "troupe-guard");
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int stream = 0; stream <= 2 && null >= 0; ++stream) dup2(null, stream);
  // Lets go of everything that others might wait to see closed.
  constexpr int kept = 3;
  if (pipe != kept) dup2(pipe, kept);
  close_range(kept + 1, ~0u, 0);
  std::string directories;
  for (;;) {
    char buffer[512];
    const auto n = read(kept, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    directories.append(buffer, static_cast<std::size_t>(n));
  }
  if (directories.empty() || directories.back() == done) _exit(0);
  std::vector<std::string> guarded;
  std::istringstream paths{directories};
  for (std::string path; std::getline(paths, path, end_of_path);) guarded.push_back(path);
  kill_attempts_below(guarded);
  for (const auto& path : guarded) run_directory::sweep(fs::path{path}.parent_path().string());
  _exit(0);
}

} // namespace

std::size_t kill_attempts_below(const std::vector<std::string>& directories) {
  std::size_t killed = 0;
  for (int look = 0; look < looks; ++look) {
    bool found = false;
    std::error_code ec;
    for (const auto& entry : fs::directory_iterator{"/proc", ec}) {
      const auto name = entry.path().filename().string();
      pid_t pid = 0;
      const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (failed != std::errc{} || end != name.data() + name.size() || pid == getpid()) continue;
      if (!is_attempt_below(entry.path(), directories) || kill(pid, SIGKILL) != 0) continue;
      found = true;
      ++killed;
    }
    if (found) look = 0;
    poll(nullptr, 0, 20);
  }
  return killed;
}

session_guard::session_guard() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[1]);
    guard(ends[0]);
  }
  close(ends[0]);
  pipe_ = ends[1];
}

session_guard::~session_guard() {
  if (pipe_ < 0) return;
  static_cast<void>(!write(pipe_, &done, 1));
  close(pipe_);
  while (pid_ > 0 && waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

void session_guard::watch(const std::string& directory) {
  const auto entry = directory + end_of_path;
  if (pipe_ >= 0) static_cast<void>(!write(pipe_, entry.data(), entry.size()));
}

} // namespace troupe
