#include <troupe/runtime/execution/cgroup.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>

#include <troupe/runtime/execution/kernel_file.hpp>

namespace troupe {

namespace {

/// Of a quota, in microseconds; the kernel's own default.
constexpr std::uint64_t cpu_period = 100'000;
/// The kernel charges at most so many bytes at a time.
constexpr std::uint64_t charge_step = 64 * 4096;
/// What v1 shows where there is no limit is about 2^63.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;

std::uint64_t read_number(const std::string& path) { return number_in(read_kernel_file(path)).value_or(0); }

std::vector<std::string> groups_below(const std::string& directory) {
  std::vector<std::string> list;
  DIR* const stream = ::opendir(directory.c_str());
  if (!stream) return list;
  while (const auto* const entry = ::readdir(stream)) {
    const std::string_view name{entry->d_name};
    if (entry->d_type == DT_DIR && name != "." && name != "..") list.push_back(directory + "/" + entry->d_name);
  }
  ::closedir(stream);
  return list;
}

void kill_members(const std::string& directory) {
  const auto listed = read_kernel_file(directory + "/cgroup.procs");
  std::string_view rest = listed;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    const auto pid = number_in(rest.substr(0, end)).value_or(0);
    if (pid != 0 && pid != static_cast<std::uint64_t>(::getpid())) ::kill(static_cast<pid_t>(pid), SIGKILL);
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
}

/// The group or one below it.
bool holds_this_process(const std::string& directory) {
  const auto members = "\n" + read_kernel_file(directory + "/cgroup.procs");
  if (members.find("\n" + std::to_string(::getpid()) + "\n") != members.npos) return true;
  const auto below = groups_below(directory);
  return std::any_of(below.begin(), below.end(), holds_this_process);
}

bool remove_once(const std::string& directory, bool kill, const cgroup_files& files) {
  for (const auto& below : groups_below(directory)) static_cast<void>(remove_once(below, kill, files));
  if (files.remove(directory.c_str()) == 0 || errno == ENOENT) return true;
  if (kill) kill_members(directory);
  return false;
}

result<void> limit_memory(const cgroup_part& part, std::uint64_t bytes) {
  const auto text = std::to_string(bytes);
  if (part.version == 2) {
    // Without swap in the kernel there is no such file, and nothing to limit.
    static_cast<void>(write_cgroup_file(part.directory + "/memory.swap.max", "0"));
    return write_cgroup_file(part.directory + "/memory.max", text);
  }
  if (auto written = write_cgroup_file(part.directory + "/memory.limit_in_bytes", text); !written) return written;
  // Memory and swap together; where the kernel does not count swap, it is at least told not to use any.
  if (!write_cgroup_file(part.directory + "/memory.memsw.limit_in_bytes", text))
    static_cast<void>(write_cgroup_file(part.directory + "/memory.swappiness", "0"));
  return {};
}

result<void> limit_cpu(const cgroup_part& part, std::uint32_t thousandths) {
  const auto quota = std::to_string(cpu_period * thousandths / 1000);
  const auto period = std::to_string(cpu_period);
  if (part.version == 2) return write_cgroup_file(part.directory + "/cpu.max", quota + " " + period);
  if (auto written = write_cgroup_file(part.directory + "/cpu.cfs_period_us", period); !written) return written;
  return write_cgroup_file(part.directory + "/cpu.cfs_quota_us", quota);
}

} // namespace

result<void> write_cgroup_file(const std::string& path, std::string_view text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const auto written = fd < 0 ? -1 : ::write(fd, text.data(), text.size());
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (written == static_cast<ssize_t>(text.size())) return {};
  return make_error(ec::io, "cannot write '" + std::string{text} + "' to " + path + ": " + std::strerror(code));
}

std::string_view to_string(cgroup_controller controller) noexcept {
  switch (controller) {
  case cgroup_controller::memory: return "memory";
  case cgroup_controller::cpu: return "cpu";
  case cgroup_controller::pids: return "pids";
  }
  return "?";
}

bool cgroup::has(cgroup_controller controller) const noexcept {
  return std::any_of(parts_.begin(), parts_.end(), [&](const cgroup_part& part) {
    return std::find(part.controllers.begin(), part.controllers.end(), controller) != part.controllers.end();
  });
}

cgroup cgroup::child(std::string_view name) const {
  auto parts = parts_;
  for (auto& part : parts) part.directory += "/" + std::string{name};
  return cgroup{std::move(parts), files_};
}

result<void> cgroup::make() const {
  for (const auto& part : parts_) {
    const auto above = part.directory.substr(0, part.directory.rfind('/'));
    error failed;
    if (part.version == 2) {
      std::string wanted;
      for (const auto controller : part.controllers)
        wanted += (wanted.empty() ? "+" : " +") + std::string{to_string(controller)};
      if (auto enabled = write_cgroup_file(above + "/cgroup.subtree_control", wanted); !enabled)
        failed = enabled.error();
    }
    if (!failed && files_.make(part.directory.c_str(), 0755) != 0 && errno != EEXIST)
      failed = make_error(ec::io, "cannot make the group " + part.directory + ": " + std::strerror(errno));
    if (!failed) {
      // What groups below take counts here, too; the only way since Linux 5.11.
      if (part.version == 1) static_cast<void>(write_cgroup_file(part.directory + "/memory.use_hierarchy", "1"));
      continue;
    }
    for (const auto& made : parts_) {
      if (&made == &part) break;
      files_.remove(made.directory.c_str());
    }
    return failed;
  }
  return {};
}

result<void> cgroup::limit(const cgroup_limits& limits) const {
  for (const auto& part : parts_)
    for (const auto controller : part.controllers) {
      result<void> done;
      if (controller == cgroup_controller::memory && limits.memory > 0)
        done = limit_memory(part, limits.memory);
      else if (controller == cgroup_controller::cpu && limits.cpu_thousandths > 0)
        done = limit_cpu(part, limits.cpu_thousandths);
      else if (controller == cgroup_controller::pids && limits.processes > 0)
        done = write_cgroup_file(part.directory + "/pids.max", std::to_string(limits.processes));
      if (!done) return done;
    }
  return {};
}

std::vector<std::string> cgroup::member_files() const {
  std::vector<std::string> files;
  files.reserve(parts_.size());
  for (const auto& part : parts_) files.push_back(part.directory + "/cgroup.procs");
  return files;
}

result<void> cgroup::add(pid_t pid) const {
  for (const auto& file : member_files())
    if (auto added = write_cgroup_file(file, std::to_string(pid)); !added) return added;
  return {};
}

cgroup_memory cgroup::memory() const {
  cgroup_memory out;
  for (const auto& part : parts_) {
    if (std::find(part.controllers.begin(), part.controllers.end(), cgroup_controller::memory) ==
        part.controllers.end())
      continue;
    const auto file = part.directory + "/memory.";
    if (part.version == 2) {
      out.limit = read_number(file + "max"); // "max" is no number
      out.usage = read_number(file + "current");
      out.peak = read_number(file + "peak");
      const auto events = read_kernel_file(file + "events");
      out.kills = number_after(events, "oom_kill").value_or(0);
      // Limits of groups below count in the file without `local`, which is all that there is before Linux 5.2.
      const auto own = number_after(read_kernel_file(file + "events.local"), "oom");
      out.at_limit = own.value_or(number_after(events, "oom").value_or(0)) > 0;
    } else {
      out.limit = read_number(file + "limit_in_bytes");
      out.usage = read_number(file + "usage_in_bytes");
      out.peak = read_number(file + "max_usage_in_bytes");
      out.kills = number_after(read_kernel_file(file + "oom_control"), "oom_kill").value_or(0);
      // Newer kernels count no failures; they charge in steps, so that the peak may stay a little below.
      out.at_limit = read_number(file + "failcnt") > 0 || read_number(file + "memsw.failcnt") > 0 ||
                     (out.limit > 0 && out.peak + charge_step >= out.limit);
    }
    if (out.limit >= no_limit) out.limit = 0;
    out.peak = std::max(out.peak, out.usage);
  }
  return out;
}

bool cgroup::remove(bool kill, duration patience) const {
  bool gone = true;
  for (const auto& part : parts_) gone = remove_cgroup_directory(part.directory, kill, patience, files_) && gone;
  return gone;
}

bool remove_cgroup_directory(const std::string& directory, bool kill, duration patience, cgroup_files files) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    // All at once, with those below: nobody escapes by starting others.
    if (kill && !holds_this_process(directory))
      static_cast<void>(write_cgroup_file(directory + "/cgroup.kill", "1")); // v2
    if (remove_once(directory, kill, files)) return true;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    ::poll(nullptr, 0, 1); // members are ending
  }
}

} // namespace troupe
