#include <troupe/runtime/scheduling/task_set.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

task_set::task_set(std::uint32_t tasks) : records_(tasks) {}

void task_set::queue::erase(partition_index partition) {
  const auto found = std::find(begin(), end(), partition);
  if (found == begin() && found != end())
    ++head_;
  else if (found != end())
    all_.erase(found);
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
  if (lane != 0) return 0; // with locations, no task is fresh
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

std::optional<task_set::place> task_set::succeed_beside_copy(partition_index partition, attempt_number attempt,
                                                             status next) noexcept {
  auto& r = records_[partition];
  transition("task", r.state, status::running, next);
  if (next == status::publishing) {
    ++publishing_;
  } else {
    --running_;
    ++done_;
  }
  if (!r.has_copy) return std::nullopt;
  drop_wanted(partition);
  auto& other = copies_.at(partition);
  if (other.state != copy::status::running) return std::nullopt;
  other.state = copy::status::ended;
  --copies_running_;
  if (attempt == r.attempt) return other.where;
  // The copy was faster. Its number stays the highest that was used, and becomes that of the task.
  const place slower{r.executor, r.attempt};
  r.executor = other.where.executor;
  r.attempt = other.where.attempt;
  return slower;
}

void task_set::published(partition_index partition) {
  transition("task", records_[partition].state, status::publishing, status::done);
  --publishing_;
  --running_;
  ++done_;
}

std::uint32_t task_set::requeue(partition_index partition, attempt_number attempt, bool blame) {
  auto& r = records_[partition];
  if (r.state != status::running && r.state != status::publishing)
    throw std::logic_error{"only an attempt that runs, or is being published, can end"};
  if (blame && r.failures < max_failures) ++r.failures;
  if (r.state == status::publishing) {
    --publishing_;
  } else if (r.has_copy) {
    auto& other = copies_.at(partition);
    if (other.state == copy::status::running) {
      other.state = copy::status::ended;
      --copies_running_;
      if (attempt == r.attempt) { // the copy goes on in its place
        r.executor = other.where.executor;
        r.attempt = other.where.attempt;
      } else if (!blame) { // it is wanted as before
        other.state = copy::status::wanted;
        wanted_[r.lane].insert(partition);
      }
      return r.failures;
    }
  }
  transition("task", r.state, status::pending);
  r.attempt = next_attempt(partition);
  --running_;
  wait_again(partition);
  return r.failures;
}

void task_set::invalidate(partition_index partition) {
  auto& r = records_[partition];
  transition("task", r.state, status::done, status::pending);
  r.attempt = next_attempt(partition);
  --done_;
  wait_again(partition);
}

/// One that no attempt had, copies included, which are forgotten.
attempt_number task_set::next_attempt(partition_index partition) {
  auto& r = records_[partition];
  attempt_number last = r.attempt;
  if (r.has_copy) {
    drop_wanted(partition);
    const auto it = copies_.find(partition);
    last = std::max(last, it->second.where.attempt);
    copies_.erase(it);
    r.has_copy = false;
  }
  return last + 1;
}

void task_set::want_copy(partition_index partition) {
  auto& r = records_[partition];
  if (r.state != status::running || r.has_copy) throw std::logic_error{"only a task that runs once can have a copy"};
  r.has_copy = true;
  copies_.emplace(partition, copy{});
  wanted_[r.lane].insert(partition);
}

const std::set<partition_index>& task_set::wanted_copies(lane_number lane) const {
  static const std::set<partition_index> none;
  const auto found = wanted_.find(lane);
  return found == wanted_.end() ? none : found->second;
}

void task_set::start_copy(partition_index partition, executor_index executor, task_batch& batch) {
  drop_wanted(partition);
  auto& made = copies_.at(partition);
  made.state = copy::status::running;
  made.where = {executor, std::max(attempt_of(partition), made.where.attempt) + 1};
  ++copies_running_;
  batch.first = 0;
  batch.count = 1;
  batch.partitions = {partition};
  batch.attempts = {made.where.attempt};
}

bool task_set::is_copy(partition_index partition, place where) const noexcept {
  const auto& known = copies_.at(partition);
  return known.state == copy::status::running && known.where == where;
}

void task_set::drop_wanted(partition_index partition) {
  const auto lane = wanted_.find(records_[partition].lane);
  if (lane == wanted_.end() || lane->second.erase(partition) == 0) return;
  if (lane->second.empty()) wanted_.erase(lane);
}

void task_set::locate(std::unique_ptr<located_tasks> located) {
  if (next_fresh_ > 0) throw std::logic_error{"tasks have locations before the first is handed out"};
  located_ = std::move(located);
  next_fresh_ = size();
  located_waiting_ = size();
  waiting_again_ = size();
}

std::optional<partition_index> task_set::find_near(executor_id executor, const std::string& host,
                                                   locality_level level) {
  return located_->find(executor, host, level, [this](partition_index p) {
    return records_[p].state == status::pending && records_[p].lane == 0 && records_[p].admitted;
  });
}

bool task_set::has_near(executor_id executor, const std::string& host, locality_level level) {
  return located_waiting_ > 0 && find_near(executor, host, level);
}

std::uint32_t task_set::take_near(executor_id executor, const std::string& host, locality_level level,
                                  std::uint32_t most, executor_index index, task_batch& batch) {
  std::uint32_t n = 0;
  batch.partitions.clear();
  batch.attempts.clear();
  for (; n < most; ++n) {
    const auto p = find_near(executor, host, level);
    if (!p) break;
    auto& r = records_[*p];
    transition("task", r.state, status::running);
    r.executor = index;
    batch.partitions.push_back(*p);
    batch.attempts.push_back(r.attempt);
  }
  batch.first = 0;
  batch.count = n;
  located_waiting_ -= n;
  waiting_again_ -= n;
  running_ += n;
  return n;
}

void task_set::gate() {
  if (next_fresh_ > 0 && !located_) throw std::logic_error{"tasks are gated before the first is handed out"};
  for (auto& r : records_) r.admitted = false;
  next_fresh_ = size();
  located_waiting_ = waiting_again_ = 0;
}

void task_set::adopt(std::span<const partition_index> partitions, executor_index executor) {
  for (const auto partition : partitions) {
    auto& r = records_[partition];
    if (next_fresh_ > 0 && r.admitted) wait_no_more(partition);
    transition("task", r.state, status::pending, status::done);
    r.executor = executor;
  }
  done_ += static_cast<std::uint32_t>(partitions.size());
  if (next_fresh_ > 0 || partitions.empty()) return;
  next_fresh_ = size(); // those that are left wait one by one
  for (partition_index p = 0; p < size(); ++p)
    if (records_[p].state == status::pending) wait_again(p);
}

void task_set::admit(partition_index partition) {
  auto& r = records_[partition];
  if (std::exchange(r.admitted, true) || r.state != status::pending) return;
  wait_again(partition);
}

void task_set::withhold(partition_index partition) {
  auto& r = records_[partition];
  if (!r.admitted) return;
  if (r.state == status::pending) {
    if (partition >= next_fresh_) throw std::logic_error{"only gated tasks can be withheld"};
    wait_no_more(partition);
  }
  r.admitted = false;
}

/// @pre it waits, and not for its first attempt unless tasks are gated
void task_set::wait_no_more(partition_index partition) {
  const auto lane = records_[partition].lane;
  if (lane == 0 && located_)
    --located_waiting_;
  else
    requeued_[lane].erase(partition);
  --waiting_again_;
}

void task_set::wait_again(partition_index partition) {
  if (!records_[partition].admitted) return;
  const auto lane = records_[partition].lane;
  if (lane == 0 && located_) {
    located_->push(partition);
    ++located_waiting_;
    ++waiting_again_;
    return;
  }
  if (requeued_.size() <= lane) requeued_.resize(std::size_t{lane} + 1);
  requeued_[lane].push(partition);
  ++waiting_again_;
}

void task_set::move_to(lane_number lane, partition_index partition) {
  auto& r = records_[partition];
  if (r.lane == lane) return;
  const bool waits = r.state == status::pending && r.admitted;
  const bool wants_copy = wanted_copies(r.lane).contains(partition);
  drop_wanted(partition);
  if (waits) {
    if (partition >= next_fresh_) throw std::logic_error{"a task changes its lane only after its first attempt"};
    wait_no_more(partition);
  }
  r.lane = lane;
  if (waits) wait_again(partition);
  if (wants_copy) wanted_[lane].insert(partition);
}

std::optional<std::string> task_set::fault() const {
  std::uint32_t at_work = 0;
  std::uint32_t accepted = 0;
  std::uint32_t ended = 0;
  std::vector<std::uint32_t> waits(records_.size());
  std::uint32_t again = 0;
  for (std::size_t lane = 0; lane < requeued_.size(); ++lane)
    for (const auto p : requeued_[lane]) {
      ++waits[p];
      ++again;
      if (records_[p].lane != lane) return "partition " + std::to_string(p) + " waits in another lane than its own";
    }
  if (located_) {
    std::uint32_t near = 0;
    for (partition_index p = 0; p < records_.size(); ++p)
      if (records_[p].state == status::pending && records_[p].lane == 0 && records_[p].admitted) {
        ++waits[p];
        ++near;
      }
    if (near != located_waiting_) return "the tasks that wait for a place are counted wrongly";
    again += near;
  }
  if (again != waiting_again_) return "the tasks that wait again are counted wrongly";
  for (auto p = next_fresh_; p < records_.size(); ++p) ++waits[p];
  for (partition_index p = 0; p < records_.size(); ++p) {
    accepted += records_[p].state == status::publishing;
    at_work += records_[p].state == status::running || records_[p].state == status::publishing;
    ended += records_[p].state == status::done;
    if (waits[p] != (records_[p].state == status::pending && records_[p].admitted ? 1u : 0u))
      return "partition " + std::to_string(p) + " waits " + std::to_string(waits[p]) + " times";
  }
  std::uint32_t copies = 0;
  std::size_t wanted = 0;
  for (const auto& [p, c] : copies_) {
    if (!records_[p].has_copy) return "partition " + std::to_string(p) + " has a copy and does not know it";
    copies += c.state == copy::status::running;
    wanted += c.state == copy::status::wanted && records_[p].state == status::running;
  }
  for (const auto& [lane, all] : wanted_) {
    wanted -= all.size();
    for (const auto p : all)
      if (records_[p].lane != lane) return "a copy is wanted in another lane than its task's";
  }
  if (copies != copies_running_ || wanted != 0) return "copies are counted wrongly";
  if (at_work != running_) return "the running tasks are counted wrongly";
  if (accepted != publishing_) return "the tasks that are being published are counted wrongly";
  if (ended != done_) return "the tasks that are done are counted wrongly";
  return std::nullopt;
}

} // namespace troupe
