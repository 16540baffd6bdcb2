#include <algorithm>
#include <iterator>
#include <stdexcept>

#include <troupe/runtime/scheduling/executor_pool.hpp>

namespace troupe {

void lease_record::add(const task_batch& batch) {
  if (draining) throw std::logic_error{"a lease that is draining must get no more tasks"};
  for (std::uint32_t i = 0; i < batch.count;) {
    const auto first = batch.partition(i);
    auto n = batch.partitions.empty() ? batch.count : 1u;
    const auto attempt = batch.attempt(i);
    while (i + n < batch.count && batch.partition(i + n) == first + n && batch.attempt(i + n) == attempt) ++n;
    if (!runs.empty() && runs.back().stage == batch.stage && runs.back().first + runs.back().count == first &&
        runs.back().attempt == attempt)
      runs.back().count += n;
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

bool lease_record::remove(stage_id stage, partition_index partition, attempt_number attempt) {
  // Attempts end in the order in which they were handed out unless one is killed, so the first run nearly always fits.
  for (auto it = runs.begin(); it != runs.end(); ++it) {
    if (it->stage != stage || it->attempt != attempt || partition < it->first || partition - it->first >= it->count)
      continue;
    const auto offset = partition - it->first;
    if (offset == 0) {
      ++it->first;
      --it->count;
    } else if (offset + 1 == it->count) {
      --it->count;
    } else {
      const task_run rest{stage, partition + 1, it->count - offset - 1, attempt};
      it->count = offset;
      it = runs.insert(std::next(it), rest);
    }
    if (it->count == 0) runs.erase(it);
    --in_flight;
    return true;
  }
  return false;
}

} // namespace troupe
