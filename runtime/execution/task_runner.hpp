#pragma once

/// Runs attempts on the executor's own threads: one thread per open lease, tasks one after another. Native tasks run on
/// the thread; a command runs as a child that the thread waits for. Methods are called by the executor actor and never
/// wait for a task; `on_outcomes` and `on_arrival` are called on lease threads.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <troupe/runtime/execution/attempt_group.hpp>
#include <troupe/runtime/execution/command_terms.hpp>
#include <troupe/runtime/execution/task_context.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/memory_split.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/publication.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

class task_runner {
public:
  struct options {
    executor_id executor;
    std::string session;                           ///< that it belongs to; may be part of a file's name
    block_store* blocks = nullptr;                 ///< map outputs and large results; outlives the runner
    shuffle_source* shuffles = nullptr;            ///< outlives the runner
    broadcast_source* broadcasts = nullptr;        ///< outlives the runner; null: tasks can have none
    std::vector<std::string> attempts_directories; ///< parents of the commands' own directories; absolute, exist
    std::string staging_journal;                   ///< see staging_roots; "": none
    std::string stderr_file; ///< of this process, for the tail in failures; "" where shared with a host
    std::map<std::string, std::vector<std::string>>
        ordinals;                                   ///< per resource the device order under the executor's mask
    std::uint32_t flush_tasks = 256;                ///< outcomes that go out as one batch
    std::uint64_t max_inline_result = 1 << 20;      ///< bytes; larger results become blocks
    resource_profile profile;                       ///< of the executor
    std::int64_t cores = 1;                         ///< that it has
    memory_split memory;                            ///< how much of its memory a task's buffers take
    page_compression compression;                   ///< of map outputs and large results
    command_limits limits;                          ///< what commands may take
    bool hand_over = false;                         ///< see command_settings
    duration kill_grace = std::chrono::seconds{10}; ///< that an attempt has to end when it was asked to
    command_terms terms;
    std::function<void(std::shared_ptr<const outcome_batch>)> on_outcomes;
    std::function<void(barrier_arrival)> on_arrival; ///< a task waits for the others of its gang
    // Called on the publisher's thread.
    std::function<void(publications)> on_publications;   ///< the ends of what `publish` was called for
    std::function<void(bool clean)> on_publishing_ended; ///< see `output_publisher::options::on_ended`
  };
  explicit task_runner(options opts);
  /// Ends what runs: see shutdown. Waits for as long as a native task runs.
  ~task_runner();

  /// Starts the lease's thread (or takes a parked one). @pre the lease is not open
  void open_lease(const lease_grant& grant);
  /// The lease gets no more batches; its thread parks when its queue is empty.
  void close_lease(lease_id lease);
  /// Makes a stage known, or replaces its inputs.
  void install(const stage_install& stage);
  /// Forgets a stage; what is queued of it is dropped, what runs of it is killed (a command's whole tree) and not
  /// reported. Where it `is_late`, what its commands have printed is kept as that of failed ones.
  void remove(stage_id stage, bool is_late = false);
  /// Queues a batch on its lease's thread. Throws std::logic_error where the lease is not open, the stage is not
  /// installed or the batch's columns are not of one length. Columns of arguments are checked task by task.
  void run(std::shared_ptr<const task_batch> batch);
  /// Ends a queued or running attempt; it is reported as killed. A command gets SIGTERM and after `kill_grace` SIGKILL.
  /// A native task that runs only sees `task_context::cancelled()`; its outcome, whatever it was, becomes killed when
  /// it ends, and `overdue` tells of it if it does not. A queued attempt's outcome is buffered: call `flush` after a
  /// round of kills.
  void kill(const kill_task& which);
  /// Lets tasks of a gang go on that wait for each other; it concerns nobody else.
  void release(const barrier_release& what);
  /// Takes every attempt of the lease that has not begun out of its queue; they are reported as given back. Those that
  /// run, run on. A lease that is not open is ignored. Call `flush` afterwards.
  void give_back(lease_id lease);
  /// Removes what commands of the job have left in their directories. Returns before that is done.
  void drop_attempts(job_id job);
  /// Puts the staged outputs of an attempt of this executor in place. A stage that is not installed is ignored.
  void publish(publication_right what);
  /// Removes what waits of this executor's attempts: nobody is there who would publish it. After `shutdown`.
  void discard_outputs();
  /// Begins no task and no publication from `until` on, by the steady clock; at first it may for ever. What runs, runs
  /// on. A later time takes effect at once, also where an earlier one has passed.
  void may_begin_until(time_point until);
  /// Publishes nothing more; then calls `on_publishing_ended`, once. May be called again.
  void end_publishing();
  /// Sends outcomes that short tasks have left in the buffers of lease threads; called now and then by the actor.
  void flush();

  struct load {
    std::uint32_t running = 0;
    std::uint32_t queued = 0;
  };
  load current_load() const;
  std::vector<running_attempt> running() const;
  /// Native attempts that were asked to end and still run after `kill_grace`, each once. To be called now and then: the
  /// time of each counts from the first call that finds it asked. `now` is any clock that does not go back.
  std::vector<overdue_attempt> overdue(time_point now);

  /// Drops what is queued and reports nothing more, ends commands (TERM, then KILL after `kill_grace`), asks native
  /// tasks to end (`task_context::cancelled`) and waits for lease threads: at most `grace`, and at most `kill_grace`
  /// longer for as long as a command runs. False when a thread still runs then; the caller then ends the process.
  bool shutdown(std::chrono::nanoseconds grace);
  /// Waits until all lease threads have ended, however long a native task takes. @pre `shutdown` was called
  void await_end();

private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
