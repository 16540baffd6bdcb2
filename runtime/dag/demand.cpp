// What waits for executors that are not there: feasibility, time-outs, and what the allocator hears of it.

#include <algorithm>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// Asks when a job is submitted, so that a stage that can never run fails the job before its first task.
void dag_scheduler::ask_feasibility(job_run& job, time_point now) {
  for (const auto& stage : job.stages) {
    if (pool_.satisfying(stage.demand) > 0) continue;
    const auto shape = pool_.demand_of(stage.demand).shape;
    const auto answer = answers_.find(shape);
    if (answer == answers_.end()) job.unanswered.insert(shape);
    // What an elastic cluster said once may have changed; a fixed one says the same for ever.
    if (answer == answers_.end() || !answer->second.fixed) ask(shape, now);
  }
}

void dag_scheduler::ask(shape_id shape, time_point now) {
  const auto [it, is_new] = asked_.try_emplace(shape, now);
  // The answer is on its way, unless it is so late that the question must have been lost.
  if (!is_new && now - it->second < options_.feasibility_wait) return;
  it->second = now;
  questions_.push_back(shape);
}

bool dag_scheduler::is_unanswered(const job_run& job, const stage_run& stage) const {
  return pool_.satisfying(stage.demand) == 0 && job.unanswered.contains(pool_.demand_of(stage.demand).shape);
}

/// What would help a demand that nobody satisfies, to follow the reason.
std::string dag_scheduler::cure(demand_index d, const feasibility& answer) const {
  const auto nearest = pool_.nearest(d);
  // Where the resources are there, more of them are no help.
  if (nearest && nearest->lacks.empty() && nearest->wrong_program)
    return "; start one from the very program that submitted the job, by its own --config-file";
  return "; " + answer.sentence;
}

/// Why the job can never end: a stage is left that no executor satisfies and for which none can ever be had.
std::optional<error> dag_scheduler::hopeless(const job_run& job) const {
  for (const auto& stage : job.stages) {
    if (stage.state == stage_state::complete || pool_.satisfying(stage.demand) > 0) continue;
    // That none can be had for it is not the end: one that is there for another profile may do. The time-out decides.
    if (pool_.demand_of(stage.demand).any_executor) continue;
    const auto answer = answers_.find(pool_.demand_of(stage.demand).shape);
    if (answer != answers_.end() && !answer->second.feasible && answer->second.fixed)
      return make_error(ec::infeasible, waiting_for(stage) + cure(stage.demand, answer->second));
  }
  return std::nullopt;
}

/// The clock of the infeasible time-out runs while a stage waits that no executor satisfies.
void dag_scheduler::watch_unsatisfied(time_point now) {
  std::erase_if(unsatisfied_,
                [&](const auto& entry) { return !ready_.contains(entry.first) || pool_.satisfying(entry.first) > 0; });
  for (const auto& [d, stages] : ready_) {
    if (pool_.satisfying(d) > 0 || !unsatisfied_.try_emplace(d, now).second) continue;
    load_due_ = true;
    const auto shape = pool_.demand_of(d).shape;
    launch_failures_.erase(shape); // from here on they count
    if (const auto answer = answers_.find(shape); answer == answers_.end() || !answer->second.fixed) ask(shape, now);
  }
}

void dag_scheduler::on_feasibility(shape_id shape, const feasibility& answer, time_point now, effects::list& out) {
  answers_[shape] = answer;
  asked_.erase(shape);
  for (const auto id : held_) find_job(id)->unanswered.erase(shape);
  for (auto& [id, job] : jobs_)
    if (!job.finished())
      if (auto why = hopeless(job)) fail(job, std::move(*why), now, out);
  admit(now, out);
  schedule(now, out);
}

void dag_scheduler::on_launch_failed(shape_id shape, const std::string& detail) { launch_failures_[shape] = detail; }

void dag_scheduler::on_tick(time_point now, effects::list& out) {
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(options_.infeasible_timeout).count();
  std::map<job_id, std::string> late;
  for (const auto& [d, since] : unsatisfied_) {
    if (now - since < options_.infeasible_timeout) continue;
    // Where an executor can be had, the job waits for room; unless those that were started for it do not live, or run
    // another program.
    const auto shape = pool_.demand_of(d).shape;
    const auto answer = answers_.find(shape);
    const bool refused = answer != answers_.end() && !answer->second.feasible;
    if (answer != answers_.end() && !refused && !launch_failures_.contains(shape) && !pool_.has_wrong_program(d))
      continue;
    for (const auto& [r, stage] : ready_.at(d))
      late.try_emplace(r.job, waiting_for(*stage) + (refused ? cure(d, answer->second) : "") + " (waited " +
                                  std::to_string(waited) + "ms: troupe.scheduler.infeasible-timeout)");
  }
  for (const auto& [id, why] : late) fail(*find_job(id), make_error(ec::infeasible, why), now, out);
  const bool resubmitted = resubmit(now, out);
  const bool forgiven = pool_.forgive(now);
  const auto held = held_.size();
  admit(now, out);
  if (!late.empty() || resubmitted || forgiven || held != held_.size()) schedule(now, out);
  report_load(now, out);
}

/// How many tasks of the demand an executor runs at once that is exactly of its shape.
std::int64_t dag_scheduler::slots_on_its_shape(const demand& what) const {
  if (!what.any_executor) return slots_of(*what.content).slots;
  auto whole = shapes_.at(what.shape);
  whole.task = what.content->task;
  return slots_of(whole).slots;
}

void dag_scheduler::report_load(time_point now, effects::list& out) {
  load_report report;
  std::map<shape_id, shape_load> loads;
  for (const auto& [d, stages] : ready_) {
    const auto& what = pool_.demand_of(d);
    auto& load = loads[what.shape];
    load.shape = what.shape;
    std::uint64_t pending = 0;
    for (const auto& [r, stage] : stages) pending += stage->tasks.pending();
    const auto slots = std::max<std::int64_t>(1, slots_on_its_shape(what));
    const auto wanted = (pending + static_cast<std::uint64_t>(slots) - 1) / static_cast<std::uint64_t>(slots);
    const auto clamp = [](std::uint64_t n) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, 0xffff'ffff));
    };
    load.waiting_tasks = clamp(std::uint64_t{load.waiting_tasks} + pending);
    const bool none = pool_.satisfying(d) == 0;
    if (none && pool_.has_wrong_program(d)) continue; // another one would not help
    load.executors_wanted = clamp(std::uint64_t{load.executors_wanted} + wanted);
    load.satisfied_by_none = load.satisfied_by_none || none;
  }
  for (const auto& [shape, load] : loads) {
    if (announced_shapes_.insert(shape).second) report.new_shapes.push_back({shape, shapes_.at(shape)});
    report.loads.push_back(load);
  }
  for (const auto id : idle_) {
    const auto& record = pool_[pool_.find(id)];
    report.idle.push_back({id, record.info.request, static_cast<std::uint64_t>((now - record.idle_since).count()),
                           !record.kept.empty(), record.status == executor_record::state::draining});
  }
  for (const auto& [id, e] : pool_.all())
    if (pool_[e].info.request) report.present.push_back(pool_[e].info.request);
  report.number = ++load_number_;
  out.push_back(effects::report_load{std::move(report)});
}

} // namespace troupe
