#pragma once

/// What the dag scheduler tells an executor. One `executor_orders` value carries everything that one event caused for
/// one executor, applied from top to bottom. Immutable once sent; shared in-process, packed on the wire.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/ledger.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/scheduling/publication.hpp>
#include <troupe/runtime/storage_level.hpp>

namespace troupe {

/// Leave to run tasks of one profile on the named addresses, one after another (DESIGN section 3).
struct lease_grant {
  lease_id lease;
  /// What the executor must satisfy; the task half is what `holding` must match. Complete, or the task half alone where
  /// the tasks run on any executor.
  std::shared_ptr<const resource_profile> profile;
  allotment holding;

  bool operator==(const lease_grant& other) const {
    return lease == other.lease && holding == other.holding &&
           (profile && other.profile ? *profile == *other.profile : profile == other.profile);
  }
};

/// Where a block server listens; an in-process executor has no host and is found by its id.
struct block_endpoint {
  executor_id executor;
  incarnation epoch = 0;
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(const block_endpoint&) const = default;
};

/// Map outputs of one parent stage as known when the stage was installed.
struct shuffle_input {
  stage_id shuffle; ///< the map stage that made them
  std::vector<block_endpoint> endpoints;
  std::vector<std::uint32_t> endpoint_of_map; ///< per map partition an index in `endpoints`
  std::vector<attempt_number> attempt_of_map; ///< per map partition the accepted attempt
  /// Per map partition which of its buckets are empty (see empty_buckets); null: of none anything is known.
  std::shared_ptr<const packed_column> empty_of_map;

  bool operator==(const shuffle_input& other) const {
    return shuffle == other.shuffle && endpoints == other.endpoints && endpoint_of_map == other.endpoint_of_map &&
           attempt_of_map == other.attempt_of_map &&
           (empty_of_map && other.empty_of_map ? *empty_of_map == *other.empty_of_map
                                               : empty_of_map == other.empty_of_map);
  }
};

/// What all tasks of a stage share; sent once per executor and stage attempt, before its first task.
struct stage_install {
  stage_id stage;
  attempt_number stage_attempt = 0; ///< a larger one replaces inputs and keeps the program
  job_id job;
  std::string name;
  std::uint32_t tasks = 0;
  std::uint32_t buckets = 0; ///< > 0: map outputs stay on the executor
  std::shared_ptr<const std::variant<native_program, command_program>> program;
  std::vector<shuffle_input> inputs; ///< one per shuffle dependency, in order
  duration task_timeout = never;     ///< of one attempt
  /// Of a gang: `host:port` of the block server of each task's executor, by partition; the host alone where it has
  /// none. Null: the stage is none.
  std::shared_ptr<const packed_column> gang;
  bool hands_on = false; ///< of commands: those of another stage read their files, each those of its own partition
  cache_id keeps;        ///< what its tasks make is kept as this beyond its end; 0: it goes with the stage
  storage_level level = storage_level::memory; ///< where

  bool operator==(const stage_install& other) const {
    return stage == other.stage && stage_attempt == other.stage_attempt && job == other.job && name == other.name &&
           tasks == other.tasks && buckets == other.buckets && inputs == other.inputs && hands_on == other.hands_on &&
           keeps == other.keeps && level == other.level && task_timeout == other.task_timeout &&
           (gang && other.gang ? *gang == *other.gang : gang == other.gang) &&
           (program && other.program ? *program == *other.program : program == other.program);
  }
};

/// Where the partitions lie that the tasks of a batch read one to one from a parent stage.
struct partition_inputs {
  static constexpr std::uint32_t nowhere = 0xffff'ffff;
  static constexpr attempt_number kept = 0xffff'ffff;

  stage_id stage; ///< that made them
  cache_id cache; ///< where some are kept from former jobs: as what
  std::vector<block_endpoint> endpoints;
  /// By position in the batch, an index in `endpoints`; `nowhere`: no executor keeps it, it lies in files under their
  /// own names.
  std::vector<std::uint32_t> endpoint_of_task;
  std::vector<attempt_number> attempt_of_task; ///< by position in the batch, the accepted attempt, or `kept`

  bool operator==(const partition_inputs&) const = default;
};

/// Tasks of one stage for one lease, as packed columns.
struct task_batch {
  stage_id stage;
  attempt_number stage_attempt = 0;
  lease_id lease;
  partition_index first = 0;                      ///< of the range, where `partitions` is empty
  std::uint32_t count = 0;                        ///< number of tasks
  std::vector<partition_index> partitions;        ///< empty: first, first + 1, …
  std::vector<attempt_number> attempts;           ///< empty: all 0
  std::shared_ptr<const packed_column> arguments; ///< null: none
  std::uint32_t argument_offset = 0; ///< entry of the batch's first task, or of partition 0 where by_partition is set
  bool by_partition = false;         ///< entry = partition - argument_offset (in-process: the stage's own column)
  std::vector<partition_inputs> inputs; ///< one per one-to-one dependency of which executors keep something, in order

