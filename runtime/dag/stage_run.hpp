#pragma once

/// One stage and one job in execution. Owner: the dag scheduler. Plain data with the few operations that keep it
/// consistent; not thread-safe.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/runtime/dag/accumulator_book.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/resolved_profile.hpp>
#include <troupe/runtime/scheduling/barrier_coordinator.hpp>
#include <troupe/runtime/scheduling/duration_histogram.hpp>
#include <troupe/runtime/scheduling/executor_pool.hpp>
#include <troupe/runtime/scheduling/failure_notes.hpp>
#include <troupe/runtime/scheduling/flat_index.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/scheduling/task_set.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Which attempts of a stage were accepted where; compact, since it is retained after the job's end.
class stage_placements {
public:
  struct place {
    executor_id executor;
    std::string host;
    allotment holding;
  };
  explicit stage_placements(stage_id stage, std::vector<place> places) : stage_(stage), places_(std::move(places)) {}

  /// @pre ascending partitions; `position` is that of a place
  void add(partition_index partition, attempt_number attempt, std::uint32_t position);
  /// Appends one entry per run of neighbours, ascending partitions.
  void append_to(std::vector<task_placement>& out) const;

private:
  struct run {
    partition_index first = 0;
    std::uint32_t count = 0;
    attempt_number attempt = 0;
    std::uint32_t position = 0;
  };
  stage_id stage_;
  std::vector<place> places_;
  std::vector<run> runs_;
};

class stage_run;

/// Tasks of a stage that run under the same conditions, and how long they have waited for room. Lane 0 has all of them
/// at first; the others come into being when a task needs them: it got more memory for a retry, or runs alone.
struct task_lane {
  stage_run* stage = nullptr;
  lane_number number = 0;
  /// What its tasks may run as: of its profile, then of that one's alternatives, each once, in order of preference.
  std::vector<demand_index> demands;
  std::uint32_t opened = 1;  ///< for so many of them executors are asked for; the rest is taken where it is free
  time_point served{};       ///< when it last got room for a task, or began to wait for it
  bool takes_scarce = false; ///< it has waited long enough to take executors that others need more

  /// Tasks that wait, and tasks that run for which a copy is wanted.
  std::uint32_t pending() const noexcept;
  /// Position of a demand among them; their number where it is none of them.
  std::uint32_t preference_of(demand_index d) const noexcept;
};

/// The lane of tasks that have got more memory so often; `alone`: nothing else runs on their executor meanwhile.
constexpr lane_number lane_of(std::uint32_t escalations, bool alone) noexcept {
  return static_cast<lane_number>(2 * escalations + (alone ? 1 : 0));
}
constexpr std::uint32_t escalations_of(lane_number lane) noexcept { return lane / 2u; }
constexpr bool is_alone(lane_number lane) noexcept { return lane % 2 != 0; }

/// What a profile and its alternatives become, step by step; each with what its alternatives become. A choice that has
/// reached its ceiling stays what it is.
std::vector<resolved_profile> escalations_of(const resolved_profile& profile);

class stage_run {
public:
  /// @pre `demands` not empty
  stage_run(stage_id id, job_id job, std::uint32_t index, const stage_spec& spec, std::vector<demand_index> demands);

  stage_id id;
  job_id job;
  std::uint32_t index;                    ///< in job_spec::stages
  const stage_spec* spec;                 ///< owned by the job
  std::map<lane_number, task_lane> lanes; ///< lane 0 always
  /// Under which tasks are tried again that ran out of memory, one after the other.
  std::vector<resolved_profile> escalations;
  pool_index pool = 0;                     ///< of its job
  std::uint32_t slots = 0;                 ///< leases that were last given tasks of it
  std::set<std::string, std::less<>> asks; ///< custom resources that its tasks may take
  bool is_counted_asking = false;          ///< these are counted among those of unfinished stages
  std::shared_ptr<const std::variant<native_program, command_program>> program;
  std::uint32_t most_in_batch; ///< so that the arguments of a batch stay below a size that travels well

