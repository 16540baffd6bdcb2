// What executors report: ended attempts, refusals, missing inputs.

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>

namespace troupe {

namespace {

/// Whether the columns have the lengths that they promise: nothing that came from outside is indexed before.
bool is_consistent(const outcome_batch& batch) {
  const auto fits = [&](std::size_t size) { return size == 0 || size == batch.count; };
  const auto fall = [](const counted_amount& a, const counted_amount& b) {
    return std::pair{a.index, a.accumulator} >= std::pair{b.index, b.accumulator};
  };
  const auto unknown = [&](const counted_amount& one) {
    return one.index >= batch.count || one.accumulator >= batch.accumulators.size();
  };
  return fits(batch.partitions.size()) && fits(batch.attempts.size()) && fits(batch.statuses.size()) &&
         std::ranges::none_of(batch.counted, unknown) &&
         std::ranges::adjacent_find(batch.counted, fall) == batch.counted.end();
}

/// Of the attempt at position `i`. @pre is_consistent(batch)
std::span<const counted_amount> counted_by(const outcome_batch& batch, std::uint32_t i) {
  if (batch.counted.empty()) return {};
  const auto found = std::ranges::equal_range(batch.counted, i, {}, &counted_amount::index);
  return {found.begin(), found.end()};
}

} // namespace

/// Asks for the memory that the report's outcomes are about, all of it at once: it is cold where there are many
/// executors, and would else be waited for piece by piece.
void dag_scheduler::prefetch(const executor_report& report) {
  for (const auto& batch : report.outcomes) {
    if (!batch) continue;
    pool_.prefetch_index(report.executor, batch->lease);
    if (const auto* stage = find_stage(batch->stage)) stage->prefetch(batch->partition(0));
  }
  for (const auto& batch : report.outcomes)
    if (batch) pool_.prefetch_records(report.executor, batch->lease);
}

void dag_scheduler::on_report(const executor_report& report, time_point now, effects::list& out) {
  prefetch(report);
  const auto e = pool_.find(report.executor);
  if (e == no_executor || pool_[e].info.epoch != report.epoch) {
    ++stale_;
    return;
  }
  ++pool_[e].reports;
  for (const auto& what : report.evicted) on_evicted(e, what, now, out);
  for (const auto& r : report.refusals) on_refusal(e, r, now, out);
  for (const auto& batch : report.outcomes) on_outcomes(e, batch, now, out);
  for (const auto& attempt : report.overdue) on_overdue(e, attempt, now, out);
  for (const auto& arrival : report.arrivals) on_arrival(e, arrival, now);
  for (const auto& taken : report.taken_over) on_taken_over(e, taken, now);
  for (const auto& end : report.publications) on_publication_report(e, end, now, out);
  schedule(now, out);
}

void dag_scheduler::on_heartbeat(const executor_heartbeat& beat, time_point now, effects::list& out) {
  const auto e = pool_.find(beat.executor);
  if (e == no_executor || pool_[e].info.epoch != beat.epoch) {
    ++stale_;
    return;
  }
  auto& record = pool_[e];
  // After a pause, of the executor or here, what is on its way has had no time to come.
  const auto pause = record.last_beat ? now - *record.last_beat : duration::zero();
  record.last_beat = now;
  if (pause > options_.loss_timeout / 2) {
    record.behind_since.reset();
    record.owing_since.reset();
  }
  const auto lasts = [&](std::optional<time_point>& since, bool amiss) {
    if (!amiss)
      since.reset();
    else if (!since)
      since = now;
    return since && now - *since > options_.loss_timeout;
  };
  const bool nothing_there = beat.orders_seen >= record.sequence && beat.running + beat.queued == 0;
  const bool orders_lost = lasts(record.behind_since, beat.orders_seen < record.expected);
  const bool reports_lost =
      lasts(record.owing_since, beat.reports_sent > record.reports || (nothing_there && record.in_flight > 0));
  if (!record.behind_since) record.expected = record.sequence;
  if (orders_lost)
    out.push_back(effects::give_up_executor{
        beat.executor, beat.epoch, "its orders from number " + std::to_string(beat.orders_seen + 1) + " on got lost"});
  else if (reports_lost)
    out.push_back(effects::give_up_executor{beat.executor, beat.epoch,
                                            "what it said of some of its " + std::to_string(record.in_flight) +
                                                " tasks got lost"});
}

void dag_scheduler::on_outcomes(executor_index e, const std::shared_ptr<const outcome_batch>& batch, time_point now,
                                effects::list& out) {
  auto* lease = batch ? pool_.find_lease(batch->lease) : nullptr;
  // A lease never has more in flight than its window, so a larger batch is forged or garbled.
  const auto most = std::uint64_t{options_.max_batch} * options_.window_batches;
  if (!lease || lease->executor != e || batch->count > most || !is_consistent(*batch)) {
    ++stale_;
    return;
  }
  auto& record = pool_[e];
  record.prefetch_lists();
  // A stage of a job that has ended is unknown here: its attempts only give their places in the lease back.
  auto* stage = find_stage(batch->stage);
  auto* job = stage ? find_job(stage->job) : nullptr;
  std::uint32_t succeeded = 0; ///< and done
  std::uint32_t accepted = 0;  ///< and to be published
  std::uint32_t failed = 0;
  std::size_t next_failure = 0;
  bool news = false;
  const bool was_complete = stage && stage->tasks.complete();
  for (std::uint32_t i = 0; i < batch->count; ++i) {
    const auto p = batch->partition(i);
    const auto status = batch->status(i);
    const task_failure* detail = nullptr;
    if (status != task_status::succeeded && next_failure < batch->failures.size())
      detail = &batch->failures[next_failure++];
    // Late or repeated, unless this very attempt is in flight under this lease.
    if (!lease->remove(batch->stage, p, batch->attempt(i))) {
      ++stale_;
      continue;
    }
    --record.in_flight;
    news = news || status != task_status::given_back;
    if (!overdue_.empty()) forget_overdue(batch->lease, batch->stage, p, batch->attempt(i));
    if (!job || job->finished()) continue;
    if (!stage->tasks.is_current(p, batch->attempt(i), e)) {
      // What it has made nobody will read.
      if (status == task_status::succeeded && (stage->spec->is_shuffle_map() || stage->hands_on))
        orders_for(e).consumed.push_back({stage->id, p, batch->attempt(i), 0});
      if (status == task_status::succeeded && stage->keeps)
        if (const auto made = entry_of(*batch, i); made && made->kind == result_kind::kept_output)
          (void) on_kept(*stage, p, e);
      if (status == task_status::succeeded && publishes(*stage, p))
        out.push_back(effects::discard_staged{staged_of(*stage, p, batch->attempt(i), record.info.executor)});
      if (status != task_status::given_back)
        out.push_back(effects::publish{events::task_failed{
            stage->id, p, batch->attempt(i), record.info.executor, task_status::killed, failure_cause::error,
            stage->spec->barrier ? "another task of its barrier stage has failed"
                                 : "another attempt of the task was faster"}});
      continue;
    }
    // Before any of them can end the job, whose summary tells of it.
    if (succeeded + accepted + failed == 0) stage->measure(*batch);
    const auto taken =
        status == task_status::succeeded ? on_success(*job, *stage, *lease, batch, i, now, out) : acceptance::refused;
    if (taken == acceptance::done) {
      ++succeeded;
    } else if (taken == acceptance::to_publish) {
      ++accepted;
    } else if (!job->finished()) {
      ++failed;
      if (status != task_status::succeeded) on_failure(*job, *stage, *lease, *batch, i, detail, now, out);
    }
  }
  if (news) { // a task of it has begun, or can
    lease->front_since = now;
    lease->recalled = false;
  }
  record.tasks_done += succeeded;
  if (stage && stage->is_starved()) scarce_due_ = true; // what was kept for it is free for who feeds it
  heard_of(*lease, now);
  refill_.push_back(batch->lease);
  if (!job || job->finished()) return;
  if (succeeded > 0)
    out.push_back(effects::publish{
        events::tasks_succeeded{batch->stage, batch->lease, record.info.executor, succeeded, batch->partition(0)}});
  // Something changed for the stages only when this one became complete or has tasks to run again.
  if ((!was_complete && stage->tasks.complete()) || failed > 0 || std::exchange(job->unsettled, false))
    settle(*job, now, out);
}

/// @returns `refused` when the attempt counts as failed after all
dag_scheduler::acceptance dag_scheduler::on_success(job_run& job, stage_run& stage, lease_record& lease,
                                                    const std::shared_ptr<const outcome_batch>& batch, std::uint32_t i,
                                                    time_point now, effects::list& out) {
  const auto p = batch->partition(i);
  auto& executor = pool_[lease.executor];
  const auto entry = entry_of(*batch, i);
  if (!entry || entry->is_map_output() != stage.spec->is_shuffle_map() ||
      (entry->kind == result_kind::files && !stage.hands_on) ||
      !bucket_sizes::parse(entry->buckets, stage.spec->buckets)) {
    // Never trusted: the attempt counts as failed.
    task_failure why;
    why.message = "executor " + std::to_string(executor.info.executor.value) + " reported a malformed result";
    on_failure(job, stage, lease, *batch, i, &why, now, out);
    return acceptance::refused;
  }
  const bool to_publish = publishes(stage, p);
  if (const auto slower =
          to_publish ? stage.tasks.accept(p, batch->attempt(i)) : stage.tasks.succeed(p, batch->attempt(i)))
    orders_for(slower->executor).kills.push_back({stage.id, p, slower->attempt});
  // Its copy, if one was wanted, is wanted no more.
  if (stage.durations)
    if (auto& lane = stage.lanes.at(stage.tasks.lane_of(p)); lane.pending() == 0) unready(lane);
  if (stage.rounds) answer(stage, stage.rounds->on_ended(p));
  if (const auto lane = stage.tasks.lane_of(p); is_alone(lane)) {
    suspects_.acquit({stage.id, p});
    stage.tasks.move_to(lane_of(escalations_of(lane), false), p); // where it is made again if its output is lost
  }
  stage.placed(p, lease, executor.info);
  if (to_publish) {
    begin_publication(stage, {{stage.id, p}, batch->attempt(i), executor.info.executor, lease.id, batch, i}, out);
    return acceptance::to_publish;
  }
  if (!job.accumulators.accept(stage.index, p, counted_by(*batch, i), batch->accumulators))
    fail(job,
         make_error(ec::overloaded, "stage " + std::to_string(stage.index) + " (" + stage.spec->name +
                                        "): the tasks of this job count in more than " +
                                        std::to_string(max_accumulators) +
                                        " accumulators; what has a number for each of many keys is a dataset of pairs, "
                                        "which reduce_by_key sums up"),
         now, out);
  if (job.finished()) return acceptance::done;
  record_output(job, stage, lease.executor, batch, i, *entry, now, out);
  if (job.finished()) return acceptance::done;
  if (stage.spec->barrier) publish_gang(stage, out);
  feed(job, stage, p, now);
  consume_inputs(job, stage, p, now);
  return acceptance::done;
}

void dag_scheduler::on_failure(job_run& job, stage_run& stage, const lease_record& lease, const outcome_batch& batch,
                               std::uint32_t i, const task_failure* detail, time_point now, effects::list& out) {
  const auto p = batch.partition(i);
  const auto attempt = batch.attempt(i);
  auto status = batch.status(i);
  if (status == task_status::succeeded) status = task_status::failed; // a malformed success
  if (status == task_status::given_back && attempt < task_set::free_attempts && !stage.spec->barrier) {
    (void) stage.tasks.requeue(p, attempt, false);
    return;
  }
  const auto& info = pool_[lease.executor].info;
  const std::string message = detail ? detail->message : std::string{};
  const auto cause = detail ? detail->cause : failure_cause::error;
  const auto words = message.empty() ? std::string{to_string(status)} : message;
  const auto tail =
      detail && !detail->stderr_text.empty() ? "\nits standard error:\n" + detail->stderr_text : std::string{};
  tell_failure(stage, {stage.id, p, attempt, info.executor, status, cause, message}, words + tail, out);
  stage.failed_on(info.executor);
  const auto where = "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "), partition " +
                     std::to_string(p) + ", attempt " + std::to_string(attempt) + " on executor " +
                     std::to_string(info.executor.value) + " (" + info.host + ")";
  bool blame = status == task_status::failed || attempt >= task_set::free_attempts;
  if (status == task_status::fetch_failed &&
      (!detail || !on_fetch_failure(job, stage, batch, i, *detail, where, now, out)))
    blame = true;
  if (job.finished()) return;
  // A stage whose output nobody needs any more cannot fail its job.
  blame = blame && stage.state != stage_state::complete;
  const bool gang = stage.spec->barrier; // is tried again, and gets more memory, as a whole
  if (blame && !gang && cause == failure_cause::memory_limit && escalate(stage, p, lease, attempt, now, out)) {
    stage.tasks.requeue(p, attempt, false);
    ++stage.failures;
    return;
  }
  const bool certain = cause == failure_cause::certain; // no executor is to blame, and no attempt can do better
  if (status == task_status::failed && !certain) accuse(stage, lease, p, message, now, out);
  if (gang) {
    on_gang_failure(job, stage, p, attempt, info.executor, where + ": " + words + tail, blame, cause, now, out);
    return;
  }
  const auto failures = stage.tasks.requeue(p, attempt, blame);
  if (blame || status == task_status::fetch_failed) ++stage.failures;
  const auto allowed = std::min(job.spec->max_task_failures, task_set::max_failures);
  if (!blame || (failures < allowed && !certain)) return;
  auto text = where +
              (certain ? std::string{", which no other attempt can change: "}
                       : ", failure " + std::to_string(failures) + " of " + std::to_string(allowed) + " allowed: ") +
              words + tail;
  if (text.ends_with('\n')) text.pop_back(); // whoever prints an error ends its line
  fail(job, make_error(ec::task_failed, std::move(text)), now, out);
}

