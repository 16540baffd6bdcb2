#include <troupe/runtime/scheduling/task_set.hpp>

#include <algorithm>

#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

task_set::task_set(std::uint32_t tasks) : records_(tasks) {}

std::uint32_t task_set::take(std::uint32_t most, executor_index executor, task_batch& batch) {
  const auto waiting = requeued_.size() - requeued_head_;
  if (waiting > 0) {
    const auto n = static_cast<std::uint32_t>(std::min<std::size_t>(most, waiting));
    batch.partitions.assign(requeued_.begin() + static_cast<std::ptrdiff_t>(requeued_head_),
                            requeued_.begin() + static_cast<std::ptrdiff_t>(requeued_head_ + n));
    batch.attempts.clear();
    batch.attempts.reserve(n);
    for (const auto p : batch.partitions) {
      auto& r = records_[p];
      transition("task", r.state, status::running);
      r.executor = executor;
      batch.attempts.push_back(r.attempt);
    }
    batch.count = n;
    requeued_head_ += n;
    // What was handed out goes once it is the larger part, so that the queue cannot outgrow the tasks.
    if (2 * requeued_head_ >= requeued_.size()) {
      requeued_.erase(requeued_.begin(), requeued_.begin() + static_cast<std::ptrdiff_t>(requeued_head_));
      requeued_head_ = 0;
    }
    running_ += n;
    return n;
  }
  const auto n = std::min<std::uint32_t>(most, size() - next_fresh_);
  if (n == 0) return 0;
  batch.first = next_fresh_;
  batch.count = n;
  batch.partitions.clear();
  batch.attempts.clear();
  for (auto p = next_fresh_; p < next_fresh_ + n; ++p) {
    transition("task", records_[p].state, status::running);
    records_[p].executor = executor;
  }
  next_fresh_ += n;
  running_ += n;
  return n;
}

void task_set::succeed(partition_index partition) noexcept {
  transition("task", records_[partition].state, status::done);
  --running_;
  ++done_;
}

std::uint32_t task_set::requeue(partition_index partition, bool blame) {
  auto& r = records_[partition];
  transition("task", r.state, status::running, status::pending);
  ++r.attempt;
  if (blame && r.failures < max_failures) ++r.failures;
  --running_;
  requeued_.push_back(partition);
  return r.failures;
}

void task_set::invalidate(partition_index partition) {
  auto& r = records_[partition];
  transition("task", r.state, status::done, status::pending);
  ++r.attempt;
  --done_;
  requeued_.push_back(partition);
}

std::optional<std::string> task_set::fault() const {
  std::uint32_t at_work = 0;
  std::uint32_t ended = 0;
  std::vector<std::uint32_t> waits(records_.size());
  for (auto i = requeued_head_; i < requeued_.size(); ++i) ++waits[requeued_[i]];
  for (auto p = next_fresh_; p < records_.size(); ++p) ++waits[p];
  for (partition_index p = 0; p < records_.size(); ++p) {
    at_work += records_[p].state == status::running;
    ended += records_[p].state == status::done;
    if (waits[p] != (records_[p].state == status::pending ? 1u : 0u))
      return "partition " + std::to_string(p) + " waits " + std::to_string(waits[p]) + " times";
  }
  if (at_work != running_) return "the running tasks are counted wrongly";
  if (ended != done_) return "the tasks that are done are counted wrongly";
  return std::nullopt;
}

} // namespace troupe
