#include <troupe/runtime/execution/output_writers.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <troupe/runtime/execution/handed_files.hpp>
#include <troupe/runtime/execution/kernel_file.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr duration shortest_pause = 1ms;
constexpr duration longest_pause = 50ms;
/// For processes that have no output open and may yet: most of those that a command leaves never will.
constexpr duration grace_before_opening = 5s;

std::string signature_of(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return "";
  return std::to_string(found.st_ino) + " " + std::to_string(found.st_size) + " " +
         std::to_string(found.st_mtim.tv_sec) + "." + std::to_string(found.st_mtim.tv_nsec);
}

enum class answer { no, yes, unknown };

/// Whether anybody has the file open for writing, or mapped so: the kernel gives no read lease then.
answer is_open_for_writing(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return answer::unknown;
  // Who opens the file while it is leased has a signal sent to this process: one that is ignored, and to nobody.
  ::fcntl(fd, F_SETSIG, SIGURG);
  const bool leased = ::fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
  const bool refused = !leased && errno == EAGAIN;
  if (leased) {
    ::fcntl(fd, F_SETOWN, 0);
    ::fcntl(fd, F_SETLEASE, F_UNLCK); // a command that is started at this moment may hold the file as well
  }
  ::close(fd);
  if (leased) return answer::no;
  // A file server refuses for reasons of its own.
  const auto folder = path.substr(0, path.rfind('/'));
  return refused && may_differ_between_hosts(folder) ? answer::yes : answer::unknown;
}

std::vector<std::string> entries_of(const std::string& directory) {
  std::vector<std::string> out;
  DIR* const open = ::opendir(directory.c_str());
  if (open == nullptr) return out;
  while (const auto* entry = ::readdir(open))
    if (entry->d_name[0] != '.') out.emplace_back(entry->d_name);
  ::closedir(open);
  return out;
}

bool holds_for_writing(pid_t pid, const struct stat& file) {
  const auto process = "/proc/" + std::to_string(pid);
  for (const auto& fd : entries_of(process + "/fd")) {
    struct stat open {};
    if (::stat((process + "/fd/" + fd).c_str(), &open) != 0 || open.st_ino != file.st_ino || open.st_dev != file.st_dev)
      continue;
    std::istringstream info{read_kernel_file(process + "/fdinfo/" + fd, 4096)};
    for (std::string label, value; info >> label >> value;) {
      if (label != "flags:") continue;
      if ((std::strtoul(value.c_str(), nullptr, 8) & O_ACCMODE) != O_RDONLY) return true;
      break;
    }
  }
  // What is mapped stays written to after its descriptor was closed.
  std::istringstream maps{read_kernel_file(process + "/maps")};
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields{line};
    std::string range, access, offset, device;
    ino_t inode = 0;
    if (!(fields >> range >> access >> offset >> device >> inode) || inode != file.st_ino) continue;
    unsigned major = 0;
    unsigned minor = 0;
    if (std::sscanf(device.c_str(), "%x:%x", &major, &minor) != 2 || makedev(major, minor) != file.st_dev) continue;
    if (access.size() == 4 && access[1] == 'w' && access[3] == 's') return true;
  }
  return false;
}

std::string name_of(pid_t pid) {
  auto name = read_kernel_file("/proc/" + std::to_string(pid) + "/comm", 64);
  while (name.ends_with('\n')) name.pop_back();
  return (name.empty() ? "a process" : name) + " (pid " + std::to_string(pid) + ")";
}

/// One of `first` that writes the file, else any process that does, as far as they may be looked at. 0: none is seen.
pid_t writer_of(const std::string& path, const std::vector<pid_t>& first, bool look_at_all) {
  struct stat file {};
  if (::lstat(path.c_str(), &file) != 0) return 0;
  for (const auto pid : first)
    if (holds_for_writing(pid, file)) return pid;
  if (!look_at_all) return 0;
  for (const auto& name : entries_of("/proc")) {
    pid_t pid = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (code == std::errc{} && end == name.data() + name.size() && pid != ::getpid() && holds_for_writing(pid, file))
      return pid;
  }
  return 0;
}

/// As the kernel shows where a process is.
std::string real_path(const std::string& path) {
  char* const real = ::realpath(path.c_str(), nullptr);
  const std::string out = real == nullptr ? path : real;
  ::free(real);
  return out;
}

/// Whether the process still runs the program that it was forked from, as a part of a script in the background does.
bool is_fork(pid_t pid) {
  constexpr unsigned long forked_and_not_executed = 0x40; // PF_FORKNOEXEC of the kernel, which it shows
  const auto stat = read_kernel_file("/proc/" + std::to_string(pid) + "/stat", 4096);
  const auto name_end = stat.rfind(')');
  if (name_end == stat.npos) return false;
  std::istringstream fields{stat.substr(name_end + 1)};
  std::string skipped;
  for (int i = 0; i < 6; ++i) fields >> skipped; // state, parent, group, session, terminal, its group
  unsigned long flags = 0;
  return fields >> flags && (flags & forked_and_not_executed) != 0;
}

