#include <troupe/tests/system/rendezvous.hpp>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <unistd.h>

#include <troupe/runtime/execution/task_context.hpp>

namespace troupe::system_tests {
namespace {

namespace fs = std::filesystem;

std::string open_file(const std::string& directory, const std::string& point) {
  return directory + "/" + point + ".open";
}

} // namespace

void arrive(const std::string& directory, const std::string& point) {
  static std::atomic<unsigned> arrivals{0};
  // Several of one process may come to one point.
  std::ofstream{directory + "/" + point + ".at." + std::to_string(getpid()) + "." + std::to_string(++arrivals)};
  const auto* const context = task_context::find_current();
  const auto killed = [&] { return context && context->cancelled(); };
  // Longer than the test waits for anything else.
  testing::wait_until([&] { return killed() || fs::exists(open_file(directory, point)); }, 3 * testing::patience());
  if (killed()) throw std::runtime_error("killed while waiting at " + point);
}

void rendezvous::open(const std::string& point) const { std::ofstream{open_file(directory(), point)}; }

std::vector<pid_t> rendezvous::arrivals(const std::string& point) const {
  std::vector<pid_t> pids;
  const auto prefix = point + ".at.";
  for (const auto& entry : fs::directory_iterator{directory()}) {
    const auto name = entry.path().filename().string();
    if (name.starts_with(prefix)) pids.push_back(std::stoi(name.substr(prefix.size())));
  }
  return pids;
}

std::vector<pid_t> rendezvous::await(const std::string& point, std::size_t count, duration deadline) const {
  std::vector<pid_t> found;
  if (!testing::wait_until([&] { return (found = arrivals(point)).size() >= count; }, deadline))
    throw test_cluster_error("only " + std::to_string(found.size()) + " of " + std::to_string(count) +
                             " tasks came to " + point);
  return found;
}

} // namespace troupe::system_tests
