#include <troupe/runtime/scheduling/lease_record.hpp>

#include <algorithm>
#include <stdexcept>

namespace troupe {

void run_queue::push_back(const task_run& run) {
  if (empty())
    first_ = run;
  else
    rest_.push_back(run);
}

void run_queue::insert_after(std::size_t i, const task_run& run) {
  rest_.insert(rest_.begin() + static_cast<std::ptrdiff_t>(gone_ + i), run);
}

void run_queue::erase(std::size_t i) {
  if (i > 0) {
    rest_.erase(rest_.begin() + static_cast<std::ptrdiff_t>(gone_ + i - 1));
  } else if (gone_ < rest_.size()) {
    first_ = rest_[gone_++];
  } else {
    first_ = {};
  }
  if (gone_ < rest_.size() && 2 * gone_ < rest_.capacity()) return;
  // Each is moved once at most before as many others have gone.
  rest_.erase(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(gone_));
  gone_ = 0;
}

void lease_record::add(const task_batch& batch) {
  if (draining) throw std::logic_error{"a lease that is draining must get no more tasks"};
  for (std::uint32_t i = 0; i < batch.count;) {
    const auto first = batch.partition(i);
    auto n = batch.partitions.empty() ? batch.count : 1u;
    const auto attempt = batch.attempt(i);
    while (i + n < batch.count && batch.partition(i + n) == first + n && batch.attempt(i + n) == attempt) ++n;
    auto& last = runs.back();
    if (!runs.empty() && last.stage == batch.stage && last.first + last.count == first && last.attempt == attempt)
      last.count += n;
    else
      runs.push_back({batch.stage, first, n, attempt});
    i += n;
  }
  in_flight += batch.count;
}

bool lease_record::holds(stage_id stage, partition_index partition, attempt_number attempt) const {
  return std::any_of(runs.begin(), runs.end(), [&](const task_run& run) {
    return run.stage == stage && run.attempt == attempt && partition >= run.first && partition - run.first < run.count;
  });
}

bool lease_record::remove_anywhere(stage_id stage, partition_index partition, attempt_number attempt) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    auto& run = runs[i];
    if (run.stage != stage || run.attempt != attempt || partition < run.first || partition - run.first >= run.count)
      continue;
    const auto offset = partition - run.first;
    const task_run rest{stage, partition + 1, run.count - offset - 1, attempt};
    run.count = offset;
    if (rest.count > 0 && offset > 0)
      runs.insert_after(i, rest);
    else if (rest.count > 0)
      run = rest;
    else if (offset == 0)
      runs.erase(i);
    --in_flight;
    return true;
  }
  return false;
}

lease_record& lease_table::add(lease_id id) {
  const auto at = records_.take();
  index_.insert(id, at);
  auto& made = records_[at];
  made.id = id;
  return made;
}

void lease_table::erase(lease_id id) {
  records_.give_back(index_.find(id));
  index_.erase(id);
}

} // namespace troupe
