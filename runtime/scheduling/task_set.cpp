#include <troupe/runtime/scheduling/task_set.hpp>

#include <algorithm>
#include <stdexcept>

#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

task_set::task_set(std::uint32_t tasks) : records_(tasks) {}

void task_set::queue::erase(partition_index partition) {
  const auto found = std::find(begin(), end(), partition);
  if (found != end()) all_.erase(found);
}

std::vector<partition_index> task_set::queue::pop(std::uint32_t n) {
  const auto first = begin();
  std::vector<partition_index> taken{first, first + n};
  head_ += n;
  // What was handed out goes once it is the larger part, so that the queue cannot outgrow the tasks.
  if (2 * head_ >= all_.size()) {
    all_.erase(all_.begin(), begin());
    head_ = 0;
  }
  return taken;
}

std::uint32_t task_set::take(lane_number lane, std::uint32_t most, executor_index executor, task_batch& batch) {
  if (lane < requeued_.size() && requeued_[lane].size() > 0) {
    const auto n = std::min(most, requeued_[lane].size());
    batch.partitions = requeued_[lane].pop(n);
    batch.attempts.clear();
    batch.attempts.reserve(n);
    for (const auto p : batch.partitions) {
      auto& r = records_[p];
      transition("task", r.state, status::running);
      r.executor = executor;
      batch.attempts.push_back(r.attempt);
    }
    batch.count = n;
    waiting_again_ -= n;
    running_ += n;
    return n;
  }
  if (lane != 0) return 0;
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
  wait_again(partition);
  return r.failures;
}

void task_set::invalidate(partition_index partition) {
  auto& r = records_[partition];
  transition("task", r.state, status::done, status::pending);
  ++r.attempt;
  --done_;
  wait_again(partition);
}

void task_set::wait_again(partition_index partition) {
  const auto lane = records_[partition].lane;
  if (requeued_.size() <= lane) requeued_.resize(std::size_t{lane} + 1);
  requeued_[lane].push(partition);
  ++waiting_again_;
}

void task_set::move_to(lane_number lane, partition_index partition) {
  auto& r = records_[partition];
  if (r.lane == lane) return;
  const bool waits = r.state == status::pending;
  if (waits) {
    if (partition >= next_fresh_) throw std::logic_error{"a task changes its lane only after its first attempt"};
    requeued_[r.lane].erase(partition);
    --waiting_again_;
  }
  r.lane = lane;
  if (waits) wait_again(partition);
}

std::optional<std::string> task_set::fault() const {
  std::uint32_t at_work = 0;
  std::uint32_t ended = 0;
  std::vector<std::uint32_t> waits(records_.size());
  std::uint32_t again = 0;
  for (std::size_t lane = 0; lane < requeued_.size(); ++lane)
    for (const auto p : requeued_[lane]) {
      ++waits[p];
      ++again;
      if (records_[p].lane != lane) return "partition " + std::to_string(p) + " waits in another lane than its own";
    }
  if (again != waiting_again_) return "the tasks that wait again are counted wrongly";
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
