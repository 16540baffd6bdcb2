#include <troupe/runtime/execution/process_tree.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <dirent.h>
#include <map>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <troupe/runtime/execution/kernel_file.hpp>
#include <troupe/runtime/execution/pidfd.hpp>

namespace troupe {

namespace {

/// A process that has been killed and does not end for so long hangs in the kernel; a machine that stands still for
/// some seconds is no reason to leave one behind.
constexpr int kill_wait_ms = 5000;
/// A command that starts processes faster than they are killed is given up after so many rounds; the keeper gets them.
constexpr int max_rounds = 1000;
/// Orphans whose environment cannot be read are looked at so often, 1 ms apart.
constexpr int max_looks = 20;

std::vector<pid_t> numbers_in(std::string_view text) {
  std::vector<pid_t> list;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    pid_t pid = 0;
    const auto [next, code] = std::from_chars(at, end, pid);
    if (code == std::errc{}) list.push_back(pid);
    at = next == at ? at + 1 : next;
  }
  return list;
}

struct process_state {
  char state = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
};

std::optional<process_state> state_of(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const auto text = read_kernel_file(path, 4096);
  // The name in parentheses may hold anything, parentheses too.
  const auto name_end = text.rfind(')');
  process_state s;
  int parent = 0, group = 0, session = 0;
  if (name_end == std::string::npos ||
      std::sscanf(text.c_str() + name_end + 1, " %c %d %d %d", &s.state, &parent, &group, &session) != 4)
    return std::nullopt;
  s.parent = parent;
  s.group = group;
  s.session = session;
  return s;
}

/// @returns nothing where the environment cannot be read, as for a moment while the process becomes another program
std::optional<bool> carries(pid_t pid, std::string_view attempt) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/environ", static_cast<int>(pid));
  const auto read = read_kernel_file(path);
  if (read.empty()) return std::nullopt;
  const auto environment = '\0' + read + '\0';
  return environment.find('\0' + std::string{attempt_variable} + '=' + std::string{attempt} + '\0') !=
         std::string::npos;
}

/// Children of the main thread: orphans that this process, a subreaper, adopts become that thread's.
std::vector<pid_t> adopted_children() {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(::getpid()));
  return numbers_in(read_kernel_file(path));
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> list;
  DIR* const directory = ::opendir("/proc");
  if (!directory) return list;
  while (const auto* const entry = ::readdir(directory)) {
    const std::string_view name{entry->d_name};
    pid_t pid = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (code == std::errc{} && end == name.data() + name.size()) list.push_back(pid);
  }
  ::closedir(directory);
  return list;
}

/// Of all its threads.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> list;
  const auto tasks = "/proc/" + std::to_string(pid) + "/task";
  DIR* const directory = ::opendir(tasks.c_str());
  if (!directory) return list;
  while (const auto* const entry = ::readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    const auto part = numbers_in(read_kernel_file(tasks + "/" + entry->d_name + "/children"));
    list.insert(list.end(), part.begin(), part.end());
  }
  ::closedir(directory);
  return list;
}

bool is_subreaper() {
  int yes = 0;
  return ::prctl(PR_GET_CHILD_SUBREAPER, &yes) == 0 && yes != 0;
}

bool lists_children() {
  static const bool supported = [] {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/children", static_cast<int>(::getpid()));
    return ::access(path, R_OK) == 0;
  }();
  return supported;
}

/// Which processes a command has left behind.
struct ownership {
  pid_t main;
  std::string_view attempt;
  bool alone;
  bool adopts = is_subreaper() && lists_children();
  pid_t self = ::getpid();
  pid_t own_session = ::getsid(0);

  /// @returns nothing where that cannot be told, see `carries`
  std::optional<bool> has(pid_t pid) const {
    const auto now = state_of(pid);
    if (!now) return false;
    if (now->session == main || now->group == main) return true;
    if (alone && adopts && now->parent == self && now->session != own_session) return true;
    return carries(pid, attempt);
  }
};

