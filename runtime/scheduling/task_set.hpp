#pragma once

/// The tasks of one stage: a dense record per partition and queues of those that wait, one per lane: what has to run
/// under other conditions than the rest of the stage waits in a lane of its own.
/// Owner: the stage in the dag scheduler. Not thread-safe; no clock, no I/O.
/// Per task: pending -> running -> done; running -> pending after a failure or loss (the attempt number rises);
/// done -> pending when its output is lost. A task whose files are to be published goes running -> publishing -> done:
/// its attempt was accepted, and no other one is. A task that runs may have a second attempt beside the first, a *copy*
/// (speculation): the first that succeeds is accepted.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/located_tasks.hpp>
#include <troupe/runtime/scheduling/orders.hpp>

namespace troupe {

/// Position of an executor in the executor pool; dense, reused after the executor is gone.
using executor_index = std::uint32_t;
inline constexpr executor_index no_executor = 0xffff'ffff;

/// Conditions under which a task runs; 0: those of its stage.
using lane_number = std::uint8_t;

class task_set {
public:
  enum class status : std::uint8_t { pending, running, publishing, done };

  /// Failures of one task are counted up to here.
  static constexpr std::uint32_t max_failures = 4095;
  /// A task that has had so many attempts is blamed for every further one that does not succeed, whatever ended it:
  /// nothing may go round for ever.
  static constexpr attempt_number free_attempts = 1000;

  explicit task_set(std::uint32_t tasks);

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(records_.size()); }
  /// Tasks that could run.
  std::uint32_t pending() const noexcept {
    return static_cast<std::uint32_t>(records_.size()) - next_fresh_ + waiting_again_;
  }
  std::uint32_t pending(lane_number lane) const noexcept {
    if (lane == 0 && located_) return located_waiting_;
    const auto again = lane < requeued_.size() ? requeued_[lane].size() : 0;
    return again + (lane == 0 ? static_cast<std::uint32_t>(records_.size()) - next_fresh_ : 0);
  }
  /// Tasks that run, or whose files are being published.
  std::uint32_t running() const noexcept { return running_; }
  std::uint32_t publishing() const noexcept { return publishing_; }
  std::uint32_t done() const noexcept { return done_; }
  bool complete() const noexcept { return done_ == records_.size(); }

  /// Hands out at most `most` pending tasks of the lane to `executor`: sets first, count, partitions and attempts of
  /// `batch`. Tasks that were tried before come first. @returns how many; 0 leaves the batch as it is.
  /// None of lane 0 where tasks have locations.
  std::uint32_t take(lane_number lane, std::uint32_t most, executor_index executor, task_batch& batch);

  /// The outputs of these tasks, ascending, are there without an attempt. Costs little for each of them.
  /// @pre none was handed out, or tasks are gated; all are pending
  void adopt(std::span<const partition_index> partitions, executor_index executor);

  /// From now on a task waits only while it is admitted, and at first none is. @pre none was handed out
  void gate();
  /// What the task reads is there.
  void admit(partition_index partition);
  /// It is there no longer: unless it runs already, the task does not start.
  void withhold(partition_index partition);
  bool is_admitted(partition_index partition) const noexcept { return records_[partition].admitted; }

  /// Its tasks, those of lane 0, wait by where they would rather run from now on. @pre none was handed out
  void locate(std::unique_ptr<located_tasks> located);
  /// Where the task would rather run from now on. @returns whether no task named that before. @pre located
  bool prefer(partition_index partition, const task_location& where) { return located_->prefer(partition, where); }
  /// Null: they have no locations.
  const located_tasks* located() const noexcept { return located_.get(); }
  /// Whether a task of lane 0 may run there at this level. @pre located
  bool has_near(executor_id executor, const std::string& host, locality_level level);
  /// Like `take`, of lane 0, the nearest first. @pre located
  std::uint32_t take_near(executor_id executor, const std::string& host, locality_level level, std::uint32_t most,
                          executor_index index, task_batch& batch);

  /// An attempt and where it runs.
  struct place {
    executor_index executor = no_executor;
    attempt_number attempt = 0;
    bool operator==(const place&) const = default;
  };

  /// True when the task runs, and this attempt there is the current one, or its copy. Anything else is late or forged.
  bool is_current(partition_index partition, attempt_number attempt, executor_index executor) const noexcept {
    if (partition >= records_.size()) return false;
    const auto& r = records_[partition];
    if (r.state != status::running) return false;
    return (r.attempt == attempt && r.executor == executor) || (r.has_copy && is_copy(partition, {executor, attempt}));
  }