  stage_state state = stage_state::waiting;
  attempt_number attempt = 0;
  bool was_submitted = false;
  std::uint32_t fetch_failures = 0; ///< stage attempts in a row that a missing map output ended
  bool fetch_failed = false;        ///< this stage attempt is among them
  task_set tasks;
  std::vector<std::string> bucket_sizes_of_map; ///< by partition, encoded; of a shuffle map stage
  std::vector<shuffle_input> inputs;            ///< as of `attempt`
  std::vector<std::uint32_t> children;          ///< indices of stages that depend on this one
  std::uint32_t order;                          ///< `index`, or what takes its place where stages want the same slot
  std::uint32_t line;                           ///< the first of those that flow into each other, this one among them
  std::vector<std::uint32_t> feeds;             ///< of `children` those whose tasks start one by one
  std::vector<std::uint32_t> fed_by;            ///< the same from the other side
  std::vector<bool> consumed;                   ///< outputs that were read by all and dropped; of one that feeds others
  std::uint32_t consumed_count = 0;
  /// Of commands whose files commands of another stage read: sizes of what executors keep of them, by partition.
  std::map<partition_index, std::uint64_t> handed;
  /// Of the same: sizes of what lies under names of its own alone and was not read yet.
  std::map<partition_index, std::uint64_t> in_place;
  bool hands_on = false;              ///< it is such a stage
  std::vector<bool> unread;           ///< outputs that a task of those which it feeds has to read yet
  std::uint64_t unconsumed_bytes = 0; ///< of those
  std::uint64_t made_bytes = 0;       ///< of all that were ever counted among those, and how many
  std::uint64_t made_count = 0;
  bool paused = false; ///< nothing more is made until some of that is read
  /// How often in a row a task has missed what it reads one to one.
  std::map<partition_index, std::uint32_t> missed;
  cache_id keeps;                              ///< what it makes is kept as this; 0: it goes with the job
  std::vector<bool> from_cache;                ///< of one that keeps: outputs that are read as kept ones
  std::vector<bool> stays;                     ///< the same: outputs that are kept beyond the job
  bool reads_kept = false;                     ///< its tasks would rather run where what they read is kept
  bool keeps_values = false;                   ///< its results go to the submitter
  std::shared_ptr<const packed_column> gang;   ///< addresses of its tasks, see `stage_install`; null before they start
  std::unique_ptr<barrier_coordinator> rounds; ///< of the gang that runs; else null
  std::uint32_t gang_failures = 0;             ///< attempts of the gang in a row that were its own fault

  /// How long attempts ran that succeeded. Null: nobody asks.
  std::unique_ptr<duration_histogram> durations;
  /// Mean wall time of one attempt so far; 0 before the first outcome.
  std::uint64_t mean_nanoseconds = 0;
  /// Since when slots have stayed free because no task that waits would rather run there; nothing: none does.
  std::optional<time_point> declined_since;
  locality_level nearest = locality_level::executor; ///< of those levels for which an executor is there
  std::uint32_t failures = 0;
  std::uint64_t run_nanoseconds = 0;
  std::uint64_t cpu_nanoseconds = 0;
  std::uint64_t peak_memory = 0;
  std::uint64_t output_bytes = 0;
  std::string left; ///< see outcome_batch
  time_point started{};
  time_point ended{};
  time_point attempt_started{};
  std::uint32_t attempt_tasks = 0; ///< that waited when the attempt began
  bool attempt_told = false;       ///< its end is in the history
  std::uint64_t attempt_nanoseconds(time_point now) const noexcept {
    return static_cast<std::uint64_t>((now - attempt_started).count());
  }

  /// What its tasks may run as, unless something else was decided for them.
  const std::vector<demand_index>& demands() const noexcept { return lanes.begin()->second.demands; }
  /// The one of its profile itself.
  demand_index demand() const noexcept { return demands().front(); }

  /// It has nothing to do before somebody feeds it.
  bool is_starved() const noexcept { return !fed_by.empty() && tasks.pending() + tasks.running() == 0; }
  bool is_fed_by(std::uint32_t parent) const noexcept { return std::ranges::find(fed_by, parent) != fed_by.end(); }
  /// The task's output was there and is no longer.
  bool has_consumed(partition_index partition) const noexcept { return !consumed.empty() && consumed[partition]; }

  /// An outcome of it will be looked at soon.
  void prefetch(partition_index partition) const noexcept {
    tasks.prefetch(partition);
    if (partition < placed_.size()) __builtin_prefetch(&placed_[partition]);
  }
  /// Adds the measurements of a batch with at least one attempt that counts.
  void measure(const outcome_batch& batch);

