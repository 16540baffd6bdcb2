#pragma once

/// The deciding core of a session: jobs, stages, stage attempts, map outputs, executors, leases and placement, in one
/// place so that there is one order of events (DESIGN section 3). It is fed inputs with the time and appends effects;
/// it calls nobody. The same inputs always give the same effects.
/// Owner: the dag_scheduler actor, a test, or the simulator. Not thread-safe.
///
/// Reviewer's check list: whatever is added per job must be gone when the job has ended (see `is_idle`), late messages
/// must be counted and ignored, and no event may cost work in proportion to all tasks or all executors.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <troupe/runtime/dag/publication_book.hpp>
#include <troupe/runtime/dag/queued_leases.hpp>
#include <troupe/runtime/dag/stage_run.hpp>
#include <troupe/runtime/resources/resolved_profile.hpp>
#include <troupe/runtime/scheduling/cache_book.hpp>
#include <troupe/runtime/scheduling/effects.hpp>
#include <troupe/runtime/scheduling/exclusion_book.hpp>
#include <troupe/runtime/scheduling/executor_pool.hpp>
#include <troupe/runtime/scheduling/explanation.hpp>
#include <troupe/runtime/scheduling/publication.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>
#include <troupe/runtime/scheduling/suspect_book.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// When a task that takes long gets a second attempt on another executor.
struct speculation_options {
  bool enabled = false;
  share quantile{9 * share::units_per_whole / 10}; ///< part of a stage's tasks that must have ended first
  share multiplier = share::whole(3);              ///< times the median of those
  duration min_task_runtime = std::chrono::milliseconds{100};
};

class dag_scheduler {
public:
  struct options {
    profile_matching matching = profile_matching::compatible;
    placement_policy placement = placement_policy::spread;
    sharing_options sharing{};
    speculation_options speculation{};
    /// How long a free slot waits for a task that would rather run on its executor, and then for one that would rather
    /// run on its host, before it takes any (spec TS-9). `never` is possible.
    duration executor_wait = std::chrono::seconds{3};
    duration host_wait = std::chrono::seconds{3};
    /// A stage that has had no room for so long takes executors with addresses that it does not ask for, although
    /// others do; `never` is possible.
    duration scarce_resource_wait = std::chrono::seconds{3};
    std::uint32_t max_batch = 256;                       ///< most tasks in one batch
    std::uint32_t window_batches = 4;                    ///< most batches in flight per lease, for the shortest tasks
    duration queue_ahead = std::chrono::milliseconds{1}; ///< work queued per lease beyond the running task
    duration long_task = std::chrono::milliseconds{10};  ///< nothing is queued ahead behind such tasks, nor left there
    duration infeasible_timeout = std::chrono::seconds{30};
    duration alternative_wait = std::chrono::seconds{3}; ///< without room, before the next alternative is asked for
    std::uint32_t max_stage_attempts = 4;                ///< that missing map outputs may end, in a row
    /// From the first input that a stage attempt misses until it and what it misses are run again: what else is missing
    /// by then is made in the same go (spec DG-7).
    duration resubmit_delay = duration::zero();
    std::uint64_t max_result_bytes = 1ull << 30; ///< of one job, inline ones together
    /// A stage pauses while so many bytes of what it made for a stage that is run with it have not been read.
    std::uint64_t max_unconsumed = 1ull << 30;
    std::uint32_t retained_jobs = 100; ///< ended jobs that can still be asked for
    std::uint32_t held_jobs = 1000;    ///< ended jobs whose results wait to be fetched and released
    duration feasibility_wait =
        std::chrono::seconds{2};                      ///< a job waits so long to hear whether its executors can be had
    duration refusal_pause = std::chrono::seconds{1}; ///< before an executor is tried again with what it refused
    /// An executor whose heartbeats lack orders, or tasks, for so long is given up: the channel lost a message.
    duration loss_timeout = std::chrono::seconds{10};
    /// Under `exact`: how often, and how many times, a job with a gang for which there are too few slots is looked at
    /// before it fails (spec BA-3).
    duration slot_check_interval = std::chrono::seconds{15};
    std::uint32_t max_slot_check_failures = 40;
    exclusion_rules exclusion{};
    /// A stage fails that no executor may run for so long because of exclusions; `never` is possible.
    duration unschedulable_timeout = std::chrono::seconds{120};
  };
  explicit dag_scheduler(const options& opts);

