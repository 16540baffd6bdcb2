#pragma once

/// Scripts to run and processes to look for.

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <thread>
#include <unistd.h>

#include "runner_fixture.hpp"

namespace troupe::testing_execution {

/// Waits until `condition` holds. False at the deadline.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Empty where it cannot be read: a process of /proc may end meanwhile.
inline std::string content_of(const std::string& path) {
  std::ifstream in{path, std::ios::binary};
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// A number that a script has written, followed by a newline; 0 while it is not complete.
inline pid_t pid_in(const std::string& path) {
  const auto text = content_of(path);
  return text.ends_with('\n') ? static_cast<pid_t>(std::stol(text)) : 0;
}
inline pid_t wait_for_pid(const std::string& path) {
  if (!eventually([&] { return pid_in(path) != 0; })) throw std::runtime_error("no process id came in " + path);
  return pid_in(path);
}

/// The state letter of /proc: R, S, T (stopped), Z (ended, not waited for) …; X where there is no such process.
inline char state_of(pid_t pid) {
  const auto stat = content_of("/proc/" + std::to_string(pid) + "/stat");
  const auto name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.size() > name_end + 2 ? stat[name_end + 2] : 'X';
}
/// True while there is such a process and it has not ended.
inline bool alive(pid_t pid) { return state_of(pid) != 'Z' && state_of(pid) != 'X'; }

inline std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{}));
}
/// Children of all threads, ended or not.
inline std::string children() {
  std::string all;
  for (const auto& thread : std::filesystem::directory_iterator{"/proc/self/task"})
    all += content_of(thread.path() / "children");
  return all;
}

/// Makes this process what an executor process is while it lives.
class as_subreaper {
public:
  as_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~as_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

} // namespace troupe::testing_execution
