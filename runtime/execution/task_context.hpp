#pragma once

/// What a running native task may ask and do. One per attempt, used on the attempt's own thread only.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/execution/broadcast_source.hpp>
#include <troupe/runtime/execution/gang_gate.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/scheduling/accumulated.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/storage/block_key.hpp>
#include <troupe/runtime/storage/bucket_writer.hpp>
#include <troupe/runtime/storage/record_spill.hpp>

namespace troupe {

/// One address that a task may use.
struct task_address {
  std::string address; ///< as the executor advertises it
  int ordinal = -1;    ///< position under the executor's own device mask; -1 where the resource has none
  share amount;        ///< how much of it

  auto operator<=>(const task_address&) const = default;
};

/// What a lease gives to each of its tasks.
struct task_resources {
  share cpus;
  std::vector<std::pair<std::string, std::vector<task_address>>> addresses; ///< by resource
  std::map<std::string, share> amounts; ///< of what has no addresses: counted sizes in bytes, `memory` among them

  /// Bytes of the executor's memory; 0 where the profile says nothing of it.
  std::uint64_t memory() const noexcept;
};

/// An input block could not be had. Thrown by `task_context::read_shuffle` and `read_partition`; ends the attempt
/// without blame.
class fetch_failure : public std::runtime_error {
public:
  fetch_failure(const std::string& what, stage_id of_shuffle, partition_index of_partition, attempt_number of_attempt,
                executor_id on_executor)
    : std::runtime_error(what), shuffle(of_shuffle), partition(of_partition), attempt(of_attempt),
      executor(on_executor) {}
  stage_id shuffle;
  partition_index partition;
  attempt_number attempt;
  executor_id executor;
};

/// Where what a task of another stage made can be had: as its output, or where `attempt` is `partition_inputs::kept`,
/// as a partition of a kept dataset.
struct partition_place {
  block_endpoint from;
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  cache_id cache;

  block_key key() const noexcept {
    return attempt == partition_inputs::kept ? cached_key(cache, partition) : output_key(stage, partition, attempt);
  }
};

/// Reads shuffle inputs; implemented by the executor's data side.
class shuffle_source {
public:
  virtual ~shuffle_source() = default;
  /// Calls `each` with the pages of `bucket` of every map output, in map partition order. Throws fetch_failure.
  virtual void read(const shuffle_input& input, std::uint32_t bucket,
                    const std::function<void(std::string_view)>& each) = 0;
  /// Calls `each` with the pages of a bucket of one task's output. Throws fetch_failure.
  virtual void read_partition(const partition_place& what, std::uint32_t bucket,
                              const std::function<void(std::string_view)>& each) = 0;
  /// Reads nothing more from an executor that is gone: whoever waits for it need not wait on. Any thread.
  virtual void forget(executor_id executor) = 0;
};

class task_context {
public:
  /// The context of the attempt that runs on this thread. Throws std::logic_error outside a task.
  static task_context& current();
  /// The same, null outside a task.
  static task_context* find_current() noexcept;

  /// Identity of the attempt.
  stage_id stage;
  std::string_view stage_name;
  partition_index partition = 0;
  std::uint32_t tasks = 0; ///< partitions of the stage
  attempt_number attempt = 0;
  executor_id executor;
  std::uint32_t buckets = 0;                   ///< of a shuffle map stage, else 0
  cache_id keeps;                              ///< what it makes is kept as this; 0: it goes with the stage
  storage_level level = storage_level::memory; ///< where

  /// Addresses of a resource that are this task's own; empty where it has none.
  const std::vector<task_address>& addresses(std::string_view resource) const;
  /// What it holds of a resource that has no addresses: bytes of a counted size and of `memory`, else a number. Zero
  /// where it has none.
  share amount(std::string_view resource) const noexcept;
  /// Share of the executor's cores.
  share cpus() const noexcept;

  /// True once the attempt was killed: nobody waits for its result any more. A long task looks now and then and returns
  /// early. Also safe from threads that the task starts.
  bool cancelled() const noexcept;