/// Whether the path stands in the word, and no longer one.
bool names_path(std::string_view word, const std::string& path) {
  constexpr std::string_view ends = " \t\n;|&<>()'\"`=,:";
  for (auto at = word.find(path); at != word.npos; at = word.find(path, at + 1)) {
    const auto end = at + path.size();
    if (end == word.size() || ends.find(word[end]) != ends.npos) return true;
  }
  return false;
}

/// Whether a word of a command line is this file, or says `of=` it.
bool names_file(std::string_view word, const std::string& path, const std::string& name) {
  // A bare name may be a number or a word of its own, so only one with a dot in it counts.
  const bool is_plain = name.find('.') == name.npos;
  return names_path(word, path) || word == "./" + name || (!is_plain && (word == name || word.ends_with("=" + name)));
}

} // namespace

output_watch::output_watch(const std::string& directory, const std::vector<std::string>& names)
  : directory_(real_path(directory)) {
  outputs_.reserve(names.size());
  for (const auto& name : names) outputs_.push_back({name, directory + "/" + name, ""});
}

output_rest output_watch::wait(const remaining& left, const rest_limits& limits, const stop_event& stop) {
  output_rest rest;
  auto pause = shortest_pause;
  auto last_change = std::chrono::steady_clock::now();
  for (;;) {
    const auto now = std::chrono::steady_clock::now();
    const output* written = nullptr;
    const output* missing = nullptr;
    std::vector<pid_t> processes;
    bool looked = false;
    // What was written between the look at a file's state and that at its writers shows in a third one.
    const auto is_as_seen = [&] { return changed().empty(); };
    const auto remaining_now = [&]() -> const std::vector<pid_t>& {
      if (!looked) processes = left();
      looked = true;
      return processes;
    };
    for (auto& each : outputs_) {
      auto state = signature_of(each.path);
      if (state != each.state) {
        each.state = std::move(state);
        last_change = now;
      }
      if (each.state.empty()) {
        missing = &each;
        continue;
      }
      auto open = is_open_for_writing(each.path);
      if (open == answer::unknown) open = writer_of(each.path, remaining_now(), false) != 0 ? answer::yes : answer::no;
      if (open == answer::yes) written = &each;
    }
    const auto somebody_may_write = [&] {
      const auto& all = remaining_now();
      return missing != nullptr ? !all.empty()
                                : std::any_of(all.begin(), all.end(), [&](pid_t pid) { return may_write(pid); });
    };
    if (written == nullptr && !somebody_may_write() && is_as_seen()) {
      rest.seen = true;
      return rest;
    }
    if (stop.requested()) {
      rest.stopped = true;
      return rest;
    }
    // All outputs are there and nobody has one open: what remains is a helper that was forgotten.
    const bool at_rest = written == nullptr && missing == nullptr;
    const auto grace = at_rest ? std::min(limits.grace, grace_before_opening) : limits.grace;
    if (now >= limits.deadline) {
      rest.overdue = !at_rest;
      rest.seen = at_rest;
      return rest;
    }
    if (now - last_change >= grace) {
      if (written == nullptr) { // a missing output is told elsewhere
        rest.seen = true;
        return rest;
      }
      const auto writer = writer_of(written->path, remaining_now(), true);
      rest.writers = (writer == 0 ? "a process that cannot be seen from here" : name_of(writer)) + " still writes '" +
                     written->name + "'";
      return rest;
    }
    const auto until = std::min(limits.deadline, last_change + grace) - now;
    const auto time = std::chrono::ceil<std::chrono::milliseconds>(std::min<duration>(pause, until));
    pollfd requested{stop.fd(), POLLIN, 0};
    ::poll(&requested, 1, static_cast<int>(time.count()));
    pause = std::min<duration>(2 * pause, longest_pause);
  }
}

/// A process of the command that has no output open and yet may go on with one: a part of its script, in its folder, or
/// a program that was told an output's name.
bool output_watch::may_write(pid_t pid) const {
  char here[4096];
  const auto size = ::readlink(("/proc/" + std::to_string(pid) + "/cwd").c_str(), here, sizeof here);
  const std::string_view folder{here, size > 0 ? static_cast<std::size_t>(size) : 0};
  const bool in_its_folder =
      folder.starts_with(directory_) && (folder.size() == directory_.size() || folder[directory_.size()] == '/');
  if (in_its_folder && is_fork(pid)) return true;
  const auto words = read_kernel_file("/proc/" + std::to_string(pid) + "/cmdline", 1 << 20);
  for (std::size_t begin = 0; begin < words.size();) {
    const auto end = std::min(words.find('\0', begin), words.size());
    const std::string_view word{words.data() + begin, end - begin};
    if (std::any_of(outputs_.begin(), outputs_.end(),
                    [&](const output& each) { return names_file(word, each.path, each.name); }))
      return true;
    begin = end + 1;
  }
  return false;
}

std::string output_watch::changed() const {
  for (const auto& each : outputs_)
    if (signature_of(each.path) != each.state) return each.name;
  return "";
}

} // namespace troupe
