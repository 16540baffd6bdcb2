#include <troupe/runtime/transfer/connection_pool.hpp>

#include <algorithm>
#include <utility>

#include <troupe/runtime/execution/task_context.hpp>

namespace troupe {

namespace {

/// Idle connections kept for one block server: as many as tasks commonly read from it at once.
constexpr std::size_t max_idle_per_server = 4;
/// Idle connections altogether.
constexpr std::size_t max_idle = 128;
constexpr duration pause_slice = std::chrono::milliseconds{50};

} // namespace

std::optional<block_connection> connection_pool::take(const block_endpoint& endpoint) {
  const std::lock_guard lock{mutex_};
  const auto i = idle_.find(endpoint);
  if (i == idle_.end()) return std::nullopt;
  auto connection = std::move(i->second.back());
  i->second.pop_back();
  --idle_count_;
  if (i->second.empty()) idle_.erase(i);
  return connection;
}

void connection_pool::keep(const block_endpoint& endpoint, block_connection connection) {
  const std::lock_guard lock{mutex_};
  if (forgotten_.contains(endpoint.executor)) return;
  auto& list = idle_[endpoint];
  if (list.size() >= max_idle_per_server) {
    list.erase(list.begin());
    --idle_count_;
  } else if (idle_count_ >= max_idle) {
    // Endpoints of executors that are gone would stay for ever: any other one makes room.
    const auto victim = idle_.begin()->first == endpoint ? std::next(idle_.begin()) : idle_.begin();
    if (victim != idle_.end() && !victim->second.empty()) {
      idle_count_ -= victim->second.size();
      idle_.erase(victim);
    }
  }
  idle_[endpoint].push_back(std::move(connection));
  ++idle_count_;
}

void connection_pool::interrupt() noexcept {
  interrupted_.store(true, std::memory_order_relaxed);
  wake_.notify_all();
}

void connection_pool::forget(executor_id executor) {
  const std::lock_guard lock{mutex_};
  forgotten_.insert(executor);
  std::erase_if(idle_, [&](const auto& entry) {
    if (entry.first.executor != executor) return false;
    idle_count_ -= entry.second.size();
    return true;
  });
}

bool connection_pool::is_forgotten(executor_id executor) const {
  const std::lock_guard lock{mutex_};
  return forgotten_.contains(executor);
}

bool connection_pool::stopped() const {
  if (interrupted_.load(std::memory_order_relaxed)) return true;
  const auto* const task = task_context::find_current();
  return task && task->cancelled();
}

void connection_pool::pause(duration length) {
  const auto end = std::chrono::steady_clock::now() + length;
  std::unique_lock lock{mutex_};
  for (auto rest = length; rest > duration::zero() && !stopped(); rest = end - std::chrono::steady_clock::now())
    wake_.wait_for(lock, std::min(rest, pause_slice));
}

} // namespace troupe