  /// Takes a job that has passed `validate`; `profiles` has one entry per profile of the job. The returned id names it
  /// from now on. Its first task waits until it is known whether every executor that it needs can be had.
  job_id on_job_submitted(std::shared_ptr<const job_spec> job, const std::vector<resolved_profile>& profiles,
                          time_point now, effects::list& out);
  /// Ends a job as cancelled; an ended or unknown one is left alone. What runs of it keeps its leases until the
  /// executors have reported the end of every attempt. @returns whether the job exists.
  bool on_job_cancelled(job_id job, const std::string& reason, time_point now, effects::list& out);
  /// Ends one stage of a job, `index` being its place there: every attempt of it is killed, and since no other job can
  /// need it, its own fails, saying which stage was cancelled. A stage that is complete and a job that has ended are
  /// left alone. This is also how a task set is cancelled: it has no other life than that of its stage.
  /// ec::not_found: there is no such job or stage.
  result<void> on_stage_cancelled(job_id job, std::uint32_t index, const std::string& reason, time_point now,
                                  effects::list& out);
  /// Ends every unfinished job of the group as cancelled. Jobs that are submitted later are not concerned.
  /// @returns those that it has ended. ec::not_found: no job that runs or is retained is of this group.
  result<std::vector<job_id>> on_group_cancelled(const std::string& group, const std::string& reason, time_point now,
                                                 effects::list& out);
  /// Drops what an ended job still keeps on executors.
  void on_results_released(job_id job, time_point now, effects::list& out);
  /// Whoever has the broadcast may drop it.
  void on_broadcast_withdrawn(broadcast_id broadcast, time_point now, effects::list& out);
  /// There is an allocator, perhaps another one: it hears of every shape anew, and of every open question.
  void on_allocator_added(time_point now, effects::list& out);

  void on_executor_added(const executor_info& info, time_point now, effects::list& out);
  /// It will be reported as gone, with the cause, in a moment: nothing new goes there until then.
  void on_executor_out_of_reach(executor_id executor, incarnation epoch, time_point now, effects::list& out);
  /// `lost`: it died or fell silent; else it left on purpose. An older incarnation is ignored.
  /// `ended`: its process is known to be dead, or has said that it publishes nothing more.
  void on_executor_gone(executor_id executor, incarnation epoch, const std::string& cause, bool lost, time_point now,
                        effects::list& out, const executor_exit& exit = {}, bool ended = false);
  void on_report(const executor_report& report, time_point now, effects::list& out);
  /// The shell's answers to `effects::publish_staged`.
  void on_publications(const std::vector<publication>& ends, time_point now, effects::list& out);
  /// Compares what an executor has with what it was given. A difference that stays means that it must be given up.
  void on_heartbeat(const executor_heartbeat& beat, time_point now, effects::list& out);

  struct release {
    bool granted = false;
    bool serving = false;
    std::string reason;
  };
  /// May this executor be stopped? Granted only when nothing runs or is queued there; it is draining from then on.
  release on_release_requested(executor_id executor, time_point now, effects::list& out);
  /// The allocator's answer to ask_feasibility.
  void on_feasibility(shape_id shape, const feasibility& answer, time_point now, effects::list& out);
  /// What became of requested executors that will not register; kept for explanations. @param is_certain others would
  /// end in the same way: after three in a row nobody waits for more
  void on_launch_failed(shape_id shape, const std::string& detail, bool is_certain = false);
  /// What has become of the load that was reported last; kept for explanations.
  void on_allocation(const std::vector<shape_status>& shapes);
  /// Time-outs and load reports. Call it a few times a second.
  void on_tick(time_point now, effects::list& out);