/// An input of the attempt could not be had: the map output is given up, not the attempt blamed.
/// @returns false when the attempt was never given such an input.
bool dag_scheduler::on_fetch_failure(job_run& job, stage_run& stage, const outcome_batch& batch, std::uint32_t i,
                                     const task_failure& detail, const std::string& where, time_point now,
                                     effects::list& out) {
  if (const auto known = on_missing_partition(job, stage, batch.partition(i), detail, where, now, out)) return *known;
  if (batch.stage_attempt > stage.attempt) return false;
  const bool current = batch.stage_attempt == stage.attempt;
  const auto input = std::find_if(stage.inputs.begin(), stage.inputs.end(),
                                  [&](const shuffle_input& known) { return known.shuffle == detail.shuffle; });
  const auto p = detail.map_partition;
  if (input == stage.inputs.end() || p >= input->attempt_of_map.size()) return false;
  if (current && input->attempt_of_map[p] != detail.map_attempt) return false;
  auto& parent = *find_stage(detail.shuffle);
  // Only an output that is still the accepted one is given up; the news may be older than its replacement.
  const bool is_news =
      parent.tasks.status_of(p) == task_set::status::done && parent.tasks.attempt_of(p) == detail.map_attempt;
  const bool exact = options_.matching == profile_matching::exact;
  // Under `exact` the news of an earlier attempt are none (spec DG-5, DG-10), and those of the current one count
  // against it even if the output is known to be lost (DG-6). Under `compatible` it is the other way round: whoever
  // finds an output missing spares the next attempt from tripping over it, and what was known already is no attempt's
  // fault.
  if (exact ? !current : !is_news) return true;
  if (current && !std::exchange(stage.fetch_failed, true)) ++stage.fetch_failures;
  if (stage.fetch_failures + (exact ? stage.gang_failures : 0) >= options_.max_stage_attempts) {
    fail(job,
         make_error(ec::fetch_failed, "stage " + std::to_string(stage.index) + " (" + stage.spec->name +
                                          ") has failed the maximum allowable number of times: " +
                                          std::to_string(stage.fetch_failures + (exact ? stage.gang_failures : 0)) +
                                          ". Most recent failure reason: " + where + ": " + detail.message +
                                          " (inputs were missing in " + std::to_string(stage.fetch_failures) +
                                          " stage attempts in a row: troupe.scheduler.max-stage-attempts)"),
         now, out);
    return true;
  }
  if (exact) hold_back(stage, now);
  if (!is_news) return true;
  const auto e = parent.tasks.executor_of(p);
  if (exact) {
    // Everything that this executor has made is given up with it (DG-9). Once for a loss: what is made again, there or
    // elsewhere, has other attempt numbers than those that late news speak of.
    lose_outputs_of(e, job.id, now, out);
    return true;
  }
  // Troupe's own: one block that is lost is made again, no more (an executor that is gone is noticed as such).
  if (stage.fetch_failures < 2) {
    lose_output(parent, p, out);
    return true;
  }
  // Once more: the executor, not one block, is at fault, and stage attempts must not be used up block by block.
  auto& kept = pool_[e].kept;
  const auto all = std::move(kept[parent.id]);
  kept.erase(parent.id);
  for (const auto each : all) lose_output(parent, each, out);
  return true;
}

