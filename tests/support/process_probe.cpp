#include <troupe/tests/support/process_probe.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <poll.h>
#include <unistd.h>

namespace troupe::testing {
namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> all_pids() {
  std::vector<pid_t> pids;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator{"/proc", ec}) {
    const auto name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure == std::errc{} && end == name.data() + name.size()) pids.push_back(pid);
  }
  return pids;
}

std::string root_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::string link_target(const std::string& path) {
  std::error_code ec;
  return fs::read_symlink(path, ec).string();
}

} // namespace

std::string seen_process::text() const {
  return "pid " + std::to_string(pid) + " (state " + state + "): " + command_line;
}

seen_process look_at(pid_t pid) {
  seen_process out;
  const auto stat = content_of(root_of(pid) + "/stat");
  // pid (name) state parent …: the name may hold anything, so the last parenthesis counts.
  const auto close = stat.rfind(')');
  if (close == std::string::npos) return out;
  std::istringstream rest{stat.substr(close + 1)};
  if (!(rest >> out.state >> out.parent)) return {};
  out.pid = pid;
  out.command_line = content_of(root_of(pid) + "/cmdline");
  std::replace(out.command_line.begin(), out.command_line.end(), '\0', ' ');
  return out;
}

bool is_alive(pid_t pid) {
  const auto seen = look_at(pid);
  return seen.pid != 0 && seen.state != 'Z' && seen.state != 'X';
}

bool is_executor(pid_t pid) {
  return content_of(root_of(pid) + "/environ").find("TROUPE_EXECUTOR=") != std::string::npos;
}

std::vector<seen_process> processes_of(const std::string& path) {
  std::vector<seen_process> out;
  for (const auto pid : all_pids()) {
    if (pid == getpid()) continue;
    const auto root = root_of(pid);
    const bool named = content_of(root + "/cmdline").find(path) != std::string::npos ||
                       content_of(root + "/environ").find(path) != std::string::npos ||
                       link_target(root + "/cwd").starts_with(path);
    if (named && is_alive(pid)) out.push_back(look_at(pid));
  }
  return out;
}

std::vector<seen_process> children_of(pid_t pid) {
  std::vector<seen_process> out;
  for (const auto candidate : all_pids())
    if (const auto seen = look_at(candidate); seen.pid != 0 && seen.parent == pid) out.push_back(seen);
  return out;
}

std::map<int, std::string> open_descriptors() {
  std::map<int, std::string> out;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator{"/proc/self/fd", ec}) {
    const auto target = link_target(entry.path().string());
    if (target.find("/proc/" + std::to_string(getpid()) + "/fd") == 0) continue; // the directory being read
    out.emplace(std::stoi(entry.path().filename().string()), target);
  }
  return out;
}

std::map<std::uint64_t, std::uint16_t> listening_ports() {
  std::set<std::uint64_t> mine;
  for (const auto& [fd, target] : open_descriptors())
    if (target.starts_with("socket:[")) mine.insert(std::stoull(target.substr(8)));
  std::map<std::uint64_t, std::uint16_t> out;
  for (const auto* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::istringstream lines{content_of(table)};
    std::string line;
    std::getline(lines, line); // the heading
    while (std::getline(lines, line)) {
      std::istringstream words{line};
      std::string number, local, remote, state, queues, timer, retransmits, uid, timeout;
      std::uint64_t inode = 0;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >> inode;
      constexpr const char* listening = "0A";
      if (state != listening || !mine.contains(inode)) continue;
      const auto port = std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16);
      out.emplace(inode, static_cast<std::uint16_t>(port));
    }
  }
  return out;
}

std::uint64_t resident_memory(pid_t pid) {
  std::istringstream lines{content_of(root_of(pid) + "/status")};
  std::string line;
  while (std::getline(lines, line))
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

void detail::pause_before_look(unsigned look) {
  poll(nullptr, 0, static_cast<int>(std::min(50u, 1u << std::min(look / 4, 6u))));
}

} // namespace troupe::testing