  std::optional<job_progress> progress(job_id job, time_point now) const;
  std::vector<job_progress> all_progress(time_point now) const;
  /// Why it waits, stage by stage; nothing for an unknown job.
  std::optional<job_explanation> explain(job_id job, time_point now) const;
  /// Accepted attempts of a job that runs or is retained.
  std::optional<std::vector<task_placement>> placements(job_id job) const;
  struct executor_view {
    const executor_info* info;
    bool draining;
    std::uint32_t leases;
    std::uint32_t running;
    std::uint64_t tasks_done;
    std::uint32_t excluded; ///< number of profiles that it gets no tasks of for now
    std::uint64_t kept;     ///< map outputs, results and kept partitions that are known to be there
  };
  std::vector<executor_view> executors() const;
  /// Messages that came late, twice, or from nobody.
  std::uint64_t stale_messages() const noexcept { return stale_; }
  /// True when no unfinished job, lease, or kept output is left.
  bool is_idle() const;
  /// The first broken cross-reference. For tests and debug builds.
  std::optional<std::string> fault() const;
  const executor_pool& pool() const noexcept { return pool_; }

private:
  /// Order of what competes: first job, first stage, but of stages that flow into each other the last; of one stage
  /// first what runs under conditions of its own, since whatever has a lane of its own was tried before.
  struct rank {
    job_id job;
    std::uint32_t order = 0;
    std::uint8_t turn = 0;
    auto operator<=>(const rank&) const = default;
  };
  static rank rank_of(const stage_run& stage, lane_number lane) {
    return {stage.job, stage.order, static_cast<std::uint8_t>(0xff - lane)};
  }
  static rank rank_of(const task_lane& lane) { return rank_of(*lane.stage, lane.number); }

  /// Pending tasks that nobody may run because of exclusions.
  struct unschedulable_lane {
    const task_lane* lane;
    time_point since;
    std::uint32_t replaced = 0; ///< executors given back, so that fresh ones can be had
  };

  job_run* find_job(job_id id);
  stage_run* find_stage(stage_id id);

  // dag_scheduler.cpp: jobs and stages
  std::vector<demand_index> demands_of(const resolved_profile& profile, const stage_spec& stage);
  void drain(executor_index e);
  void admit(time_point now, effects::list& out);
  void settle(job_run& job, time_point now, effects::list& out);
  static std::vector<bool> stages_to_run(const job_run& job);
  void start(job_run& job, stage_run& stage, time_point now, effects::list& out);
  void complete(job_run& job, stage_run& stage, time_point now, effects::list& out);
  std::optional<profile_id> profile_of(const executor_info& info) const;
  void tell_completion(stage_run& stage, const error& why, time_point now, effects::list& out);
  void tell_restart(stage_run& stage, const std::string& why, time_point now, effects::list& out);
  void fail(job_run& job, error why, time_point now, effects::list& out);
  void end(job_run& job, job_state state, error why, time_point now, effects::list& out);
  void forget(const std::vector<stage_id>& stages, const std::vector<executor_id>& on, time_point now);
  void retain(job_id id, ended_job job, time_point now, effects::list& out);
  void drop_surplus(time_point now, effects::list& out);
  std::vector<shuffle_input> inputs_of(const job_run& job, const stage_run& stage) const;

  // views.cpp: what is said about all this
  job_progress progress_of(const job_run& job, time_point now) const;
  std::string waiting_for(const job_run& job) const;
  std::string waiting_for(const stage_run& stage) const;
  std::string waiting_for(const task_lane& lane) const;
  std::vector<std::pair<std::string, std::string>> misspelt(demand_index d) const;
  std::string lack_of(demand_index d) const;
  std::string kept_executors(demand_index d) const;
  std::string held_executors(demand_index d) const;
  std::optional<std::string> fault_of_tasks() const;

