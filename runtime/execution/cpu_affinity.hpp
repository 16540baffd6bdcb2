#pragma once

/// Cpus that processes are bound to.

#include <cstdint>
#include <map>
#include <vector>

namespace troupe {

/// Numbers of the cpus that this thread may run on, ascending; empty where the system does not say.
std::vector<int> allowed_cpus();
/// Binds the calling thread and all that it starts from now on. @returns whether the system has done so
bool bind_to_cpus(const std::vector<int>& cpus);

/// Hands out cpus: those that fewest hold, so that no two holders share one while there are enough. Not thread-safe.
class cpu_pool {
public:
  explicit cpu_pool(const std::vector<int>& cpus);
  /// `count` of them, ascending; all of them where there are not so many.
  std::vector<int> take(std::int64_t count);
  void give_back(const std::vector<int>& cpus);
  /// True while somebody has to share.
  bool is_shared() const;

private:
  std::map<int, std::uint32_t> holders_; ///< of each cpu
};

} // namespace troupe