/// The map outputs of all unfinished jobs that this executor keeps.
void dag_scheduler::lose_outputs_of(executor_index e, job_id of_failure, time_point now, effects::list& out) {
  std::set<job_id> hit;
  // What is lost may be made again of what it keeps from former jobs, which then stands among these.
  auto& kept = pool_[e].kept;
  std::vector<stage_id> all;
  for (const auto& [id, partitions] : kept) all.push_back(id);
  for (const auto id : all) {
    auto* stage = find_stage(id);
    if (!stage || !stage->spec->is_shuffle_map()) continue; // results stay: nobody has missed them
    const auto entry = kept.extract(id);
    if (!entry) continue;
    for (const auto p : entry.mapped()) lose_output(*stage, p, out);
    if (stage->state != stage_state::running) hold_back(*stage, now); // else its attempt makes them along with the rest
    hit.insert(stage->job);
  }
  hit.erase(of_failure); // settled when the whole report has been read
  for (const auto id : hit) settle(*find_job(id), now, out);
}

/// Neither the stage nor what it misses is run again before `resubmit_delay` is over. What runs already runs on, and
/// counts (spec DG-7).
void dag_scheduler::hold_back(stage_run& stage, time_point now) {
  if (options_.resubmit_delay == duration::zero()) return;
  held_back_.insert(stage.id);
  if (!resubmit_at_) resubmit_at_ = now + options_.resubmit_delay;
}