  // explain.cpp: the same in all detail
  explained_stage explain(const job_run& job, const stage_run& stage, time_point now) const;
  explained_task_set explain(const task_lane& lane, time_point now) const;
  explained_choice explain(const task_lane& lane, demand_index d, time_point now) const;
  std::string allocation_of(shape_id shape) const;
  std::string edit_for(const task_lane& lane, demand_index d) const;

  // failures.cpp: what has gone wrong
  /// @param why for people
  void tell_failure(stage_run& stage, events::task_failed what, std::string why, effects::list& out);
  static void keep_printed(const job_run& job, const stage_run& stage, partition_index partition,
                           attempt_number attempt, effects::list& out);
  static job_explanation explain_ended(job_id id, const ended_job& job);

  // outcomes.cpp: what executors say
  void prefetch(const executor_report& report);
  void on_outcomes(executor_index e, const std::shared_ptr<const outcome_batch>& batch, time_point now,
                   effects::list& out);
  enum class acceptance { refused, to_publish, done };
  acceptance on_success(job_run& job, stage_run& stage, lease_record& lease,
                        const std::shared_ptr<const outcome_batch>& batch, std::uint32_t i, time_point now,
                        effects::list& out);
  static result<result_entry> entry_of(const outcome_batch& batch, std::uint32_t i);
  void record_output(job_run& job, stage_run& stage, executor_index e,
                     const std::shared_ptr<const outcome_batch>& batch, std::uint32_t i, const result_entry& entry,
                     time_point now, effects::list& out);
  void on_failure(job_run& job, stage_run& stage, const lease_record& lease, const outcome_batch& batch,
                  std::uint32_t i, const task_failure* detail, time_point now, effects::list& out);
  bool on_fetch_failure(job_run& job, stage_run& stage, const outcome_batch& batch, std::uint32_t i,
                        const task_failure& detail, const std::string& where, time_point now, effects::list& out);
  void on_refusal(executor_index e, const refusal& r, time_point now, effects::list& out);
  void lose_output(stage_run& stage, partition_index partition, effects::list& out);
  void lose_outputs_of(executor_index e, job_id of_failure, time_point now, effects::list& out);
  void hold_back(stage_run& stage, time_point now);
  bool resubmit(time_point now, effects::list& out);

  // publications.cpp: output files of commands
  static bool publishes(const stage_run& stage, partition_index partition);
  static bool stages_files(const stage_run& stage);
  static effects::staged_attempt staged_of(const stage_run& stage, partition_index partition, attempt_number attempt,
                                           executor_id executor);
  void begin_publication(stage_run& stage, const accepted_attempt& what, effects::list& out);
  void publish_gang(const stage_run& stage, effects::list& out);
  static void publish(const stage_run& stage, accepted_attempt& what, effects::list& out);
  void on_publication_report(executor_index e, const publication& end, time_point now, effects::list& out);
  void on_publication(const accepted_attempt& entry, const publication& end, time_point now, effects::list& out);
  void on_published(job_run& job, stage_run& stage, const accepted_attempt& what, time_point now, effects::list& out);
  void on_unpublished(job_run& job, stage_run& stage, const accepted_attempt& what, const publication& end,
                      time_point now, effects::list& out);
  void lose_publication(job_run& job, stage_run& stage, const accepted_attempt& what, time_point now,
                        effects::list& out);
  void lose_publications(executor_id executor, bool ended, const std::string& cause, const std::string& host,
                         std::set<job_id>& hit, std::vector<std::pair<job_id, error>>& failed, time_point now,
                         effects::list& out);
  void discard_publications(stage_run& stage, effects::list& out);
  std::optional<std::string> fault_of_publications() const;