  partition_index partition(std::uint32_t i) const noexcept { return partitions.empty() ? first + i : partitions[i]; }
  attempt_number attempt(std::uint32_t i) const noexcept { return attempts.empty() ? 0 : attempts[i]; }
  std::string_view argument(std::uint32_t i) const noexcept {
    if (!arguments) return {};
    return (*arguments)[by_partition ? partition(i) - argument_offset : argument_offset + i];
  }
  /// Equal by meaning: same tasks, attempts and arguments, however they are laid out.
  bool operator==(const task_batch& other) const;
};

/// End one attempt; an unknown or ended one is ignored.
struct kill_task {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;

  auto operator<=>(const kill_task&) const = default;
};

/// Tasks of a gang that wait for the others wait no longer.
struct barrier_release {
  stage_id stage;
  attempt_number stage_attempt = 0;
  std::uint32_t round = 0;                    ///< that they wait in
  std::vector<partition_index> partitions;    ///< whom this is for
  std::shared_ptr<const packed_column> texts; ///< what all handed over, by partition; null where nobody did
  std::string failure;                        ///< why the others will not come; "": all have

  bool operator==(const barrier_release& other) const {
    return stage == other.stage && stage_attempt == other.stage_attempt && round == other.round &&
           partitions == other.partitions && failure == other.failure &&
           (texts && other.texts ? *texts == *other.texts : texts == other.texts);
  }
};

/// A block that an executor holds.
struct held_block {
  stage_id stage;
  partition_index partition = 0;
  attempt_number attempt = 0;
  std::uint64_t bytes = 0;

  auto operator<=>(const held_block&) const = default;
};

/// Blocks of an executor that is to go, for one that keeps them; last of all the sockets at which it serves them, so
/// that readers find them where they were.
struct block_takeover {
  block_endpoint from;
  std::vector<held_block> blocks;
  bool sockets = false; ///< no blocks, but these

  bool operator==(const block_takeover&) const = default;
};

/// A partition of a kept dataset.
struct kept_partition {
  cache_id cache;
  partition_index partition = 0;

  auto operator<=>(const kept_partition&) const = default;
};

/// Everything for one executor that one event caused. Applied in the order of the fields.
struct executor_orders {
  incarnation epoch = 0;                ///< of the addressed executor; another one ignores the orders
  std::uint64_t sequence = 0;           ///< from 1, per incarnation; a gap or repeat is a fault of the channel
  std::vector<lease_id> revoked;        ///< leases to give back; they have no task left
  std::vector<stage_id> removed_stages; ///< forget the stage, end what runs of it, drop its outputs and results
  std::vector<stage_id>
      late_stages; ///< those of them that have run into their time-out: what their commands printed stays
  std::vector<kill_task> kills;
  std::vector<lease_id> recalled; ///< leases whose attempts that have not begun come back as `given_back`
  std::vector<executor_id> gone;  ///< executors that are lost: whoever reads from them waits no longer
  std::vector<lease_grant> grants;
  std::vector<stage_install> installs;
  std::vector<task_batch> batches;
  std::vector<barrier_release> barriers;
  std::vector<publication_right> rights; ///< attempts whose staged files it is to publish, since the driver cannot
  std::vector<block_takeover> takeovers; ///< for who keeps blocks of others
  std::vector<broadcast_id> withdrawn;   ///< broadcasts to drop
  std::vector<held_block> consumed;      ///< outputs that nobody will read any more
  std::vector<cache_id> unkept;          ///< kept datasets to drop
  std::vector<kept_partition> surplus;   ///< of kept datasets, to drop: somebody else has them
  std::vector<job_id> forgotten_jobs;    ///< nobody can ask for them any more: drop what their commands have left
  bool stop = false;                     ///< finish nothing, say goodbye, end

  bool operator==(const executor_orders&) const = default;
  bool empty() const noexcept {
    return revoked.empty() && removed_stages.empty() && kills.empty() && recalled.empty() && gone.empty() &&
           grants.empty() && installs.empty() && batches.empty() && barriers.empty() && rights.empty() &&
           takeovers.empty() && withdrawn.empty() && consumed.empty() && unkept.empty() && surplus.empty() &&
           forgotten_jobs.empty() && !stop;
  }
};

} // namespace troupe
