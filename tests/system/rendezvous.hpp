#pragma once

/// A place where tasks wait for the test, in whatever process they run: files in a directory.

#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

/// The side of a task, or of a process: says that it has come to `point` and waits until the test opens it. Ends with
/// an exception when the attempt is killed.
void arrive(const std::string& directory, const std::string& point);

/// The test's side.
class rendezvous {
public:
  const std::string& directory() const noexcept { return directory_.path(); }
  /// Lets all pass that are at the point and all that come later.
  void open(const std::string& point) const;
  /// Process of every arrival at the point so far, one entry per arrival.
  std::vector<pid_t> arrivals(const std::string& point) const;
  /// Waits until there are at least `count` arrivals and gives them. Throws test_cluster_error.
  std::vector<pid_t> await(const std::string& point, std::size_t count = 1,
                           duration deadline = testing::patience()) const;

private:
  testing::temporary_directory directory_;
};

} // namespace troupe::system_tests