  // executor_loss.cpp: what ran on executors that are gone
  task_lane& open_lane(stage_run& stage, lane_number number);
  void change_lane(stage_run& stage, partition_index partition, lane_number number, time_point now);
  void convict(stage_task task, time_point now);
  bool escalate(stage_run& stage, partition_index partition, const lease_record& lease, attempt_number attempt,
                time_point now, effects::list& out);

  // cancellation.cpp: what is ended on request, what takes too long, and what does not end
  bool fail_overdue_stages(time_point now, effects::list& out);
  void on_overdue(executor_index e, const overdue_attempt& a, time_point now, effects::list& out);
  void forget_overdue(lease_id lease, stage_id stage, partition_index partition, attempt_number attempt);
  std::string lost_slots(demand_index d) const;

  // placement.cpp: leases and batches
  void schedule(time_point now, effects::list& out);
  void grant_all(time_point now, effects::list& out);
  void fill(lease_record& lease, std::uint32_t cap, time_point now);
  void hand_over(lease_record& lease, task_lane& lane, task_batch&& batch, time_point now);
  void refill(lease_record& lease, time_point now, effects::list& out);
  void open_lease(lease_record& lease, effects::list& out);
  bool has_work_for(const task_lane& lane, executor_index e, time_point now) const;
  task_lane* next_for(const std::map<rank, task_lane*>& lanes, const lease_record& lease, time_point now);
  std::uint32_t take(task_lane& lane, std::uint32_t most, executor_index e, time_point now, task_batch& batch);
  bool grant(task_lane& lane, demand_index d, std::uint64_t most, time_point now, effects::list& out);
  bool must_yield(const lease_record& lease, const task_lane& mine, time_point now);
  void claim_granted(demand_index d, executor_index e);
  void drop_claims(executor_index e);
  void drop_stale_claims();
  std::uint64_t waiting_tasks(demand_index d) const;
  std::uint32_t window_of(const stage_run& stage) const;
  std::uint32_t window_of(const lease_record& lease, const task_lane& lane);
  void make_ready(stage_run& stage, time_point now);
  void unready(stage_run& stage);
  void unready(task_lane& lane);
  executor_orders& orders_for(executor_index e);
  void tell_readers_of(executor_id lost, const std::unordered_map<stage_id, kept_partitions>& kept);
  void drop_lease(lease_record& lease, bool revoke, time_point now, effects::list& out);
  void flush(effects::list& out);
  void touch_idle(executor_index e, time_point now);

  // pipeline.cpp: stages that are connected task by task
  static void connect(job_run& job);
  static std::uint64_t output_size(const stage_run& stage, partition_index partition);
  static bool is_kept(const stage_run& stage, partition_index partition);
  static bool has_output(const stage_run& stage, partition_index partition);
  static attempt_number readable_attempt(const stage_run& stage, partition_index partition);
  void feed(job_run& job, stage_run& stage, partition_index partition, time_point now);
  static bool admit(const job_run& job, stage_run& stage, partition_index partition);
  static std::optional<error> second_version(job_run& job, const std::vector<bool>& must_run);
  void recall_inputs(job_run& job, stage_run& stage, partition_index partition, effects::list& out);
  void count_unread(stage_run& stage, partition_index partition, bool is_unread);
  static bool was_read(const job_run& job, const stage_run& stage, partition_index partition);
  static bool is_wanted(const job_run& job, const stage_run& stage, partition_index partition);
  void withhold_consumers(job_run& job, stage_run& stage, partition_index partition);
  void consume_inputs(job_run& job, stage_run& stage, partition_index partition, time_point now);
  void consume_all_inputs(job_run& job, stage_run& stage, time_point now);
  void drop_consumed(job_run& job, stage_run& stage, partition_index partition, time_point now);
  bool must_pause(const job_run& job, const stage_run& stage) const;
  void pace_producers(time_point now);
  std::uint64_t tasks_before_pause(const stage_run& stage) const;
  std::string pipe_reason(const job_run& job, const stage_run& stage) const;
  std::optional<std::string> fault_of_pipe(const job_run& job, const stage_run& stage) const;
  std::vector<partition_inputs> partitions_for(const job_run& job, const stage_run& stage,
                                               const task_batch& batch) const;
  std::optional<bool> on_missing_partition(job_run& job, stage_run& stage, partition_index partition,
                                           const task_failure& detail, const std::string& where, time_point now,
                                           effects::list& out);