  /// Reads this task's bucket of input `index` (see stage_spec::dependencies, shuffle ones only), page by page in map
  /// partition order. What `each` is given is valid during the call.
  void read_shuffle(std::size_t index, const std::function<void(std::string_view)>& each);
  /// Reads page by page what the task of the same partition has made in the stage that input `index` comes from (see
  /// stage_spec::dependencies, one-to-one ones whose parent writes a bucket only).
  void read_partition(std::size_t index, const std::function<void(std::string_view)>& each);
  /// A broadcast's value (see broadcast_source::get).
  std::shared_ptr<const void> broadcast(const broadcast_reference& which, std::type_index type,
                                        const broadcast_source::decoder& decode) const;
  /// Bytes that each of the things may take that collect records in this task: what reads shuffles, and what writes a
  /// map output.
  std::uint64_t memory_per_buffer() const noexcept;
  /// How records are put aside that memory does not hold; nothing where this executor has no place for them.
  std::optional<record_spill::options> spill_options(std::size_t page_content) const;
  /// Where this map task's output goes, record by record: memory first, then files. Throws std::logic_error where the
  /// stage is no shuffle map stage.
  bucket_writer& map_output();
  /// Hands over this map task's output, one entry per bucket. Readers get each in one piece, none where it is empty.
  /// Once, at most.
  void set_map_output(const std::vector<std::string>& by_bucket);

  /// Adds to an accumulator of the session that runs the job (see accumulator.hpp). For the attempt's own thread.
  /// Throws std::length_error for a name that is empty or has more than `max_accumulator_name` bytes, and beyond
  /// `max_accumulators` names.
  void count(std::string_view accumulator, std::int64_t amount);

  /// --- of a gang: a barrier stage, whose tasks run all at the same time ---
  /// Each throws std::logic_error in any other stage. Those that wait are for the attempt's own thread alone; they
  /// throw barrier_failure when the others will not come: one has failed, has called the other of the two, or has taken
  /// longer than the stage's sync-timeout, or this attempt is cancelled. The next call belongs to the next round.

  /// Waits until every task of the stage has called it equally often.
  void barrier();
  /// The same, and hands `text` to all. Everybody's texts, by partition. Throws std::length_error for one of more than
  /// `max_gather_text` bytes.
  std::vector<std::string> all_gather(std::string_view text);
  /// Where the tasks run, by partition: `host:port` of the executor's block server, or the host alone. Valid as long as
  /// the attempt runs.
  const packed_column& gang_addresses() const;

  /// --- the executor's side ---

  /// What the lease gives and where inputs come from. Outlives the context.
  struct environment {
    executor_id executor;
    const task_resources* resources = nullptr; ///< null: none
    shuffle_source* shuffles = nullptr;
    broadcast_source* broadcasts = nullptr; ///< null: none can be read here
    const stage_install* stage = nullptr;
    const std::atomic<bool>* cancelled = nullptr; ///< null: never
    attempt_number stage_attempt = 0;             ///< that the task belongs to; `stage` may be of a later one
    gang_gate* gang = nullptr;                    ///< null: no gang can wait here
    block_directories* directories = nullptr; ///< for what a task writes beyond its memory; null: it keeps all of it
    page_compression compression;             ///< of what it writes
    std::uint64_t memory = 64ull << 20;       ///< bytes that its buffers may take
  };
  explicit task_context(const environment& env);
  ~task_context();
  task_context(const task_context&) = delete;
  task_context& operator=(const task_context&) = delete;

  /// Makes this the current context of the calling thread for the next attempt, without anything of the one before.
  /// @param batch of which it is task `position`, with its inputs; null: it has none
  void begin(partition_index partition, attempt_number attempt, const task_batch* batch = nullptr,
             std::uint32_t position = 0);
  bool has_map_output() const noexcept { return map_output_.has_value(); }
  /// What the attempt has counted, each accumulator at most once. Leaves nothing of it.
  std::vector<accumulated> take_counted() { return std::exchange(counted_, {}); }
  block_content take_map_output();

private:
  const packed_column& gang_of(std::string_view call) const;
  std::string file_name() const;
  gang_gate::texts synchronize(std::string_view call, sync_kind kind, std::string_view text);

  environment env_;
  const task_batch* batch_ = nullptr;
  std::uint32_t position_ = 0; ///< in the batch
  std::uint32_t round_ = 0;    ///< so often has the attempt waited for its gang
  std::optional<bucket_writer> map_output_;
  std::vector<accumulated> counted_;
  task_context* outer_ = nullptr; ///< current before this one
};

} // namespace troupe
