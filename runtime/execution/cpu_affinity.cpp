#include <troupe/runtime/execution/cpu_affinity.hpp>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <sched.h>
#include <utility>

namespace troupe {

namespace {

/// More cpus than this no kernel has yet.
constexpr int most_cpus = 1 << 16;

struct cpu_set_deleter {
  void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};
using cpu_set = std::unique_ptr<cpu_set_t, cpu_set_deleter>;

} // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  for (int size = 1024; size <= most_cpus; size *= 2) {
    const cpu_set set{CPU_ALLOC(static_cast<std::size_t>(size))};
    const auto bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    if (!set) break;
    CPU_ZERO_S(bytes, set.get());
    if (::sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue; // the kernel knows more
      break;
    }
    for (int cpu = 0; cpu < size; ++cpu)
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    break;
  }
  return cpus;
}

bool bind_to_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return false;
  const auto size = static_cast<std::size_t>(*std::max_element(cpus.begin(), cpus.end())) + 1;
  const cpu_set set{CPU_ALLOC(size)};
  if (!set) return false;
  const auto bytes = CPU_ALLOC_SIZE(size);
  CPU_ZERO_S(bytes, set.get());
  for (const auto cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set.get());
  return ::sched_setaffinity(0, bytes, set.get()) == 0;
}

cpu_pool::cpu_pool(const std::vector<int>& cpus) {
  for (const auto cpu : cpus) holders_.emplace(cpu, 0);
}

std::vector<int> cpu_pool::take(std::int64_t count) {
  std::vector<std::pair<std::uint32_t, int>> order;
  for (const auto& [cpu, n] : holders_) order.emplace_back(n, cpu);
  std::sort(order.begin(), order.end());
  std::vector<int> taken;
  for (const auto& [n, cpu] : order) {
    if (static_cast<std::int64_t>(taken.size()) >= count) break;
    taken.push_back(cpu);
    ++holders_[cpu];
  }
  std::sort(taken.begin(), taken.end());
  return taken;
}

void cpu_pool::give_back(const std::vector<int>& cpus) {
  for (const auto cpu : cpus) --holders_.at(cpu);
}

bool cpu_pool::is_shared() const {
  return std::any_of(holders_.begin(), holders_.end(), [](const auto& entry) { return entry.second > 1; });
}

} // namespace troupe
