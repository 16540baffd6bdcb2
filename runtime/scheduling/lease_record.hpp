#pragma once

/// Leases as the dag scheduler sees them, and where they are kept. Owner: the executor pool. Not thread-safe.
/// Lease: granted -> draining -> released.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/scheduling/flat_index.hpp>
#include <troupe/runtime/scheduling/job_pools.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/slab.hpp>
#include <troupe/runtime/scheduling/task_set.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Position of a demand in the executor pool.
using demand_index = std::uint32_t;

/// Consecutive partitions of one stage that were handed out under one lease and have not ended.
struct task_run {
  stage_id stage;
  partition_index first = 0;
  std::uint32_t count = 0;
  attempt_number attempt = 0; ///< of each of them
};

/// What is in flight under one lease, in the order in which the executor works it off. The first run stands in the
/// record itself: there is hardly ever another one.
class run_queue {
public:
  class iterator {
  public:
    using value_type = task_run;
    using difference_type = std::ptrdiff_t;
    using reference = const task_run&;
    using pointer = const task_run*;
    using iterator_category = std::forward_iterator_tag;
    iterator() = default;
    iterator(const run_queue* queue, std::size_t at) : queue_(queue), at_(at) {}
    const task_run& operator*() const { return (*queue_)[at_]; }
    const task_run* operator->() const { return &(*queue_)[at_]; }
    iterator& operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) { return {queue_, at_++}; }
    bool operator==(const iterator&) const = default;

  private:
    const run_queue* queue_ = nullptr;
    std::size_t at_ = 0;
  };

  std::size_t size() const noexcept { return first_.count == 0 ? 0 : 1 + rest_.size() - gone_; }
  bool empty() const noexcept { return first_.count == 0; }
  const task_run& front() const noexcept { return first_; }
  task_run& back() noexcept { return rest_.size() == gone_ ? first_ : rest_.back(); }
  const task_run& operator[](std::size_t i) const noexcept { return i == 0 ? first_ : rest_[gone_ + i - 1]; }
  task_run& operator[](std::size_t i) noexcept { return i == 0 ? first_ : rest_[gone_ + i - 1]; }
  iterator begin() const noexcept { return {this, 0}; }
  iterator end() const noexcept { return {this, size()}; }

  bool starts_with(stage_id stage, partition_index partition, attempt_number attempt) const noexcept {
    return first_.count > 0 && first_.first == partition && first_.stage == stage && first_.attempt == attempt;
  }
  /// Its first task. @pre not empty
  void pop() {
    ++first_.first;
    if (--first_.count == 0) erase(0);
  }
  void push_back(const task_run& run);
  /// Behind run `i`.
  void insert_after(std::size_t i, const task_run& run);
  void erase(std::size_t i);

private:
  task_run first_; ///< without tasks where there is no run
  std::vector<task_run> rest_;
  std::size_t gone_ = 0; ///< of `rest_`, from its front
};

struct alignas(64) lease_record {
  lease_id id;
  executor_index executor = no_executor;
  demand_index demand = 0;
  run_queue runs;
  std::uint32_t in_flight = 0;    ///< tasks in `runs`
  bool draining = false;          ///< gets no more tasks; released when empty
  bool recalled = false;          ///< what has not begun was asked back; gets no more tasks before one has ended
  time_point front_since{};       ///< its first task has run since then at least
  stage_id serves;                ///< whose tasks it was last given; 0: none yet
  std::optional<pool_index> pool; ///< of that stage's job, whose slot this is
  /// Where the stage whose attempt ended last under this lease remembers it (see `stage_run::placed`).
  stage_id placed_in;
  std::uint32_t place = 0;
  allotment holding;

  /// Adds the tasks of a batch.
  void add(const task_batch& batch);
  /// Whether this attempt has not ended.
  bool holds(stage_id stage, partition_index partition, attempt_number attempt) const;
  /// Forgets one attempt. @returns false when it was not there.
  bool remove(stage_id stage, partition_index partition, attempt_number attempt) {
    // Attempts end in the order in which they were handed out unless one is killed.
    if (!runs.starts_with(stage, partition, attempt)) return remove_anywhere(stage, partition, attempt);
    runs.pop();
    --in_flight;
    return true;
  }

private:
  bool remove_anywhere(stage_id stage, partition_index partition, attempt_number attempt);
};

/// All leases, each at a place of its own that it keeps as long as it lives.
class lease_table {
public:
  std::size_t size() const noexcept { return index_.size(); }
  /// Null: it is unknown.
  lease_record* find(lease_id id) noexcept {
    const auto at = index_.find(id);
    return at == index_.none ? nullptr : &records_[at];
  }
  const lease_record* find(lease_id id) const noexcept { return const_cast<lease_table*>(this)->find(id); }
  /// @pre the id is unknown
  lease_record& add(lease_id id);
  void erase(lease_id id);

  /// It will be looked for soon; then, that it will be looked at.
  void prefetch_index(lease_id id) const noexcept { index_.prefetch(id); }
  void prefetch_record(lease_id id) const noexcept {
    if (const auto at = index_.find(id); at != index_.none) prefetch(&records_[at], 128);
  }

private:
  slab<lease_record, 256> records_;
  flat_index<lease_id> index_;
};

} // namespace troupe
