#include <troupe/runtime/execution/process_limits.hpp>

#include <atomic>

#include <sys/resource.h>
#include <unistd.h>

#include <troupe/runtime/execution/cpu_affinity.hpp>
#include <troupe/runtime/execution/process_memory.hpp>

namespace troupe {

std::string enter(const process_limits& limits) {
  std::string failed;
  if (!limits.group.empty())
    if (auto joined = limits.group.child(self_group).add(::getpid()); !joined)
      failed = "this executor is not limited: " + joined.error().message;
  if (!limits.cpus.empty() && !bind_to_cpus(limits.cpus))
    failed += (failed.empty() ? "" : "; ") + std::string{"it cannot be bound to its cpus"};
  return failed;
}

namespace {

std::atomic<std::uint64_t> former_files = 0;

} // namespace

void raise_file_limit() {
  rlimit now{};
  if (::getrlimit(RLIMIT_NOFILE, &now) != 0 || now.rlim_cur >= now.rlim_max) return;
  const auto former = now.rlim_cur;
  now.rlim_cur = now.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &now) == 0) former_files = former;
}

std::uint64_t file_limit() {
  rlimit now{};
  return ::getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur != RLIM_INFINITY ? now.rlim_cur : ~std::uint64_t{0};
}

std::uint64_t former_file_limit() { return former_files; }

void limit_own_data(std::uint64_t bytes) {
  rlimit now{};
  if (bytes == 0 || ::getrlimit(RLIMIT_DATA, &now) != 0) return;
  const auto wanted = data_of(::getpid()) + bytes;
  if (now.rlim_cur != RLIM_INFINITY && now.rlim_cur <= wanted) return;
  now.rlim_cur = wanted;
  ::setrlimit(RLIMIT_DATA, &now);
}

} // namespace troupe