  // keeping.cpp: outputs that outlive their jobs
  void use_kept(job_run& job, time_point now);
  bool is_kept_for(const stage_run& stage, partition_index partition) const;
  bool holds_unread(const executor_record& record);
  bool is_kept_by_active(executor_id on) const;
  void take_kept(job_run& job, stage_run& stage, partition_index partition);
  void prefer_kept(job_run& job, const stage_run& stage, partition_index partition);
  static bool reads_kept(const stage_run& stage, partition_index partition);
  bool on_kept(const stage_run& stage, partition_index partition, executor_index e);
  void lose_kept(cache_id cache, partition_index partition, time_point now, effects::list& out);
  void on_evicted(executor_index e, const kept_partition& what, time_point now, effects::list& out);
  void drop_kept(const broadcast_id& dataset, time_point now, effects::list& out);
  void stop_using_kept(job_run& job, const stage_run& stage);

  // takeover.cpp: outputs that outlive their executors
  executor_index service_for(const executor_info& info) const;
  void add_service(executor_index s, time_point now);
  void remove_service(executor_id service);
  void hand_over(executor_index e);
  void on_taken_over(executor_index s, const block_takeover& what, time_point now);

  // speculation.cpp: second attempts of tasks that take long
  std::optional<duration> copy_threshold(const stage_run& stage) const;
  bool speculate(time_point now, effects::list& out);
  bool may_copy(const task_lane& lane, partition_index partition, executor_index e) const;
  std::optional<partition_index> copy_for(const task_lane& lane, executor_index e) const;
  bool place_copies(task_lane& lane, demand_index d, std::uint64_t most, time_point now, effects::list& out);

  // locality.cpp: tasks near their data
  locality_level allowed_level(const stage_run& stage, time_point now) const;
  void look_for_near();
  void decline(task_lane& lane, time_point now);
  std::uint64_t place_near(task_lane& lane, demand_index d, std::uint64_t most, time_point now, effects::list& out);
  bool is_declining() const;

  // take_back.cpp: work that was queued behind what turns out to be long
  void heard_of(lease_record& lease, time_point now);
  bool take_back(time_point now);

  // sharing.cpp: whose the next slot is
  std::uint32_t slots_of_line(const stage_run& stage) const;
  bool serves_line(const lease_record& lease, const stage_run& stage) const;
  bool comes_before(const task_lane& a, const task_lane& b, const lease_record* freed) const;
  task_lane& first_in_line(const std::map<rank, task_lane*>& lanes, const lease_record* freed) const;
  void serve(lease_record& lease, stage_run& stage);
  void stop_serving(lease_record& lease);
  void grant_by_rank(time_point now, effects::list& out);
  void grant_fairly(time_point now, effects::list& out);
  std::optional<std::string> fault_of_sharing() const;

  // scarce.cpp: executors kept for those who need what they have
  void count_asks(stage_run& stage, bool unfinished);
  bool is_asked_by_others(const stage_run& stage, const std::string& resource) const;
  bool runs_on_plain(const stage_run& stage) const;
  void keep_scarce(time_point now);
  void drop_kept_claims(demand_index d);

