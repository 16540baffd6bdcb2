// What waits for executors that are not there: feasibility, time-outs, and what the allocator hears of it.

#include <algorithm>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// Asks when a job is submitted, so that a stage that can never run fails the job before its first task.
void dag_scheduler::ask_feasibility(job_run& job, time_point now) {
  const auto must_run = stages_to_run(job);
  for (const auto& stage : job.stages)
    for (const auto d : stage.demands()) {
      if (!must_run[stage.index] || has_enough(stage, d)) continue;
      const auto shape = pool_.demand_of(d).shape;
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
  const auto is_satisfied = [&](demand_index d) { return has_enough(stage, d); };
  if (std::any_of(stage.demands().begin(), stage.demands().end(), is_satisfied)) return false;
  return std::any_of(stage.demands().begin(), stage.demands().end(),
                     [&](demand_index d) { return job.unanswered.contains(pool_.demand_of(d).shape); });
}

/// No executor satisfies it, and none that does can ever be had; for a gang: nor so many that it has room.
bool dag_scheduler::is_impossible(const stage_run& stage, demand_index d) const {
  // That none can be had for a demand that runs anywhere is not the end: one that is there for another profile may do.
  if (has_enough(stage, d) || !pool_.excluded_from(d).empty() || pool_.demand_of(d).any_executor) return false;
  const auto answer = answers_.find(pool_.demand_of(d).shape);
  if (answer == answers_.end() || !answer->second.fixed) return false;
  if (!stage.spec->barrier) return !answer->second.feasible;
  if (options_.matching == profile_matching::exact) return false; // see passes_slot_check
  return most_slots(d) < stage.tasks.size();
}

/// Whether some lane that waits for it needs more than is there.
bool dag_scheduler::is_unsatisfied(demand_index d) const {
  const auto lanes = ready_.find(d);
  return lanes != ready_.end() && std::any_of(lanes->second.begin(), lanes->second.end(),
                                              [&](const auto& entry) { return !has_enough(*entry.second->stage, d); });
}

/// Asks for executors of the next alternative where a stage has had no room for so long, and at once where what it
/// would rather have can never be had.
void dag_scheduler::open_alternatives(time_point now) {
  for (const auto& [d, lanes] : ready_)
    for (const auto& [r, lane] : lanes) {
      if (d != lane->demands.front()) continue; // each lane once
      auto& opened = lane->opened;
      const auto all = lane->demands.size();
      if (opened < all && now - lane->served >= options_.alternative_wait) {
        ++opened;
        lane->served = now; // for the one after it
        load_due_ = true;
      }
      for (; opened < all && is_impossible(*lane->stage, lane->demands[opened - 1]); ++opened) load_due_ = true;
    }
}

/// What would help a demand that nobody satisfies, to follow the reason.
std::string dag_scheduler::cure(demand_index d, const feasibility& answer) const {
  const auto nearest = pool_.nearest(d);
  // Where the resources are there, more of them are no help; waiting_for has said what is.
  if (nearest && nearest->lacks.empty() && nearest->wrong_program) return {};
  return "; " + answer.sentence;
}

/// The same for all that a lane may run as.
std::string dag_scheduler::cures(const task_lane& lane) const {
  std::string text;
  for (const auto d : lane.demands)
    if (const auto answer = answers_.find(pool_.demand_of(d).shape);
        answer != answers_.end() && !answer->second.feasible)
      text += cure(d, answer->second);
    else if (lane.stage->spec->barrier && answer != answers_.end())
      text += "; at most " + std::to_string(most_slots(d)) +
              " could run at once here: make fewer partitions, or a larger cluster";
  return text;
}

/// Why the job can never end: tasks are left, or will be, that no executor satisfies and for which none can ever be
/// had.
std::optional<error> dag_scheduler::hopeless(const job_run& job) const {
  const auto must_run = stages_to_run(job);
  for (const auto& stage : job.stages) {
    if (!must_run[stage.index]) continue;
    for (const auto& [number, lane] : stage.lanes) {
      // What runs, runs; and nobody needs a copy.
      if ((number != 0 || stage.state == stage_state::running) && stage.tasks.pending(number) == 0) continue;
      if (std::all_of(lane.demands.begin(), lane.demands.end(),
                      [&](demand_index d) { return is_impossible(stage, d); }))
        return make_error(ec::infeasible, waiting_for(lane) + cures(lane));
    }
  }
  return std::nullopt;
}

/// The clock of the infeasible time-out runs while a stage waits that no executor satisfies.
void dag_scheduler::watch_unsatisfied(time_point now) {
  std::erase_if(unsatisfied_, [&](const auto& entry) { return !is_unsatisfied(entry.first); });
  for (const auto& [d, stages] : ready_) {
    if (!is_unsatisfied(d) || !unsatisfied_.try_emplace(d, now).second) continue;
    load_due_ = true;
    const auto shape = pool_.demand_of(d).shape;
    launch_failures_.erase(shape); // from here on they count
    certain_failures_.erase(shape);
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
  open_alternatives(now);
  schedule(now, out);
}

void dag_scheduler::on_allocation(const std::vector<shape_status>& shapes) {
  allocation_.clear();
  for (const auto& s : shapes) allocation_.emplace(s.shape, s);
}

void dag_scheduler::on_launch_failed(shape_id shape, const std::string& detail, bool is_certain) {
  launch_failures_[shape] = detail;
  auto& in_a_row = certain_failures_[shape];
  in_a_row = is_certain ? in_a_row + 1 : 0;
}

/// Whether executors for a demand that has waited since then have had their time.
bool dag_scheduler::have_had_their_time(demand_index d, time_point since, time_point now) const {
  constexpr std::uint32_t enough = 3; // one may have ended so by chance
  if (now - since >= options_.infeasible_timeout) return true;
  const auto certain = certain_failures_.find(pool_.demand_of(d).shape);
  return certain != certain_failures_.end() && certain->second >= enough;
}

/// Nothing has satisfied it for too long. Where an executor can be had, one waits for room; unless those that were
/// started for it do not live, or run another program.
bool dag_scheduler::is_overdue(const stage_run& stage, demand_index d, time_point now) const {
  const auto waiting = unsatisfied_.find(d);
  if (waiting == unsatisfied_.end() || !have_had_their_time(d, waiting->second, now)) return false;
  if (has_enough(stage, d)) return false; // another gang lacks something
  const auto shape = pool_.demand_of(d).shape;
  const auto answer = answers_.find(shape);
  const bool can_be_had = answer != answers_.end() && answer->second.feasible &&
                          (!stage.spec->barrier || most_slots(d) >= stage.tasks.size());
  return !can_be_had || launch_failures_.contains(shape) || pool_.has_wrong_program(d);
}

/// Why a lane waits no longer: all that it may run as is overdue.
std::optional<std::string> dag_scheduler::given_up(const task_lane& lane, time_point now) const {
  if (lane.stage->tasks.pending(lane.number) == 0) return std::nullopt; // it wants copies, which nobody needs
  if (unschedulable_.contains(rank_of(lane))) return std::nullopt;      // has a time-out of its own
  if (!std::all_of(lane.demands.begin(), lane.demands.end(),
                   [&](demand_index d) { return is_overdue(*lane.stage, d, now); }))
    return std::nullopt;
  const auto why = waiting_for(lane) + cures(lane);
  if (std::none_of(lane.demands.begin(), lane.demands.end(),
                   [&](demand_index d) { return now - unsatisfied_.at(d) >= options_.infeasible_timeout; }))
    return why; // others would not come either
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(options_.infeasible_timeout).count();
  return why + " (waited " + std::to_string(waited) + "ms: troupe.scheduler.infeasible-timeout)";
}

void dag_scheduler::on_tick(time_point now, effects::list& out) {
  std::map<job_id, std::string> late;
  for (const auto& [d, since] : unsatisfied_) {
    if (!have_had_their_time(d, since, now)) continue;
    for (const auto& [r, lane] : ready_.at(d))
      if (auto why = given_up(*lane, now)) late.try_emplace(r.job, std::move(*why));
  }
  for (const auto& [id, why] : late) fail(*find_job(id), make_error(ec::infeasible, why), now, out);
  open_alternatives(now);
  scarce_due_ = scarce_due_ || (!asking_.empty() && !ready_.empty());
  const bool scarce = scarce_due_;
  const bool overdue = fail_overdue_stages(now, out);
  const bool readmitted = end_exclusions(now, out);
  const bool unschedulable = fail_unschedulable_stages(now, out);
  const bool resubmitted = resubmit(now, out);
  const bool forgiven = pool_.forgive(now);
  const bool copies = speculate(now, out);
  const bool late_rounds = fail_late_rounds(now);
  gather_due_ = gather_due_ || !gangs_.empty();
  const auto held = held_.size();
  admit(now, out);
  const bool recalled = take_back(now);
  if (!late.empty() || overdue || readmitted || unschedulable || resubmitted || forgiven || scarce || copies ||
      recalled || late_rounds || gather_due_ || is_declining() || held != held_.size())
    schedule(now, out);
  report_load(now, out);
}

/// For so many tasks of the lane executors are wanted. Of the gangs that wait only the one that gathers wants any: what
/// another one got would stand idle.
std::uint64_t dag_scheduler::tasks_without_room(const task_lane& lane, demand_index d) const {
  if (lane.preference_of(d) >= lane.opened || is_impossible(*lane.stage, d)) return 0;
  const std::uint64_t pending = lane.pending();
  if (!lane.stage->spec->barrier) return pending;
  if (options_.matching == profile_matching::compatible && !is_first_gang(lane)) return 0;
  const auto free = static_cast<std::uint64_t>(pool_.free_slots(d));
  return pending > free ? pending - free : 0;
}

/// How many tasks of the demand an executor runs at once that is exactly of its shape.
std::int64_t dag_scheduler::slots_on_its_shape(const demand& what) const {
  if (!what.any_executor) return slots_of(*what.content).slots;
  auto whole = shapes_.at(what.shape).content;
  whole.task = what.content->task;
  return slots_of(whole).slots;
}

void dag_scheduler::report_load(time_point now, effects::list& out) {
  load_report report;
  std::map<shape_id, shape_load> loads;
  for (const auto& [d, lanes] : ready_) {
    const auto& what = pool_.demand_of(d);
    std::uint64_t pending = 0;
    bool none = false; // of those that want executors now
    for (const auto& [r, lane] : lanes) {
      const auto wants = tasks_without_room(*lane, d);
      pending += wants;
      none = none || (wants > 0 && !has_enough(*lane->stage, d));
    }
    if (pending == 0) continue;
    auto& load = loads[what.shape];
    load.shape = what.shape;
    const auto slots = std::max<std::int64_t>(1, slots_on_its_shape(what));
    const auto wanted = (pending + static_cast<std::uint64_t>(slots) - 1) / static_cast<std::uint64_t>(slots);
    const auto clamp = [](std::uint64_t n) {
      return static_cast<std::uint32_t>(std::min<std::uint64_t>(n, 0xffff'ffff));
    };
    load.waiting_tasks = clamp(std::uint64_t{load.waiting_tasks} + pending);
    if (none && pool_.has_wrong_program(d)) continue; // another one would not help
    load.executors_wanted = clamp(std::uint64_t{load.executors_wanted} + wanted);
    load.satisfied_by_none = load.satisfied_by_none || none;
  }
  for (const auto& [shape, load] : loads) {
    if (announced_shapes_.insert(shape).second) report.new_shapes.push_back({shape, shapes_.at(shape).content});
    report.loads.push_back(load);
  }
  for (const auto id : idle_) {
    const auto& record = pool_[pool_.find(id)];
    if (record.held) continue; // it is waited for
    const auto idle = holds_unread(record) ? duration::zero() : now - record.idle_since;
    report.idle.push_back({id, record.info.request, static_cast<std::uint64_t>(idle.count()), record.is_serving(),
                           record.status == executor_record::state::draining, kept_.has_any(id)});
  }
  for (const auto& [id, e] : pool_.all())
    if (pool_[e].info.request) report.present.push_back(pool_[e].info.request);
  report.number = ++load_number_;
  out.push_back(effects::report_load{std::move(report)});
}

} // namespace troupe
