// Output files of commands: put in place by who has accepted the attempt, and by nobody else.
//
// The path of an attempt: its executor stages its files beside their target and reports success; the task is
// `publishing` from then on, and every other attempt of it is late. The shell of this core publishes the staged files,
// unless it does not see them. Then their executor gets the right to do it: once for a task, and to no other attempt
// before that one has said how it went or its process is known to be dead. The task is done when its files are in
// place. Where they cannot be put there the job has failed: to run the command again would not mend that.

#include <algorithm>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>
#include <troupe/runtime/scheduling/result_entry.hpp>

namespace troupe {

/// True when the task leaves files that are to be published.
bool dag_scheduler::publishes(const stage_run& stage, partition_index partition) {
  return !stage.spec->is_native() && stage.spec->arguments && has_outputs((*stage.spec->arguments)[partition]);
}

/// True when executors may have staged files for the stage.
bool dag_scheduler::stages_files(const stage_run& stage) {
  if (stage.spec->is_native() || !stage.spec->arguments) return false;
  for (partition_index p = 0; p < stage.tasks.size(); ++p)
    if (publishes(stage, p)) return true;
  return false;
}

/// The task has an accepted attempt. Of a gang nothing is published before all of it has.
void dag_scheduler::begin_publication(stage_run& stage, const accepted_attempt& what, effects::list& out) {
  auto& entry = publications_.add(what);
  if (stage.spec->barrier)
    publish_gang(stage, out);
  else
    publish(stage, entry, out);
}

/// Publishes a gang when the attempts of all its tasks were accepted.
void dag_scheduler::publish_gang(const stage_run& stage, effects::list& out) {
  if (stage.tasks.publishing() + stage.tasks.done() < stage.tasks.size()) return;
  for (const auto& task : publications_.of_stage(stage.id))
    if (auto& waits = publications_.at(task); !waits.begun) publish(stage, waits, out);
}

void dag_scheduler::publish(const stage_run& stage, accepted_attempt& what, effects::list& out) {
  what.begun = true;
  out.push_back(effects::publish_staged{staged_of(stage, what.task.partition, what.attempt, what.executor)});
}

effects::staged_attempt dag_scheduler::staged_of(const stage_run& stage, partition_index partition,
                                                 attempt_number attempt, executor_id executor) {
  return {stage.job, stage.id, partition, attempt, executor, stage.program, stage.spec->arguments};
}

void dag_scheduler::on_publications(const std::vector<publication>& ends, time_point now, effects::list& out) {
  for (const auto& end : ends) {
    const auto* what = publications_.find({end.stage, end.partition}, end.attempt);
    if (what && what->begun && !what->granted)
      on_publication(*what, end, now, out);
    else
      ++stale_; // its job is over
  }
  schedule(now, out);
}

/// The same, from the executor that was given the right.
void dag_scheduler::on_publication_report(executor_index e, const publication& end, time_point now,
                                          effects::list& out) {
  const auto* what = publications_.find({end.stage, end.partition}, end.attempt);
  if (what && what->granted && what->executor == pool_[e].info.executor)
    on_publication(*what, end, now, out);
  else
    ++stale_;
}

void dag_scheduler::on_publication(const accepted_attempt& entry, const publication& end, time_point now,
                                   effects::list& out) {
  const auto what = entry; // the entry goes
  auto& stage = *find_stage(end.stage);
  auto& job = *find_job(stage.job);
  const auto e = pool_.find(what.executor);
  if (end.outcome == publication_outcome::not_seen && !what.granted && !what.discarded && e != no_executor) {
    if (auto names = decode_outputs((*stage.spec->arguments)[end.partition])) {
      orders_for(e).rights.push_back({end.stage, end.partition, end.attempt, std::move(*names)});
      publications_.at(what.task).granted = true;
      return;
    }
  }
  publications_.remove(what.task);
  const bool was_complete = stage.tasks.complete();
  if (what.discarded)
    (void) stage.tasks.requeue(end.partition, end.attempt, false);
  else if (end.outcome == publication_outcome::published)
    on_published(job, stage, what, now, out);
  else if (end.outcome == publication_outcome::not_seen && !what.granted && e == no_executor)
    lose_publication(job, stage, what, now, out);
  else
    on_unpublished(job, stage, what, end, now, out);
  if (job.finished()) return;
  const bool changed = stage.tasks.status_of(end.partition) != task_set::status::done;
  if (changed || (!was_complete && stage.tasks.complete()) || std::exchange(job.unsettled, false))
    settle(job, now, out);
}

void dag_scheduler::on_published(job_run& job, stage_run& stage, const accepted_attempt& what, time_point now,
                                 effects::list& out) {
  const auto p = what.task.partition;
  const auto e = pool_.find(what.executor);
  const auto entry = entry_of(*what.batch, what.entry);
  // Whoever does not see the files needs the copy that the executor had.
  if (e == no_executor && entry->kind == result_kind::block) return lose_publication(job, stage, what, now, out);
  stage.tasks.published(p);
  if (e != no_executor) ++pool_[e].tasks_done;
  record_output(job, stage, e, what.batch, what.entry, *entry, now, out);
  if (job.finished()) return;
  out.push_back(effects::publish{events::tasks_succeeded{stage.id, what.lease, what.executor, 1, p}});
  feed(job, stage, p, now);
  consume_inputs(job, stage, p, now);
}

/// The files are not in place: the attempt has failed after all. It is repeated only where nobody sees them any more,
/// since they have gone.
void dag_scheduler::on_unpublished(job_run& job, stage_run& stage, const accepted_attempt& what, const publication& end,
                                   time_point now, effects::list& out) {
  const auto p = what.task.partition;
  const auto& reason = end.reason;
  const bool gone = end.outcome == publication_outcome::not_seen;
  tell_failure(stage,
               {stage.id, p, what.attempt, what.executor, task_status::failed,
                gone ? failure_cause::error : failure_cause::certain, reason},
               reason, out);
  const auto where = "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "), partition " +
                     std::to_string(p) + ", attempt " + std::to_string(what.attempt) + " on executor " +
                     std::to_string(what.executor.value);
  const bool needed = stage.state != stage_state::complete;
  if (gone && stage.spec->barrier)
    return on_gang_failure(job, stage, p, what.attempt, what.executor, where + ": " + reason, needed,
                           failure_cause::error, now, out);
  const auto failures = stage.tasks.requeue(p, what.attempt, needed);
  ++stage.failures;
  const auto allowed = std::min(job.spec->max_task_failures, task_set::max_failures);
  if (needed && !gone)
    fail(job, make_error(ec::task_failed, where + ": " + reason), now, out);
  else if (needed && failures >= allowed)
    fail(job,
         make_error(ec::task_failed, where + ", failure " + std::to_string(failures) + " of " +
                                         std::to_string(allowed) + " allowed: " + reason),
         now, out);
}

