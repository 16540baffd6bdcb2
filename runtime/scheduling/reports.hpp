#pragma once

/// What an executor tells the dag scheduler. Immutable once sent; shared in-process, packed on the wire.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/scheduling/accumulated.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/publication.hpp>

namespace troupe {

/// How one attempt ended. Numbers are wire format.
enum class task_status : std::uint8_t {
  succeeded = 0,
  failed = 1,       ///< user code threw, or a command exited with another code than 0: counts against the task
  fetch_failed = 2, ///< an input block could not be had: the map output is to be blamed
  killed = 3,       ///< ended on request
  lost = 4,         ///< the attempt's process died under it, or it was refused: counts only where it is to blame
  given_back = 5,   ///< it was recalled before it had begun: nothing has happened
};
std::string_view to_string(task_status status) noexcept;

/// Why an attempt did not succeed. Numbers are wire format.
enum class failure_cause : std::uint8_t {
  error = 0,        ///< what its message says
  exit_code = 1,    ///< a command ended with another one than 0
  signal = 2,       ///< a command was ended by a signal
  memory_limit = 3, ///< it took more memory than it may
  lost = 4,         ///< its process went away under it
  time_limit = 5,   ///< it ran for longer than it may
  suspected = 6,    ///< its process crashed or ran out of memory while others ran there too: nobody is blamed yet
  certain = 7,      ///< every other attempt would end so: there is none
};
std::string_view to_string(failure_cause cause) noexcept;

/// What went wrong with one attempt. Sparse: most batches have none.
struct task_failure {
  std::uint32_t index = 0; ///< position in the batch
  failure_cause cause = failure_cause::error;
  std::string message; ///< the task's own words, at most 4 KiB
  /// Of standard error at most 8 KiB: its first and last lines, for a native task the last ones of its executor's.
  std::string stderr_text;
  std::int32_t exit_code = 0; ///< of a command
  std::int32_t signal = 0;    ///< that ended a command, else 0
  stage_id shuffle;           ///< fetch failure: the map stage
  partition_index map_partition = 0;
  attempt_number map_attempt = 0;
  executor_id map_executor;

  bool operator==(const task_failure&) const = default;
};

/// Ended attempts of one stage under one lease, as packed columns.
struct outcome_batch {
  stage_id stage;
  attempt_number stage_attempt = 0;
  lease_id lease;
  std::uint32_t count = 0;
  partition_index first = 0;               ///< of the range, where `partitions` is empty
  std::vector<partition_index> partitions; ///< empty: first, first + 1, …
  std::vector<attempt_number> attempts;    ///< empty: all 0
  std::vector<task_status> statuses;       ///< empty: all succeeded
  packed_column results;                   ///< one per task, "" where it did not succeed; none: all ""
  std::vector<task_failure> failures;      ///< one per status that is not `succeeded`, in order
  std::uint64_t run_nanoseconds = 0;       ///< wall time of all attempts together
  std::uint64_t cpu_nanoseconds = 0;       ///< CPU time of all attempts together
  std::uint64_t peak_memory = 0;           ///< bytes: a command's own peak, else that of the process so far
  std::uint64_t output_bytes = 0;          ///< map output, results and published files
  /// A file in the directory of a command that was probably wanted, and goes (command_hints.hpp); "": none.
  std::string left;
  std::vector<std::string> accumulators; ///< names that `counted` refers to, each once
  std::vector<counted_amount> counted;   ///< by tasks that succeeded; index, then accumulator, rising, none twice

  partition_index partition(std::uint32_t i) const noexcept { return partitions.empty() ? first + i : partitions[i]; }
  attempt_number attempt(std::uint32_t i) const noexcept { return attempts.empty() ? 0 : attempts[i]; }
  task_status status(std::uint32_t i) const noexcept { return statuses.empty() ? task_status::succeeded : statuses[i]; }
  bool operator==(const outcome_batch&) const = default;
};

/// A lease or a batch that the executor's ledger did not accept. Its tasks did not start.
struct refusal {
  lease_id lease;
  stage_id stage;                          ///< none: the grant itself was refused
  std::vector<partition_index> partitions; ///< the tasks that did not start
  std::vector<attempt_number> attempts;
  std::string reason;
  bool build_mismatch = false; ///< a native stage of another build: never place this stage here again

