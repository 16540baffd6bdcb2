#pragma once

/// The thread of one open lease: a queue of batches, the task that runs, and the outcomes that have not gone out yet.
/// One mutex guards all of it and is taken once a task; without contention that costs less than the task's clock
/// reading.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/command_runner.hpp>
#include <troupe/runtime/execution/installed_stage.hpp>
#include <troupe/runtime/execution/native_task.hpp>
#include <troupe/runtime/execution/outcome_buffer.hpp>
#include <troupe/runtime/execution/process_memory.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

class lease_thread {
public:
  /// What all lease threads of a runner share; outlives them.
  struct shared {
    executor_id executor;
    shuffle_source* shuffles = nullptr;
    broadcast_source* broadcasts = nullptr;
    result_policy results;
    command_settings commands;
    gang_gate* gang = nullptr; ///< set before the first thread starts
    std::uint32_t flush_tasks = 256;
    std::function<void(std::shared_ptr<const outcome_batch>)> on_outcomes;
    std::function<void(lease_thread&)> on_parked; ///< the closed lease has drained; the thread may serve another
    std::function<void()> on_ended;               ///< the thread has run its last task after `stop`
    /// No task begins from this time on, see `go_on`. Null: there is no such time.
    const std::atomic<time_point>* may_begin_until = nullptr;
    own_peak_memory peak_memory;
  };
  /// What one lease gives to its tasks.
  struct lease_terms {
    lease_id lease;
    task_resources resources;
    std::uint64_t memory = 0; ///< bytes that the buffers of one task may take
  };

  explicit lease_thread(shared& common);
  /// @pre ended, or never returns: it joins
  ~lease_thread();
  lease_thread(const lease_thread&) = delete;
  lease_thread& operator=(const lease_thread&) = delete;

  /// Serves a lease from now on. @pre new or parked
  void open(lease_terms terms);
  /// No batch follows. @returns true when the thread is idle and so parked at once; else `on_parked` says when.
  bool close();
  /// Queues a batch; wakes the thread only where it sleeps.
  void push(std::shared_ptr<const task_batch> batch, std::shared_ptr<installed_stage> stage);
  /// Ends an attempt if it is queued or runs here. A queued one is booked as killed at once; `flush` sends it.
  void kill(const kill_task& which);
  /// Books everything that is queued as given back; `flush` sends it.
  void give_back();
  /// Books what is queued of a stage that has been marked as removed as killed, and asks what runs of it to end.
  void forget(const installed_stage& stage);
  /// To be called when `shared::may_begin_until` was in the past and lies in the future now.
  void go_on();
  /// Sends what is buffered, on the calling thread.
  void flush();
  /// Drops what is queued and asks what runs to end. The thread ends when it has; nothing is reported any more. Once.
  void stop();

  /// Attempts that run (0 or 1) and that are queued.
  std::pair<std::uint32_t, std::uint32_t> load() const;
  /// Appends the running attempt.
  void append_running(std::vector<running_attempt>& to) const;
  /// Asks the running attempt to end if it is native and the first look that found it running is longer ago than its
  /// stage allows. Appends it if it was asked to end, for whatever reason, and the first look that found it so is
  /// `grace` ago or more. Once for each.
  void append_overdue(time_point now, duration grace, std::vector<overdue_attempt>& to);
  /// Whether a native task runs here: what a thread that was told to stop may do for ever.
  bool runs_native() const;

private:
  struct work {
    std::shared_ptr<const task_batch> batch;
    std::shared_ptr<installed_stage> stage;
  };
  using guard = std::unique_lock<std::mutex>;

  using full_batches = std::vector<std::shared_ptr<outcome_batch>>;

  /// Books a task that has not begun. `full` receives outcomes that have to go out to make room. @pre locked
  void book_unbegun(const task_batch& batch, std::uint32_t i, task_status status, full_batches& full);
  /// The same for all from `from` on that have not been booked before, of a batch that is left. @pre locked
  void book_rest(const work& in, std::uint32_t from, task_status status, full_batches& full);
  bool kill_queued(const work& in, std::uint32_t from, const kill_task& which, full_batches& full);
  /// Asks the running attempt to end. @pre locked
  void cancel_running();
  void main_loop();
  bool may_begin(time_point now) const noexcept {
    return !common_.may_begin_until || now < common_.may_begin_until->load(std::memory_order_relaxed);
  }
  void sleep(guard& lock);
  void run_next_batch(guard& lock);
  attempt_end run_task(const stage_version& version, task_context& context, const task_batch& batch, std::uint32_t i);
  attempt_end run_command(const stage_version& version, const task_batch& batch, std::uint32_t i,
                          std::string_view argument);
  struct run_of {
    time_point begin;
    time_point end;
    bool in_this_process; ///< a native task, whose use of memory and processor is that of this process
  };
  /// Books the end of an attempt. @pre locked
  void book(guard& lock, const task_batch& batch, std::uint32_t i, attempt_end end, const run_of& run);
  void send_buffered(guard& lock);
  std::uint64_t cpu_since_last_asked();

  shared& common_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  lease_terms terms_; ///< changes only while nothing is queued or runs
  std::deque<work> queue_;
  work current_;                                                 ///< the batch that is being run; null where none
  std::uint32_t next_ = 0;                                       ///< first task of it that has not started
  bool running_ = false;                                         ///< task next_ - 1 of it runs
  std::uint64_t queued_ = 0;                                     ///< tasks that have not started and will
  std::set<std::pair<const task_batch*, std::uint32_t>> booked_; ///< queued tasks that will not: their end is booked
  outcome_buffer buffer_;
  bool buffered_ran_here_ = false; ///< what is buffered was native
  bool sleeping_ = false;
  bool closing_ = false;
  bool stopping_ = false;
  std::atomic<bool> cancelled_ = false;    ///< the running attempt is to end; set and cleared under the mutex
  std::optional<time_point> seen_;         ///< the first look at the running attempt
  bool timed_out_ = false;                 ///< that is why it is to end
  std::optional<time_point> asked_;        ///< the first look at it that found this
  bool overdue_told_ = false;              ///< `append_overdue` has given it
  std::optional<stop_event> stop_command_; ///< made for the first command; wakes the thread out of its wait for one
  std::uint64_t cpu_mark_ = 0;             ///< the thread's own
  std::thread thread_;                     ///< last: starts when all else is there
};

} // namespace troupe
