#pragma once

/// Control groups of the kernel, v1 and v2: made, limited, read, killed and removed. A group here is one directory in
/// each hierarchy that carries a wanted controller. Where groups may be made: cgroup_find.hpp.

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

enum class cgroup_controller : std::uint8_t { memory, cpu, pids };
std::string_view to_string(cgroup_controller controller) noexcept;

/// What the kernel does with a directory of a cgroup file system, beside its files. Tests put plain directories there.
struct cgroup_files {
  int (*make)(const char* path, mode_t mode) = ::mkdir;
  int (*remove)(const char* path) = ::rmdir;
};

/// What a group may take; 0: as much as the group above.
struct cgroup_limits {
  std::uint64_t memory = 0;          ///< bytes, swap included where the kernel can limit that
  std::uint32_t cpu_thousandths = 0; ///< of one core, as a quota
  std::uint32_t processes = 0;       ///< processes and threads at one time
};

/// What a group has taken; all zero where it carries no memory controller.
struct cgroup_memory {
  std::uint64_t limit = 0; ///< bytes; 0: none
  std::uint64_t usage = 0; ///< bytes, with what it has in the page cache
  std::uint64_t peak = 0;  ///< bytes; the usage where the kernel keeps no peak
  std::uint64_t kills = 0; ///< processes that the kernel has killed here for lack of memory, whoever's limit was hit
  /// The group's own limit left no memory at least once. To have been near it is not enough under v2, where the kernel
  /// counts how often it had to kill for it; under v1 it is, since that counts only how often the limit was met.
  bool at_limit = false;
};

/// The directory of a group in one hierarchy.
struct cgroup_part {
  int version = 1; ///< 1 or 2
  std::string directory;
  std::vector<cgroup_controller> controllers; ///< that are used of this hierarchy

  bool operator==(const cgroup_part&) const = default;
};

/// Names one group; copies name the same one. Owns nothing: whoever makes a group removes it. Any thread.
class cgroup {
public:
  cgroup() = default;
  explicit cgroup(std::vector<cgroup_part> parts, cgroup_files files = {}) : parts_(std::move(parts)), files_(files) {}

  /// True where there is nothing to limit with.
  bool empty() const noexcept { return parts_.empty(); }
  bool has(cgroup_controller controller) const noexcept;
  const std::vector<cgroup_part>& parts() const noexcept { return parts_; }
  const cgroup_files& files() const noexcept { return files_; }

  /// The group of this name below; not made yet.
  cgroup child(std::string_view name) const;
  /// Makes its directories where they are missing; those above exist. Under v2 the group above must hold no process of
  /// its own. Error: io; nothing of it is left then.
  result<void> make() const;
  /// Error: io, names the file. @pre made
  result<void> limit(const cgroup_limits& limits) const;
  /// Files that a process writes "0" to in order to become a member.
  std::vector<std::string> member_files() const;
  /// Makes a process a member. Error: io.
  result<void> add(pid_t pid) const;
  cgroup_memory memory() const;
  /// Removes it and all groups below. `kill`: kills their members first, but for this process. Waits for members that
  /// end for at most `patience`. @returns whether all of it is gone
  bool remove(bool kill, duration patience) const;

private:
  std::vector<cgroup_part> parts_;
  cgroup_files files_;
};

/// The same for one directory of whatever version.
bool remove_cgroup_directory(const std::string& directory, bool kill, duration patience, cgroup_files files = {});

/// Writes to a file of a group without making the file. Error: io, names the file.
result<void> write_cgroup_file(const std::string& path, std::string_view text);

} // namespace troupe