  /// running -> done. @returns the other attempt of the task that still runs, which nobody needs any more.
  /// @pre is_current
  std::optional<place> succeed(partition_index partition, attempt_number attempt) noexcept {
    auto& r = records_[partition];
    if (r.state != status::running || r.has_copy) return succeed_beside_copy(partition, attempt, status::done);
    r.state = status::done;
    --running_;
    ++done_;
    return std::nullopt;
  }
  /// running -> publishing: the same for an attempt whose files have to be put in place first.
  std::optional<place> accept(partition_index partition, attempt_number attempt) noexcept {
    return succeed_beside_copy(partition, attempt, status::publishing);
  }
  /// publishing -> done.
  void published(partition_index partition);
  /// The attempt has ended without success, or its files were not published: running | publishing -> pending with the
  /// next attempt number, unless another one of the task still runs. @returns failures so far, this one included where
  /// `blame`. @pre is_current, or publishing
  std::uint32_t requeue(partition_index partition, attempt_number attempt, bool blame);

  /// The task gets a copy when an executor is found for it. @pre running, without a copy so far
  void want_copy(partition_index partition);
  bool has_copy(partition_index partition) const noexcept { return records_[partition].has_copy; }
  /// Tasks of the lane whose copy has not begun.
  const std::set<partition_index>& wanted_copies(lane_number lane) const;
  /// The copy begins there: sets first, count, partitions and attempts of `batch`. @pre one of `wanted_copies`
  void start_copy(partition_index partition, executor_index executor, task_batch& batch);
  /// Copies that run.
  std::uint32_t copies() const noexcept { return copies_running_; }
  /// done -> pending with the next attempt number: the output is lost.
  void invalidate(partition_index partition);
  /// The output lies with another executor now. @pre done
  void output_moved(partition_index partition, executor_index to) noexcept { records_[partition].executor = to; }
  /// From now on the task waits in this lane whenever it is pending.
  void move_to(lane_number lane, partition_index partition);

  /// It will be looked at soon.
  void prefetch(partition_index partition) const noexcept {
    if (partition < records_.size()) __builtin_prefetch(&records_[partition]);
  }

  status status_of(partition_index partition) const noexcept { return records_[partition].state; }
  lane_number lane_of(partition_index partition) const noexcept { return records_[partition].lane; }
  attempt_number attempt_of(partition_index partition) const noexcept { return records_[partition].attempt; }
  /// Where the task runs or ran last; no_executor before its first attempt.
  executor_index executor_of(partition_index partition) const noexcept { return records_[partition].executor; }

  /// Every count equals what the records say, and each pending task waits exactly once. For tests: the first fault.
  std::optional<std::string> fault() const;

private:
  struct record {
    executor_index executor = no_executor;
    attempt_number attempt : 20 = 0;
    std::uint32_t failures : 12 = 0;
    status state = status::pending;
    lane_number lane = 0;
    bool has_copy = false; ///< `copies_` says more
    bool admitted = true;
  };
  struct copy {
    place where;
    enum class status : std::uint8_t { wanted, running, ended } state = status::wanted;
  };
  /// Partitions that wait again, first in first out.
  class queue {
  public:
    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(all_.size() - head_); }
    void push(partition_index partition) { all_.push_back(partition); }
    void erase(partition_index partition);
    /// The first `n` of them. @pre n <= size()
    std::vector<partition_index> pop(std::uint32_t n);
    auto begin() const { return all_.begin() + static_cast<std::ptrdiff_t>(head_); }
    auto end() const { return all_.end(); }

  private:
    std::vector<partition_index> all_;
    std::size_t head_ = 0; ///< those before it were handed out
  };

  std::optional<place> succeed_beside_copy(partition_index partition, attempt_number attempt, status next) noexcept;
  void wait_again(partition_index partition);
  void wait_no_more(partition_index partition);
  bool is_copy(partition_index partition, place where) const noexcept;
  std::optional<partition_index> find_near(executor_id executor, const std::string& host, locality_level level);
  void drop_wanted(partition_index partition);
  attempt_number next_attempt(partition_index partition);

public:
  /// Memory of a task that waits; so many wait at once that it counts.
  static constexpr std::size_t bytes_per_task = sizeof(record);

private:
  std::vector<record> records_;
  std::vector<queue> requeued_;            ///< by lane
  std::unique_ptr<located_tasks> located_; ///< of lane 0, instead of its queue
  std::uint32_t located_waiting_ = 0;
  std::uint32_t waiting_again_ = 0;                         ///< in all lanes
  std::map<partition_index, copy> copies_;                  ///< of tasks that have had one in their current attempt
  std::map<lane_number, std::set<partition_index>> wanted_; ///< none is empty
  std::uint32_t copies_running_ = 0;
  partition_index next_fresh_ = 0; ///< partitions from here on were never handed out
  std::uint32_t running_ = 0;      ///< those that are being published among them
  std::uint32_t publishing_ = 0;
  std::uint32_t done_ = 0;
};

} // namespace troupe
