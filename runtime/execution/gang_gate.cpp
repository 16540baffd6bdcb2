#include <troupe/runtime/execution/gang_gate.hpp>

#include <algorithm>
#include <condition_variable>
#include <string>
#include <utility>

namespace troupe {

struct gang_gate::waiter {
  waiter(gang_gate& at, const barrier_arrival& of, const std::atomic<bool>* flag)
    : gate(at), arrival(of), cancelled(flag) {
    const std::lock_guard lock{gate.mutex_};
    gate.waiting_.push_back(this);
  }
  ~waiter() {
    const std::lock_guard lock{gate.mutex_};
    std::erase(gate.waiting_, this);
  }
  bool is_cancelled() const { return cancelled && cancelled->load(std::memory_order_relaxed); }

  gang_gate& gate;
  const barrier_arrival& arrival;
  const std::atomic<bool>* cancelled;
  std::condition_variable awake; ///< its own: a kill wakes whom it means
  bool released = false;
  texts brought;
  std::string failure;
};

gang_gate::texts gang_gate::wait(const barrier_arrival& arrival, const std::atomic<bool>* cancelled) {
  // Before the arrival is told: the release may be there at once.
  waiter self{*this, arrival, cancelled};
  if (!self.is_cancelled()) on_arrival_(arrival);
  // A release may come after the kill that has woken it: what counts is decided, and taken, under the lock.
  bool released = false;
  texts brought;
  std::string failure;
  {
    std::unique_lock lock{mutex_};
    self.awake.wait(lock, [&] { return self.released || self.is_cancelled(); });
    released = self.released;
    brought = std::move(self.brought);
    failure = std::move(self.failure);
  }
  if (!released) throw barrier_failure("the task was cancelled while it waited for the others of its gang");
  if (!failure.empty()) throw barrier_failure(failure);
  return brought;
}

void gang_gate::release(const barrier_release& what) {
  const std::lock_guard lock{mutex_};
  for (auto* const w : waiting_) {
    if (w->released) continue; // it has yet to wake up
    const auto& a = w->arrival;
    if (a.stage != what.stage || a.stage_attempt != what.stage_attempt || a.round != what.round) continue;
    if (std::find(what.partitions.begin(), what.partitions.end(), a.partition) == what.partitions.end()) continue;
    w->released = true;
    w->brought = what.texts;
    w->failure = what.failure;
    w->awake.notify_one();
  }
}

void gang_gate::wake(const std::atomic<bool>& cancelled) {
  const std::lock_guard lock{mutex_};
  for (auto* const w : waiting_)
    if (w->cancelled == &cancelled) w->awake.notify_one();
}

} // namespace troupe
