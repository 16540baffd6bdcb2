#pragma once

/// Collects ended attempts of one lease as packed columns. Kept in range form for as long as it can be: partitions,
/// attempts and statuses are written out only once one of them needs it. Not thread-safe; its owner locks.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

class outcome_buffer {
public:
  /// @param capacity outcomes that the caller lets collect, for reservations
  explicit outcome_buffer(std::uint32_t capacity) : capacity_(capacity) {}

  /// True when outcomes of this stage attempt and lease cannot join what is buffered.
  bool is_for_another(stage_id stage, attempt_number stage_attempt, lease_id lease) const noexcept {
    return batch_ && (batch_->stage != stage || batch_->stage_attempt != stage_attempt || batch_->lease != lease);
  }
  /// Starts a batch where none is open. @param oldest when the first attempt of the batch started
  /// @pre !is_for_another(stage, stage_attempt, lease)
  void open(stage_id stage, attempt_number stage_attempt, lease_id lease, time_point oldest);

  /// Each adds one attempt. @pre open
  void add_value(partition_index partition, attempt_number attempt, std::string_view value);
  void add_block(partition_index partition, attempt_number attempt, result_kind kind, std::uint64_t bytes,
                 std::string_view buckets = {});
  /// `failure.index` is set here.
  void add_failure(partition_index partition, attempt_number attempt, task_status status, task_failure failure);

  /// What the attempt that was added last has counted, each accumulator at most once. @pre open, not empty
  void add_counted(const std::vector<accumulated>& counted);

  /// What attempts used; added to the batch that is open. @pre open
  void add_usage(duration wall, std::uint64_t cpu_nanoseconds, std::uint64_t output_bytes, std::uint64_t peak_memory);
  /// See outcome_batch::left; the first one counts.
  void add_left(std::string file) {
    if (batch_->left.empty()) batch_->left = std::move(file);
  }

  bool empty() const noexcept { return !batch_; }
  std::uint32_t count() const noexcept { return batch_ ? batch_->count : 0; }
  stage_id stage() const noexcept { return batch_ ? batch_->stage : stage_id{}; }
  /// Bytes of buffered results.
  std::size_t result_bytes() const noexcept { return batch_ ? batch_->results.data.size() : 0; }
  /// When the oldest buffered attempt started. @pre !empty()
  time_point oldest() const noexcept { return oldest_; }

  /// Hands the batch over; null where nothing is buffered.
  std::shared_ptr<outcome_batch> take();

private:
  void add(partition_index partition, attempt_number attempt);

  std::uint32_t capacity_;
  std::shared_ptr<outcome_batch> batch_;
  time_point oldest_;
};

} // namespace troupe
