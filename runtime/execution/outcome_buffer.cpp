#include <troupe/runtime/execution/outcome_buffer.hpp>

#include <algorithm>
#include <utility>

namespace troupe {

void outcome_buffer::open(stage_id stage, attempt_number stage_attempt, lease_id lease, time_point oldest) {
  if (batch_) return;
  batch_ = std::make_shared<outcome_batch>();
  batch_->stage = stage;
  batch_->stage_attempt = stage_attempt;
  batch_->lease = lease;
  batch_->results.ends.reserve(capacity_);
  oldest_ = oldest;
}

void outcome_buffer::add(partition_index partition, attempt_number attempt) {
  auto& b = *batch_;
  const auto index = b.count++;
  if (index == 0) b.first = partition;
  if (b.partitions.empty() && partition != b.first + index) {
    b.partitions.reserve(capacity_);
    for (std::uint32_t i = 0; i < index; ++i) b.partitions.push_back(b.first + i);
    b.partitions.push_back(partition);
    b.first = 0;
  } else if (!b.partitions.empty()) {
    b.partitions.push_back(partition);
  }
  if (b.attempts.empty() && attempt != 0) {
    b.attempts.reserve(capacity_);
    b.attempts.assign(index, 0);
  }
  if (attempt != 0 || !b.attempts.empty()) b.attempts.push_back(attempt);
}

void outcome_buffer::add_value(partition_index partition, attempt_number attempt, std::string_view value) {
  add(partition, attempt);
  auto& b = *batch_;
  append_inline_entry(b.results.data, value);
  b.results.ends.push_back(static_cast<std::uint32_t>(b.results.data.size()));
  if (!b.statuses.empty()) b.statuses.push_back(task_status::succeeded);
}

void outcome_buffer::add_block(partition_index partition, attempt_number attempt, result_kind kind, std::uint64_t bytes,
                               std::string_view buckets) {
  add(partition, attempt);
  auto& b = *batch_;
  append_block_entry(b.results.data, kind, bytes, buckets);
  b.results.ends.push_back(static_cast<std::uint32_t>(b.results.data.size()));
  if (!b.statuses.empty()) b.statuses.push_back(task_status::succeeded);
}

void outcome_buffer::add_failure(partition_index partition, attempt_number attempt, task_status status,
                                 task_failure failure) {
  add(partition, attempt);
  auto& b = *batch_;
  b.results.push_back({});
  if (b.statuses.empty()) {
    b.statuses.reserve(capacity_);
    b.statuses.assign(b.count - 1, task_status::succeeded);
  }
  b.statuses.push_back(status);
  failure.index = b.count - 1;
  b.failures.push_back(std::move(failure));
}

void outcome_buffer::add_counted(const std::vector<accumulated>& counted) {
  auto& names = batch_->accumulators;
  auto& all = batch_->counted;
  const auto before = static_cast<std::ptrdiff_t>(all.size());
  for (const auto& [name, amount] : counted) {
    const auto known = std::ranges::find(names, name);
    const auto number = static_cast<std::uint32_t>(known - names.begin());
    if (known == names.end()) names.push_back(name);
    all.push_back({batch_->count - 1, number, amount});
  }
  std::ranges::sort(all.begin() + before, all.end(), {}, &counted_amount::accumulator);
}

void outcome_buffer::add_usage(duration wall, std::uint64_t cpu_nanoseconds, std::uint64_t output_bytes,
                               std::uint64_t peak_memory) {
  auto& b = *batch_;
  b.run_nanoseconds += static_cast<std::uint64_t>(std::max<duration::rep>(0, wall.count()));
  b.cpu_nanoseconds += cpu_nanoseconds;
  b.output_bytes += output_bytes;
  b.peak_memory = std::max(b.peak_memory, peak_memory);
}

std::shared_ptr<outcome_batch> outcome_buffer::take() { return std::exchange(batch_, nullptr); }

} // namespace troupe
