#pragma once

/// Control groups to test with: the kernel's own of v1, and plain directories that look like v2.

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include <troupe/runtime/execution/cgroup_find.hpp>

#include "process_fixture.hpp"

namespace troupe::testing_execution {

/// A directory of its own that goes with it.
class scratch_tree {
public:
  scratch_tree() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-cgroup-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~scratch_tree() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path{path_ + "/" + name}.parent_path());
    std::ofstream{path_ + "/" + name} << text;
  }
  std::string read(const std::string& name) const { return content_of(path_ + "/" + name); }

private:
  std::string path_;
};

/// As the kernel does: a new group has the files of the controllers that the group above gives.
inline int make_like_v2(const char* path, mode_t mode) {
  if (::mkdir(path, mode) != 0) return -1;
  for (const auto* name : {"cgroup.procs", "cgroup.subtree_control", "cgroup.kill", "memory.max", "memory.swap.max",
                           "memory.current", "memory.peak", "memory.events", "cpu.max", "pids.max"})
    std::ofstream{std::string{path} + "/" + name};
  return 0;
}
/// Files do not keep a group, groups below do.
inline int remove_like_v2(const char* path) {
  if (!std::filesystem::exists(path)) {
    errno = ENOENT;
    return -1;
  }
  for (const auto& entry : std::filesystem::directory_iterator{path})
    if (entry.is_directory()) {
      errno = EBUSY;
      return -1;
    }
  return std::filesystem::remove_all(path) > 0 ? 0 : -1;
}

/// The session's group of this test in the kernel's own v1 hierarchy of memory, or nothing, which the test says.
class own_groups {
public:
  explicit own_groups(std::vector<cgroup_controller> wanted) : found_(find_cgroups(wanted)) {
    for (const auto controller : wanted)
      if (const auto why = found_.missing.find(controller); why != found_.missing.end()) missing_ += why->second + "; ";
    if (!missing_.empty()) return;
    auto made = make_session_group(found_, "troupe-test-" + std::to_string(::getpid()));
    if (made)
      top_ = *made;
    else
      missing_ = made.error().message;
  }
  ~own_groups() {
    if (!top_.empty()) remove_session_group(found_, top_);
  }
  const cgroup& top() const { return top_; }
  /// Why there are none; "" where there are.
  const std::string& missing() const { return missing_; }

private:
  found_cgroups found_;
  cgroup top_;
  std::string missing_;
};

} // namespace troupe::testing_execution