/// The executor has gone with what it had staged, before anybody could publish it.
void dag_scheduler::lose_publication(job_run& job, stage_run& stage, const accepted_attempt& what, time_point now,
                                     effects::list& out) {
  const auto p = what.task.partition;
  const std::string why = "its executor was lost before its outputs were published";
  tell_failure(stage, {stage.id, p, what.attempt, what.executor, task_status::lost, failure_cause::lost, why}, why,
               out);
  if (stage.spec->barrier)
    on_gang_failure(job, stage, p, what.attempt, what.executor, "partition " + std::to_string(p) + ": " + why, false,
                    failure_cause::error, now, out);
  else
    (void) stage.tasks.requeue(p, what.attempt, false);
}

/// The executor is gone, and with it what it alone might have published. Attempts that the shell publishes are left
/// alone: it may have done so already, and says how it went. Adds the jobs that are concerned to `hit`, and those that
/// cannot go on to `failed`.
/// @param ended its process is known to be dead, or has said that it publishes nothing more
void dag_scheduler::lose_publications(executor_id executor, bool ended, const std::string& cause,
                                      const std::string& host, std::set<job_id>& hit,
                                      std::vector<std::pair<job_id, error>>& failed, time_point now,
                                      effects::list& out) {
  for (const auto& task : publications_.of_executor(executor)) {
    const auto what = publications_.at(task);
    if (!what.granted) continue;
    auto& stage = *find_stage(task.stage);
    auto& job = *find_job(stage.job);
    if (!ended) {
      failed.emplace_back(
          job.id, make_error(ec::task_failed,
                             "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "), partition " +
                                 std::to_string(task.partition) + ", attempt " + std::to_string(what.attempt) +
                                 ": executor " + std::to_string(executor.value) + " on " + host +
                                 " had the right to publish its outputs below " +
                                 std::get<command_program>(*stage.program).output_directory +
                                 ", which the driver does not see, and was lost (" + cause +
                                 ") before it said that it has; it may still do so, so no other attempt may run: end "
                                 "that process, then submit the job again"));
      continue;
    }
    hit.insert(job.id);
    publications_.remove(task);
    if (what.discarded)
      (void) stage.tasks.requeue(task.partition, what.attempt, false);
    else
      lose_publication(job, stage, what, now, out);
  }
}

/// A gang that failed: attempts of it that are not being published are taken back, the others when it is known how
/// that went.
void dag_scheduler::discard_publications(stage_run& stage, effects::list& out) {
  for (const auto& task : publications_.of_stage(stage.id)) {
    auto& what = publications_.at(task);
    what.discarded = true;
    if (what.begun) continue;
    out.push_back(effects::discard_staged{staged_of(stage, task.partition, what.attempt, what.executor)});
    (void) stage.tasks.requeue(task.partition, what.attempt, false);
    publications_.remove(task);
  }
}

/// Tasks that are being published are exactly those that have an entry.
std::optional<std::string> dag_scheduler::fault_of_publications() const {
  std::size_t publishing = 0;
  for (const auto& [id, where] : stages_) {
    const auto& stage = jobs_.at(where.first).stages[where.second];
    publishing += stage.tasks.publishing();
    for (const auto& task : publications_.of_stage(id))
      if (stage.tasks.status_of(task.partition) != task_set::status::publishing)
        return "partition " + std::to_string(task.partition) + " is to be published and was not accepted";
  }
  if (publishing != publications_.size()) return "a task that was accepted is published by nobody";
  return std::nullopt;
}

} // namespace troupe
