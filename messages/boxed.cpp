#include <troupe/messages/boxed.hpp>

#include <atomic>
#include <mutex>

namespace troupe {

namespace {

// CAF decodes on threads and in places that know no actor, so the count and the hook belong to the process.
std::atomic<std::uint64_t> malformed_count{0};

struct hook_slot {
  std::mutex mutex;
  std::function<void(const error&)> hook;
};

hook_slot& slot() {
  static auto* instance = new hook_slot; // outlives CAF's threads, whatever the order of destruction at exit
  return *instance;
}

} // namespace

void note_malformed(const error& why) noexcept {
  malformed_count.fetch_add(1, std::memory_order_relaxed);
  auto& s = slot();
  const std::lock_guard lock{s.mutex};
  if (s.hook) s.hook(why);
}

std::uint64_t malformed_messages() noexcept { return malformed_count.load(std::memory_order_relaxed); }

void on_malformed(std::function<void(const error&)> hook) {
  auto& s = slot();
  const std::lock_guard lock{s.mutex};
  s.hook = std::move(hook);
}

} // namespace troupe