  // exclusion.cpp: executors and hosts that get no tasks of a profile for a while
  void accuse(const stage_run& stage, const lease_record& lease, partition_index partition, const std::string& text,
              time_point now, effects::list& out);
  void accuse_lost(const executor_info& info, const std::vector<std::pair<stage_task, profile_id>>& attempts,
                   const std::string& text, time_point now, effects::list& out);
  void exclude(const exclusion_book::changes& begun, bool lost, const std::string& text, effects::list& out);
  void readmit(const exclusion_book::changes& over, const std::string& cause, effects::list& out);
  bool end_exclusions(time_point now, effects::list& out);
  void drop_accusations(const stage_run& stage, effects::list& out);
  void exclude_newcomer(executor_index e);
  bool is_unschedulable(const task_lane& lane) const;
  void watch_unschedulable(time_point now, effects::list& out);
  bool replace_excluded(unschedulable_lane& waits, demand_index d);
  bool fail_unschedulable_stages(time_point now, effects::list& out);
  std::string excluded_executors(demand_index d) const;
  std::optional<std::string> fault_of_exclusions() const;

  // gangs.cpp: tasks that start together or not at all
  using gang_turn = std::pair<std::string, rank>;
  gang_turn turn_of(const task_lane& lane) const;
  bool is_first_gang(const task_lane& lane) const;
  void gather(time_point now);
  void hold(const task_lane& lane, demand_index d, time_point now);
  void stop_gathering();
  std::optional<demand_index> demand_to_gather(const task_lane& lane) const;
  bool place_gang(task_lane& lane, demand_index d, time_point now, effects::list& out);
  std::int64_t most_slots(demand_index d) const;
  bool has_enough(const stage_run& stage, demand_index d) const;
  bool passes_slot_check(job_run& job, time_point now, effects::list& out);
  std::string who_gathers() const;
  std::string gang_waits_for(const task_lane& lane) const;
  std::optional<std::string> fault_of_gangs() const;

  // gang_attempts.cpp: how gangs meet, and fail as a whole
  void on_arrival(executor_index e, const barrier_arrival& a, time_point now);
  void answer(const stage_run& stage, std::optional<barrier_coordinator::verdict> verdict);
  bool fail_late_rounds(time_point now);
  void end_rounds(stage_run& stage);
  void on_gang_failure(job_run& job, stage_run& stage, partition_index partition, attempt_number attempt,
                       executor_id executor, const std::string& why, bool blame, failure_cause cause, time_point now,
                       effects::list& out);
  void break_gang(const stage_run& stage, const std::string& why);
  bool restart_gang(job_run& job, stage_run& stage, time_point now, effects::list& out);
  void clear_gang(job_run& job, stage_run& stage, effects::list& out);

  // demand.cpp: what waits for executors that are not there
  void ask_feasibility(job_run& job, time_point now);
  void ask(shape_id shape, time_point now);
  bool is_unanswered(const job_run& job, const stage_run& stage) const;
  std::string cure(demand_index d, const feasibility& answer) const;
  bool is_impossible(const stage_run& stage, demand_index d) const;
  void open_alternatives(time_point now);
  std::string cures(const task_lane& lane) const;
  bool have_had_their_time(demand_index d, time_point since, time_point now) const;
  bool is_overdue(const stage_run& stage, demand_index d, time_point now) const;
  bool is_unsatisfied(demand_index d) const;
  std::uint64_t tasks_without_room(const task_lane& lane, demand_index d) const;
  std::optional<std::string> given_up(const task_lane& lane, time_point now) const;
  std::optional<error> hopeless(const job_run& job) const;
  void watch_unsatisfied(time_point now);
  std::int64_t slots_on_its_shape(const demand& what) const;
  void report_load(time_point now, effects::list& out);