/// Runs again what was held back, all in one go. @returns whether its time had come.
bool dag_scheduler::resubmit(time_point now, effects::list& out) {
  if (!resubmit_at_ || now < *resubmit_at_) return false;
  resubmit_at_.reset();
  std::set<job_id> hit;
  for (const auto id : std::exchange(held_back_, {})) hit.insert(find_stage(id)->job);
  for (const auto id : hit) settle(*find_job(id), now, out);
  return true;
}

/// @pre the output was accepted and is kept by a present executor
void dag_scheduler::lose_output(stage_run& stage, partition_index partition, effects::list& out) {
  auto& executor = pool_[stage.tasks.executor_of(partition)];
  if (const auto it = executor.kept.find(stage.id); it != executor.kept.end()) {
    it->second.remove(partition);
    if (it->second.empty()) executor.kept.erase(it);
  }
  auto& job = *find_job(stage.job);
  stage.drop_value(partition);
  withhold_consumers(job, stage, partition);
  stage.handed.erase(partition);
  if (stage.keeps) {
    stage.from_cache[partition] = false;
    kept_.remove(stage.keeps, partition, executor.info.executor); // it is no more to be had than the output
  }
  stage.tasks.invalidate(partition);
  if (stage.spec->indeterminate) job.lost_versions.emplace(stage.index, partition);
  recall_inputs(job, stage, partition, out);
  if (stage.spec->barrier && stage.state == stage_state::running)
    break_gang(stage, "what the task of partition " + std::to_string(partition) + " had made was lost");
  out.push_back(effects::publish{events::map_output_lost{stage.id, partition, executor.info.executor}});
}

