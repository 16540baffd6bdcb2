#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace troupe::testing_execution {

/// A directory in a file system that keeps its files in memory, and is another one than that of `here`. None where this
/// machine has no other.
class elsewhere {
public:
  explicit elsewhere(const std::string& here) {
    struct stat a {
    }, b{};
    struct statfs kind {};
    std::string name = "/dev/shm/troupe-test-XXXXXX";
    if (::stat(here.c_str(), &a) == 0 && ::stat("/dev/shm", &b) == 0 && a.st_dev != b.st_dev &&
        ::statfs("/dev/shm", &kind) == 0 && kind.f_type == TMPFS_MAGIC && ::mkdtemp(name.data()))
      path = name;
  }
  ~elsewhere() {
    if (!path.empty()) std::filesystem::remove_all(path);
  }
  elsewhere(const elsewhere&) = delete;
  elsewhere& operator=(const elsewhere&) = delete;

  std::string path;
};

} // namespace troupe::testing_execution