  /// Remembers that the accepted attempt of `partition` ran under `lease`.
  void placed(partition_index partition, lease_record& lease, const executor_info& info);
  /// Accepted attempts.
  stage_placements placements() const;
  /// Executors whose attempts ended here, well or not.
  std::uint32_t executors_used() const;
  void failed_on(executor_id executor) { failed_on_.insert(executor); }

  /// Bytes of the values that came with outcomes.
  std::uint64_t value_bytes() const noexcept { return value_bytes_; }
  /// Remembers an accepted value. @pre keeps_values
  void keep(partition_index partition, const std::shared_ptr<const outcome_batch>& batch, std::uint32_t entry);
  /// Remembers an accepted value that stayed where it was made.
  void keep(result_location location) { elsewhere_[location.partition] = std::move(location); }
  void drop_value(partition_index partition) { elsewhere_.erase(partition); }
  /// To another executor, where it did not travel itself.
  void value_moved(partition_index partition, const block_endpoint& to) {
    if (const auto at = elsewhere_.find(partition); at != elsewhere_.end()) at->second.endpoint = to;
  }
  /// Forgets all of them.
  void drop_values();
  /// All values in partition order. @pre tasks.complete()
  std::shared_ptr<const job_results> take_results();
  bool has_values_elsewhere() const noexcept { return !elsewhere_.empty(); }

private:
  struct value_ref {
    std::uint32_t batch = 0;
    std::uint32_t entry = 0;
  };

public:
  /// Memory that the stage itself needs for a task besides its record.
  static constexpr std::size_t bytes_per_task = sizeof(std::uint32_t) + sizeof(value_ref);

private:
  std::vector<stage_placements::place> places_; ///< one per lease that ran a task of this stage
  std::set<executor_id> failed_on_;             ///< executors on which an attempt failed
  flat_index<lease_id> place_of_lease_;
  std::uint64_t value_bytes_ = 0;
  std::vector<std::uint32_t> placed_; ///< per partition, index in places_ + 1
  std::vector<std::shared_ptr<const outcome_batch>> batches_;
  std::vector<value_ref> values_;
  std::map<partition_index, result_location> elsewhere_;
};

/// Executors, each added as often as one likes: a list, since a tree of ten thousand costs more than all else that is
/// done when one of them hears of a stage.
class touched_executors {
public:
  void add(executor_id executor) {
    all_.push_back(executor);
    if (all_.size() > 2 * different_ + 64) tidy();
  }
  /// Each once, ascending.
  const std::vector<executor_id>& all() {
    tidy();
    return all_;
  }

private:
  void tidy() {
    if (all_.size() == different_) return; // none was added since
    std::ranges::sort(all_);
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
    different_ = all_.size();
  }
  std::vector<executor_id> all_;
  std::size_t different_ = 0; ///< when it was tidied last
};

struct job_run {
  job_id id;
  std::shared_ptr<const job_spec> spec;
  job_state state = job_state::accepted;
  error failure;
  std::vector<stage_run> stages;
  touched_executors touched; ///< that know a stage of it
  bool unsettled = false;    ///< a stage of it may start that could not before
  /// Outputs of indeterminate stages that are lost although somebody may have read them: index of the stage, partition.
  std::set<std::pair<std::uint32_t, partition_index>> lost_versions;
  std::set<shape_id> unanswered;        ///< whether these can be had is being asked; nothing starts before
  std::uint32_t failed_slot_checks = 0; ///< of its gangs, before it starts
  time_point next_slot_check{};
  accumulator_book accumulators;
  failure_notes failures;
  time_point submitted{};
  time_point ended{};

  bool finished() const noexcept { return state > job_state::running; }
};

/// What is kept of a job after its end.
struct ended_job {
  job_progress progress;
  error failure;
  failure_notes failures;
  std::vector<stage_placements> placements;
  std::vector<stage_id> held;       ///< stages whose results are still on executors, until they are released
  std::vector<executor_id> touched; ///< that know these stages
  bool ran_commands = false;        ///< whose directories stay with the executors until the job is forgotten
};

} // namespace troupe
