#include <troupe/runtime/execution/process_limits.hpp>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <sys/resource.h>

#include <troupe/runtime/execution/cpu_affinity.hpp>

namespace troupe {

namespace {

/// Data of this process as RLIMIT_DATA counts it, in bytes.
std::uint64_t own_data() {
  const auto status = read_cgroup_file("/proc/self/status");
  constexpr std::string_view label = "\nVmData:";
  const auto at = status.find(label);
  if (at == status.npos) return 0;
  const auto begin = std::min(status.find_first_not_of(" \t", at + label.size()), status.size());
  std::uint64_t kib = 0;
  std::from_chars(status.data() + begin, status.data() + status.size(), kib);
  return kib * 1024;
}

} // namespace

std::string enter(const process_limits& limits) {
  std::string failed;
  if (!limits.group.empty())
    if (auto joined = limits.group.child(self_group).add(::getpid()); !joined)
      failed = "this executor is not limited: " + joined.error().message;
  if (!limits.cpus.empty() && !bind_to_cpus(limits.cpus))
    failed += (failed.empty() ? "" : "; ") + std::string{"it cannot be bound to its cpus"};
  return failed;
}

void limit_own_data(std::uint64_t bytes) {
  rlimit now{};
  if (bytes == 0 || ::getrlimit(RLIMIT_DATA, &now) != 0) return;
  const auto wanted = own_data() + bytes;
  if (now.rlim_cur != RLIM_INFINITY && now.rlim_cur <= wanted) return;
  now.rlim_cur = wanted;
  ::setrlimit(RLIMIT_DATA, &now);
}

} // namespace troupe