  options options_;
  executor_pool pool_;
  job_pools sharing_;
  std::map<job_id, job_run> jobs_;    ///< unfinished ones
  std::map<job_id, ended_job> ended_; ///< the last ones that ended, and those whose results are still held
  std::size_t holding_ = 0;           ///< of the latter
  std::unordered_map<stage_id, std::pair<job_id, std::uint32_t>> stages_; ///< of unfinished jobs
  std::map<demand_index, std::map<rank, task_lane*>> ready_;              ///< lanes with pending tasks, by demand
  std::set<job_id> held_;                          ///< accepted, and waiting to hear whether their executors can be had
  std::set<stage_id> ahead_;                       ///< producers of which much was not read yet
  cache_book kept_;                                ///< of the session: outlives jobs
  std::map<cache_id, std::set<stage_id>> keepers_; ///< unfinished stages that make or read these
  std::set<stage_id> held_back_;                   ///< not to be run again before `resubmit_at_`
  std::map<stage_id, time_point> deadlines_;       ///< of stages that run and have a time-out
  stage_id late_stage_;                            ///< that fails its job just now since it ran into that; else none
  std::optional<time_point> resubmit_at_;          ///< nothing where no stage is held back
  std::map<shape_id, feasibility> answers_;
  std::map<shape_id, time_point> asked_;           ///< questions without an answer, since when
  std::vector<shape_id> questions_;                ///< to be asked in this event
  std::map<demand_index, time_point> unsatisfied_; ///< ready demands that no executor satisfies, since when
  struct shape_origin {
    profile_id profile; ///< the first one of this shape
    resource_profile content;
  };
  std::map<shape_id, shape_origin> shapes_;
  std::set<shape_id> announced_shapes_;
  std::map<shape_id, std::string> launch_failures_;
  std::map<shape_id, std::uint32_t> certain_failures_; ///< those of `launch_failures_` that were certain, in a row
  std::map<shape_id, shape_status> allocation_;        ///< as the allocator said last
  /// Executors whose slots are kept for a demand of better rank, and how many slots it will find there.
  struct claim {
    std::map<executor_index, std::uint64_t> slots;
    std::uint64_t total = 0;
  };
  std::map<demand_index, claim> claims_;
  std::map<gang_turn, task_lane*> gangs_; ///< those of `ready_`
  /// The first gang of all that wait, and the executors that it holds although it cannot use them yet.
  struct gathering {
    stage_id stage;
    demand_index demand = 0;
    std::set<executor_index> held;
    time_point since{};
  };
  std::optional<gathering> gathering_;
  bool gather_due_ = false; ///< what is held may have to change
  struct broken_gang {
    std::string why;
    bool blamed = false;    ///< it is its own fault, and has been counted
    bool escalates = false; ///< it is tried again with more memory
  };
  std::map<stage_id, broken_gang> broken_; ///< to be run again as a whole, in this event
  std::set<stage_id> meeting_;             ///< gangs of which somebody waits for the others
  /// Unfinished stages that ask for a custom resource.
  std::map<std::string, std::map<rank, const stage_run*>, std::less<>> asking_;
  std::vector<job_id> finished_; ///< ended in this event
  std::vector<lease_id> refill_; ///< leases with news in this event
  /// What this event has for executors; those of an executor that is gone are of `no_executor`.
  std::vector<std::pair<executor_index, executor_orders>> orders_;
  queued_leases queued_;              ///< those that have not been asked for their queue since their news
  std::set<executor_id> idle_;        ///< without a lease
  std::vector<executor_id> services_; ///< shuffle services that are there
  publication_book publications_;     ///< of unfinished jobs
  suspect_book suspects_;             ///< tasks of unfinished stages, any of which may have ended an executor
  exclusion_book exclusions_;         ///< of the session: outlives jobs that have succeeded
  std::map<rank, unschedulable_lane> unschedulable_;
  std::map<lease_id, overdue_attempt> overdue_; ///< attempts in this process that do not end, by the lease they block
  std::uint64_t load_number_ = 0;
  bool scarce_due_ = false; ///< something in this event changes which executors are kept for whom
  bool load_due_ = false;   ///< something in this event changes what the allocator should do
  std::vector<std::pair<demand_index, rank>> newly_ready_; ///< the same, if they still wait at its end
  std::uint64_t next_job_ = 1;
  std::uint64_t next_stage_ = 1;
  std::uint64_t stale_ = 0;
};

} // namespace troupe