/// Kills `pid` if it still is what `belongs` says, and waits for its end. The descriptor is opened before the question,
/// so that a number that was given to another process meanwhile is never signalled. @returns true when it has ended
template <class Belongs>
bool kill_if(pid_t pid, Belongs belongs) {
  const int fd = open_pidfd(pid);
  if (fd < 0) return false;
  bool ended = false;
  if (belongs() && signal_pidfd(fd, SIGKILL)) {
    pollfd p{fd, POLLIN, 0};
    int n = 0;
    do n = ::poll(&p, 1, kill_wait_ms);
    while (n < 0 && errno == EINTR);
    ended = n > 0;
    siginfo_t info{};
    ::waitid(P_PIDFD, static_cast<id_t>(fd), &info, WEXITED | WNOHANG); // takes its end where it is our child
  }
  ::close(fd);
  return ended;
}

} // namespace

std::vector<pid_t> tree_of(pid_t main) {
  std::vector<pid_t> tree{main};
  if (lists_children()) {
    for (std::size_t i = 0; i < tree.size(); ++i) {
      const auto children = children_of(tree[i]);
      tree.insert(tree.end(), children.begin(), children.end());
    }
    return tree;
  }
  std::multimap<pid_t, pid_t> children;
  for (const auto pid : all_processes())
    if (const auto state = state_of(pid)) children.emplace(state->parent, pid);
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [first, last] = children.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

std::vector<pid_t> left_behind(pid_t main, std::string_view attempt, bool alone) {
  const ownership owner{main, attempt, alone};
  std::vector<pid_t> out;
  for (const auto pid : owner.adopts ? adopted_children() : all_processes()) {
    const auto state = state_of(pid);
    if (pid == main || pid == owner.self || !state || state->state == 'Z' || state->state == 'X') continue;
    // One whose environment cannot be read is about to become another program.
    if (!owner.has(pid).value_or(owner.adopts)) continue;
    // Where all processes are looked at its children come by themselves, else when it has ended.
    const auto found = owner.adopts ? tree_of(pid) : std::vector<pid_t>{pid};
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

std::size_t end_left_behind(pid_t main, std::string_view attempt, bool alone) {
  const ownership owner{main, attempt, alone};
  std::size_t killed = 0;
  int looks_left = max_looks;
  for (int round = 0; round < max_rounds; ++round) {
    bool found = false;
    bool undecided = false;
    for (const auto pid : owner.adopts ? adopted_children() : all_processes()) {
      if (pid == main || pid == owner.self) continue;
      const auto state = state_of(pid);
      if (!state) continue;
      if (state->state == 'Z' || state->state == 'X') {
        // An orphan of a command, this one or another: nobody else waits for it. What the process itself has started
        // without a session of its own is somebody's to wait for.
        if (owner.adopts && state->parent == owner.self && state->session != owner.own_session)
          ::waitpid(pid, nullptr, WNOHANG);
        continue;
      }
      const bool ended = kill_if(pid, [&] {
        const auto belongs = owner.has(pid);
        undecided = undecided || (!belongs && owner.adopts);
        return belongs.value_or(false);
      });
      found = found || ended;
      killed += ended ? 1 : 0;
    }
    if (found) continue;
    if (!undecided || --looks_left == 0) break;
    ::poll(nullptr, 0, 1);
  }
  return killed;
}

void end_all_descendants() {
  for (int rounds_without_end = 0; rounds_without_end < max_rounds; ++rounds_without_end) {
    bool may_kill = false;
    bool may_not = false;
    // Killing the children makes their children ours, and so on down to the last.
    for (const auto pid : lists_children() ? adopted_children() : all_processes()) {
      const auto state = state_of(pid);
      if (!state || state->parent != ::getpid()) continue;
      const bool killed = ::kill(pid, SIGKILL) == 0;
      may_kill = may_kill || killed;
      may_not = may_not || (!killed && errno == EPERM);
    }
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) rounds_without_end = 0;
    if (ended < 0 && errno == ECHILD) return;
    if (may_not && !may_kill) return;
    // The list may miss a child that came while it was read; so it is read again instead of waited for.
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

} // namespace troupe