void dag_scheduler::on_refusal(executor_index e, const refusal& r, time_point now, effects::list& out) {
  auto* lease = pool_.find_lease(r.lease);
  if (!lease || lease->executor != e || (!r.attempts.empty() && r.attempts.size() != r.partitions.size())) {
    ++stale_;
    return;
  }
  const auto d = lease->demand;
  std::set<job_id> hit;
  std::vector<std::pair<job_id, error>> failed;
  bool known = !r.stage; // a grant that was refused is not repeated late: its lease is gone then
  const auto give_back = [&](stage_id id, partition_index p, attempt_number attempt) {
    if (!lease->remove(id, p, attempt)) {
      ++stale_;
      return;
    }
    known = true;
    if (!overdue_.empty()) forget_overdue(r.lease, id, p, attempt);
    --pool_[e].in_flight;
    auto* stage = find_stage(id);
    if (!stage) return;
    if (!stage->tasks.is_current(p, attempt, e)) return; // another attempt of the task was faster
    hit.insert(stage->job);
    // Nobody is to blame at first; a task that is refused again and again would keep its job for ever.
    const bool blame = attempt >= task_set::free_attempts && stage->state != stage_state::complete;
    if (stage->spec->barrier) {
      on_gang_failure(*find_job(stage->job), *stage, p, attempt, pool_[e].info.executor, "it was refused: " + r.reason,
                      blame, failure_cause::error, now, out);
      return;
    }
    const auto failures = stage->tasks.requeue(p, attempt, blame);
    if (!blame) return;
    ++stage->failures;
    if (failures >= std::min(find_job(stage->job)->spec->max_task_failures, task_set::max_failures))
      failed.emplace_back(stage->job,
                          make_error(ec::task_failed, "stage " + std::to_string(stage->index) + " (" +
                                                          stage->spec->name + "), partition " + std::to_string(p) +
                                                          " was refused by executors " + std::to_string(attempt + 1) +
                                                          " times, the last time because: " + r.reason));
  };
  for (std::size_t i = 0; i < r.partitions.size(); ++i)
    give_back(r.stage, r.partitions[i], r.attempts.empty() ? 0 : r.attempts[i]);
  if (!known) return;
  out.push_back(effects::publish{events::lease_refused{r.lease, pool_[e].info.executor, r.reason}});
  // The tasks go elsewhere.
  if (r.build_mismatch) {
    pool_.bar(e, d);
    scarce_due_ = gather_due_ = true;
  } else {
    pool_.mark_refused(e, d, now + options_.refusal_pause, r.reason);
  }
  drop_claims(e);
  if (!r.stage) {
    // The grant itself: nothing that was sent along with it has started, and there is nothing to give back there.
    const auto runs = lease->runs;
    for (const auto& run : runs)
      for (auto p = run.first; p < run.first + run.count; ++p) give_back(run.stage, p, run.attempt);
    drop_lease(*lease, false, now, out);
  } else {
    lease->draining = true;
    heard_of(*lease, now);
    refill_.push_back(r.lease);
  }
  for (const auto& [id, why] : failed)
    if (auto* job = find_job(id); job && !job->finished()) fail(*job, why, now, out);
  for (const auto id : hit)
    if (auto* job = find_job(id); job && !job->finished()) settle(*job, now, out);
}

} // namespace troupe