  bool operator==(const refusal&) const = default;
};

/// An attempt of a native task that was asked to end and has not ended within the kill grace. Said once of each.
struct overdue_attempt {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  lease_id lease;
  job_id job;
  std::string stage_name;
  std::uint64_t waited_nanoseconds = 0; ///< since it was asked to end
  bool timed_out = false;               ///< it was asked because of its stage's time-out for tasks

  bool operator==(const overdue_attempt&) const = default;
};

/// How the tasks of a gang wait for each other. Numbers are wire format.
enum class sync_kind : std::uint8_t {
  barrier = 0,
  all_gather = 1, ///< and hand each other a text
};

/// A task of a gang waits for the others.
struct barrier_arrival {
  stage_id stage;
  attempt_number stage_attempt = 0;
  partition_index partition = 0;
  attempt_number attempt = 0;
  std::uint32_t round = 0; ///< from 0: so often has this attempt waited before
  sync_kind kind = sync_kind::barrier;
  std::string text; ///< of `all_gather`, at most `max_gather_text` bytes

  bool operator==(const barrier_arrival&) const = default;
};
/// Bytes that one task may hand the others at a time; `max_gather_size`: all together, since it travels as one message.
inline constexpr std::size_t max_gather_text = 1 << 20;
inline constexpr std::size_t max_gather_size = 16 << 20;

/// Everything that an executor has to say at one moment.
struct executor_report {
  executor_id executor;
  incarnation epoch = 0;
  std::uint64_t orders_seen = 0; ///< sequence of the last orders applied
  std::vector<refusal> refusals;
  std::vector<std::shared_ptr<const outcome_batch>> outcomes;
  std::vector<overdue_attempt> overdue;
  std::vector<barrier_arrival> arrivals;
  std::vector<block_takeover> taken_over; ///< what it keeps from now on
  std::vector<kept_partition> evicted;    ///< which had to make room for others, since the last report
  std::vector<publication> publications;  ///< how it went with attempts that it had the right to publish

  bool operator==(const executor_report& other) const;
};

/// Sign of life with load. Late and repeated ones are harmless.
struct executor_heartbeat {
  executor_id executor;
  incarnation epoch = 0;
  std::uint64_t number = 0; ///< from 1
  std::uint64_t orders_seen = 0;
  std::uint32_t running = 0;      ///< attempts
  std::uint32_t queued = 0;       ///< attempts
  std::uint64_t block_bytes = 0;  ///< in its block store
  std::uint64_t reports_sent = 0; ///< before this heartbeat

  auto operator<=>(const executor_heartbeat&) const = default;
};

/// What an executor is, as it says at its hello. The driver believes none of it before the secret is proved.
struct executor_info {
  executor_id executor; ///< as assigned; 0 in the registration
  incarnation epoch = 0;
  request_id request; ///< the allocator's request that started it; 0: started by hand
  /// The shape that the allocator asked for it as; 0: it was started for no particular one (see
  /// `executor_order::identity`). Taken on trust from who has proved the secret and names a request: like its capacity
  /// it only decides which tasks come here, and the ledger checks each of them.
  shape_id shape;
  std::string host; ///< name of the machine, for people and locality
  std::uint32_t pid = 0;
  resource_profile profile;   ///< what it was started for
  executor_capacity capacity; ///< what it owns, with addresses
  std::int64_t slots = 0;     ///< that it derives for its own profile
  bool native = false;        ///< runs native stages (of build `build_id`), not only commands
  bool in_process = false;    ///< shares the driver's process
  std::string build_id;
  block_endpoint blocks;
  std::string log_file; ///< path on its host
  /// It runs no task, but keeps blocks of executors of its machine that are gone, and serves them.
  bool shuffle_service = false;

  bool operator==(const executor_info&) const = default;
};

/// Where this incarnation of an executor serves its blocks.
block_endpoint endpoint_of(const executor_info& info);

/// An attempt that an executor already runs when it says hello to a restarted driver.
struct running_attempt {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  lease_id lease;

  auto operator<=>(const running_attempt&) const = default;
};

} // namespace troupe
