// What the dag scheduler tells those who ask: progress, placements, reasons, and whether it is consistent.

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/spelling.hpp>

namespace troupe {

std::optional<std::vector<task_placement>> dag_scheduler::placements(job_id id) const {
  std::vector<task_placement> all;
  if (const auto old = ended_.find(id); old != ended_.end()) {
    for (const auto& stage : old->second.placements) stage.append_to(all);
    return all;
  }
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return std::nullopt;
  for (const auto& stage : it->second.stages) stage.placements().append_to(all);
  return all;
}

std::vector<dag_scheduler::executor_view> dag_scheduler::executors() const {
  std::vector<executor_view> views;
  for (const auto& [id, e] : pool_.all()) {
    const auto& r = pool_[e];
    auto kept = kept_.count(id);
    for (const auto& [stage, partitions] : r.kept) kept += partitions.size();
    views.push_back({&r.info, r.status == executor_record::state::draining, static_cast<std::uint32_t>(r.leases.size()),
                     r.in_flight, r.tasks_done, static_cast<std::uint32_t>(r.excluded.size()), kept});
  }
  return views;
}

std::optional<job_progress> dag_scheduler::progress(job_id id, time_point now) const {
  if (const auto it = ended_.find(id); it != ended_.end()) return it->second.progress;
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return std::nullopt;
  return progress_of(it->second, now);
}

std::vector<job_progress> dag_scheduler::all_progress(time_point now) const {
  std::vector<job_progress> all;
  for (const auto& [id, job] : ended_) all.push_back(job.progress);
  for (const auto& [id, job] : jobs_) all.push_back(progress_of(job, now));
  return all;
}

job_progress dag_scheduler::progress_of(const job_run& job, time_point now) const {
  const auto nanoseconds = [](duration d) { return static_cast<std::uint64_t>(std::max<std::int64_t>(0, d.count())); };
  job_progress p;
  p.job = job.id;
  p.name = job.spec->name;
  p.group = job.spec->group;
  p.state = job.state;
  p.counted = job.accumulators.totals();
  p.wall_nanoseconds = nanoseconds((job.finished() ? job.ended : now) - job.submitted);
  bool running = false;
  for (const auto& stage : job.stages) {
    stage_progress s;
    s.stage = stage.id;
    s.name = stage.spec->name;
    const auto& demand = pool_.demand_of(stage.demand());
    s.profile_number = demand.profile;
    s.profile = demand.profile == default_profile_id ? "default" : to_string(*demand.content);
    s.state = stage.state;
    s.attempt = stage.attempt;
    s.tasks = stage.tasks.size();
    s.running = job.finished() ? 0 : stage.tasks.running();
    s.done = stage.tasks.done();
    s.failures = stage.failures;
    s.executors = stage.executors_used();
    s.run_nanoseconds = stage.run_nanoseconds;
    s.cpu_nanoseconds = stage.cpu_nanoseconds;
    s.peak_memory = stage.peak_memory;
    s.output_bytes = stage.output_bytes;
    s.left = stage.left;
    if (stage.was_submitted)
      s.wall_nanoseconds =
          nanoseconds((stage.state == stage_state::complete || job.finished() ? stage.ended : now) - stage.started);
    running = running || s.running > 0;
    p.stages.push_back(std::move(s));
  }
  if (!job.finished() && !running) p.waiting_for = waiting_for(job);
  return p;
}

std::string dag_scheduler::waiting_for(const job_run& job) const {
  if (job.state == job_state::accepted)
    for (const auto& stage : job.stages)
      if (is_unanswered(job, stage))
        return "stage " + std::to_string(stage.index) + " (" + stage.spec->name +
               "): asking whether an executor for its profile can be had (" +
               to_string(*pool_.demand_of(stage.demand()).content) + ")";
  if (job.failed_slot_checks > 0 && job.state == job_state::accepted)
    for (const auto& stage : job.stages)
      if (stage.spec->barrier)
        if (const auto text = gang_waits_for(stage.lanes.begin()->second); !text.empty())
          return "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "): " + text;
  for (const auto& stage : job.stages)
    if (stage.state == stage_state::running && stage.tasks.pending() > 0)
      return stage.paused
                 ? "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "): " + pipe_reason(job, stage)
                 : waiting_for(stage);
  for (const auto& stage : job.stages)
    if (held_back_.contains(stage.id))
      return "stage " + std::to_string(stage.index) + " (" + stage.spec->name +
             "): its output or its input was lost; it runs again in a moment, with what else is found missing by then";
  return {};
}

/// Of its lanes the one whose tasks have been tried most often.
std::string dag_scheduler::waiting_for(const stage_run& stage) const {
  for (auto lane = stage.lanes.rbegin(); lane != stage.lanes.rend(); ++lane)
    if (stage.tasks.pending(lane->first) > 0) return waiting_for(lane->second);
  return waiting_for(stage.lanes.begin()->second);
}

namespace {

/// The executors that have room for it and run another program: which those are, and what to start. "" where there are
/// none.
std::string other_programs(const executor_pool& pool, demand_index d) {
  const auto& wanted = pool.demand_of(d);
  if (wanted.build_id.empty()) return {};
  constexpr std::size_t shown = 3;
  const auto short_form = [](const std::string& build) { return build.substr(0, 12); };
  std::size_t plain = 0;
  std::map<std::string, std::size_t> builds;
  for (const auto& [id, e] : pool.all()) {
    const auto& record = pool[e];
    if (record.status != executor_record::state::active || !satisfies(record.info.capacity, *wanted.content)) continue;
    if (!record.info.native)
      ++plain;
    else if (record.info.build_id != wanted.build_id)
      ++builds[record.info.build_id];
  }
  if (plain == 0 && builds.empty()) return {};
  std::string text = plain > 0 ? ", " + std::to_string(plain) + " the plain troupe program" : "";
  std::size_t left = builds.size();
  for (auto build = builds.begin(); build != builds.end() && builds.size() - left < shown; ++build, --left)
    text += ", " + std::to_string(build->second) + " build " + short_form(build->first);
  if (left > 0) text += ", and others";
  return ": those with room for it run other programs (" + text.substr(2) + "; the job is of build " +
         short_form(wanted.build_id) +
         "); start one from the same executable, with the same libraries, by PROGRAM --config-file=FILE "
         "(docs/nodes-by-hand.md)";
}

} // namespace

std::string dag_scheduler::waiting_for(const task_lane& lane) const {
  const auto& stage = *lane.stage;
  const auto prefix = "stage " + std::to_string(stage.index) + " (" + stage.spec->name + "): ";
  if (stage.spec->barrier)
    if (const auto text = gang_waits_for(lane); !text.empty()) return prefix + text;
  for (const auto d : lane.demands) {
    const auto fit = pool_.satisfying(d);
    if (fit == 0) continue;
    const auto reason = pool_.refusal_of(d);
    if (const auto kept = kept_executors(d); !kept.empty()) return prefix + kept;
    if (lane.number == 0 && stage.declined_since)
      return prefix + "its tasks would rather run near their data than where there is room "
                      "(troupe.locality.executor-wait, troupe.locality.host-wait)";
    if (const auto excluded = excluded_executors(d); !excluded.empty())
      return prefix + excluded + (fit == 1 ? ", the other one is busy" : ", the others are busy") + lost_slots(d);
    return prefix +
           (fit == 1 ? "the one executor that fits is busy"
                     : "the " + std::to_string(fit) + " executors that fit are busy") +
           held_executors(d) + (reason ? " or has refused it (" + *reason + ")" : "") + lost_slots(d);
  }
  for (const auto d : lane.demands)
    if (const auto excluded = excluded_executors(d); !excluded.empty()) return prefix + excluded;
  auto text = prefix + "no executor satisfies its profile";
  // First, since a terminal may have no room for what follows. Where the cluster starts executors, and has started none
  // in vain, nobody else has to.
  for (const auto d : lane.demands)
    if (const auto answer = answers_.find(pool_.demand_of(d).shape);
        pool_.has_wrong_program(d) || (answer != answers_.end() && !answer->second.feasible))
      if (const auto others = other_programs(pool_, d); !others.empty()) {
        text += others;
        break;
      }
  if (escalations_of(lane.number) > 0) text += " with the memory that tasks which ran out of it are tried again with";
  for (const auto d : lane.demands) text += (d == lane.demands.front() ? "" : ", nor its alternative") + lack_of(d);
  if (unschedulable_.contains(rank_of(lane)))
    for (const auto d : lane.demands)
      if (const auto excluded = exclusions_.describe(pool_.demand_of(d).profile); !excluded.empty())
        text += "; excluded after failures (troupe.exclude-on-failure.enabled): " + excluded;
  return text;
}

/// How many that fit are held for a gang; "" where none is.
std::string dag_scheduler::held_executors(demand_index d) const {
  if (!gathering_) return {};
  const auto held = std::count_if(gathering_->held.begin(), gathering_->held.end(),
                                  [&](executor_index e) { return pool_.is_present(e) && pool_.satisfies(e, d); });
  return held == 0 ? std::string{}
                   : ", or held (" + std::to_string(held) + ") for " + who_gathers() + ", whose tasks start together";
}

/// Where some that fit are kept for other stages: which, how many, and how long.
std::string dag_scheduler::kept_executors(demand_index d) const {
  if (pool_.kept_from(d).empty()) return {};
  std::uint32_t kept = 0;
  std::string resource;
  for (const auto& [id, e] : pool_.all())
    if (pool_.satisfies(e, d))
      if (const auto name = pool_.kept_for(e, d); !name.empty()) {
        ++kept;
        resource = name;
      }
  if (kept == 0) return {};
  const auto fit = pool_.satisfying(d);
  return std::to_string(kept) + " of the " + std::to_string(fit) + (fit == 1 ? " executor" : " executors") +
         " that fit " + (kept == 1 ? "is" : "are") + " kept for stages that ask for " + resource +
         (options_.scarce_resource_wait == never ? "" : " until it has waited long enough") +
         " (troupe.scheduler.scarce-resource-wait)" + (kept == fit ? "" : ", the others are busy");
}

/// Resources of the demand that no executor has, and what some have whose name is near.
std::vector<std::pair<std::string, std::string>> dag_scheduler::misspelt(demand_index d) const {
  std::set<std::string> known;
  for (const auto& [id, e] : pool_.all())
    for (const auto& [name, pool] : pool_[e].info.capacity.custom) known.insert(name);
  const std::vector<std::string> names{known.begin(), known.end()};
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [name, request] : pool_.demand_of(d).content->executor)
    if (!is_builtin_executor_resource(name) && !known.contains(name))
      if (auto meant = nearest_name(name, names); !meant.empty()) found.emplace_back(name, std::move(meant));
  return found;
}

/// Its content, and what comes nearest to it.
std::string dag_scheduler::lack_of(demand_index d) const {
  const auto& demand = pool_.demand_of(d);
  auto text = " (" + to_string(*demand.content) + ")";
  if (const auto nearest = pool_.nearest(d)) {
    const auto& info = pool_[nearest->executor].info;
    if (!nearest->lacks.empty() || !nearest->other.empty()) // else there are too few of them
      text += "; the nearest, executor " + std::to_string(info.executor.value) + " on " + info.host;
    const char* comma = ", ";
    for (const auto& lack : nearest->lacks) text += std::exchange(comma, " and ") + to_string(lack);
    if (!nearest->other.empty()) text += comma + nearest->other;
    for (const auto& [wrong, meant] : misspelt(d)) text += "; nobody has " + wrong + ": did you mean " + meant + "?";
  } else {
    text += "; there is no executor yet";
  }
  if (const auto it = launch_failures_.find(demand.shape); it != launch_failures_.end())
    text += "; the last one that was started for it: " + it->second;
  return text;
}

bool dag_scheduler::is_idle() const {
  for (const auto& [id, job] : ended_)
    if (!job.held.empty()) return false;
  for (const auto& [id, e] : pool_.all())
    if (!pool_[e].leases.empty() || !pool_[e].kept.empty() || !pool_[e].installed.empty()) return false;
  return jobs_.empty() && stages_.empty() && ready_.empty() && held_.empty() && held_back_.empty() && claims_.empty() &&
         unsatisfied_.empty() && unschedulable_.empty() && overdue_.empty() && asking_.empty() && deadlines_.empty() &&
         suspects_.empty() && publications_.size() == 0 && ahead_.empty() && queued_.empty() && gangs_.empty() &&
         !gathering_ && broken_.empty() && meeting_.empty() && pool_.lease_count() == 0;
}

std::optional<std::string> dag_scheduler::fault() const {
  if (auto f = pool_.fault()) return f;
  for (const auto& [id, e] : pool_.all())
    if (pool_[e].leases.empty() != idle_.contains(id))
      return "executor " + std::to_string(id.value) + " is wrongly listed as idle or busy";
  if (idle_.size() > pool_.all().size()) return "an executor that is gone is listed as idle";
  if (auto f = fault_of_tasks()) return f;
  if (auto f = fault_of_sharing()) return f;
  if (auto f = fault_of_exclusions()) return f;
  if (auto f = fault_of_gangs()) return f;
  for (const auto& [d, stages] : ready_) {
    if (stages.empty()) return "a demand is ready without a stage";
    for (const auto& [r, lane] : stages) {
      if (lane->stage->state != stage_state::running) return "a stage that does not run is ready";
      if (lane->stage->paused) return "a stage that is paused is ready";
      if (lane->pending() == 0) return "a lane without pending tasks is ready";
      if (lane->preference_of(d) == lane->demands.size()) return "a lane is ready under another demand";
    }
  }
  for (const auto& [id, a] : overdue_)
    if (const auto* lease = pool_.find_lease(id); !lease || !lease->holds(a.stage, a.partition, a.attempt))
      return "an attempt that has ended is still overdue";
  for (const auto& [d, claimed] : claims_)
    for (const auto& [e, slots] : claimed.slots)
      if (!pool_.kept_for(e, d).empty()) return "an executor is claimed for a demand that it is kept from";
  if (asking_.empty())
    for (const auto& [d, stages] : ready_)
      if (!pool_.kept_from(d).empty()) return "executors are kept although nobody asks";
  for (const auto keeper : kept_.keepers())
    if (pool_.find(keeper) == no_executor) return "an executor that is gone keeps partitions";
  if (held_back_.empty() == resubmit_at_.has_value()) return "the clock of what is held back is wrong";
  for (const auto id : held_back_) {
    const auto it = stages_.find(id);
    if (it == stages_.end()) return "a stage of an ended job is held back";
    if (jobs_.at(it->second.first).stages[it->second.second].state == stage_state::running)
      return "a stage that is held back runs";
  }
  for (const auto& [id, where] : stages_) {
    const auto it = jobs_.find(where.first);
    if (it == jobs_.end() || it->second.finished()) return "a stage of an ended job is still known";
    const auto& stage = it->second.stages[where.second];
    std::uint32_t pending = 0;
    for (const auto& [number, lane] : stage.lanes) {
      pending += stage.tasks.pending(number);
      if (stage.state != stage_state::running || stage.paused || lane.pending() == 0) continue;
      for (const auto wanted : lane.demands) {
        const auto d = ready_.find(wanted);
        if (d == ready_.end() || !d->second.contains(rank_of(lane))) return "a running stage is not ready";
      }
    }
    if (pending != stage.tasks.pending()) return "a task waits in a lane that its stage does not have";
  }
  return std::nullopt;
}

/// Tasks that run are exactly those that leases hold; map outputs that exist are exactly those that executors keep.
std::optional<std::string> dag_scheduler::fault_of_tasks() const {
  std::unordered_map<stage_id, std::uint32_t> running;
  std::unordered_map<stage_id, std::uint32_t> kept;
  const auto known = [&](stage_id id) -> const stage_run* {
    const auto it = stages_.find(id);
    return it == stages_.end() ? nullptr : &jobs_.at(it->second.first).stages[it->second.second];
  };
  for (const auto& [id, e] : pool_.all()) {
    const auto& record = pool_[e];
    for (const auto lease : record.leases) {
      const auto& what = *pool_.find_lease(lease);
      if (what.in_flight == 0) return "lease " + std::to_string(lease.value) + " holds a slot and has no task";
      if (queued_.contains(lease) != (what.in_flight > 1 && !what.recalled))
        return "lease " + std::to_string(lease.value) + " is wrongly listed as one that has a queue";
      for (const auto& run : what.runs) {
        const auto* stage = known(run.stage);
        if (!stage) continue;
        for (auto p = run.first; p < run.first + run.count; ++p) {
          if (stage->tasks.is_current(p, run.attempt, e))
            ++running[run.stage];
          else if (!options_.speculation.enabled && !stage->spec->barrier) // else another one has taken its place
            return "a lease holds an attempt that does not run there";
        }
      }
    }
    for (const auto& [stage_number, partitions] : record.kept) {
      const auto* stage = known(stage_number);
      if (!stage) continue;
      kept[stage_number] += static_cast<std::uint32_t>(partitions.size());
      for (const auto p : partitions)
        if (stage->tasks.status_of(p) != task_set::status::done || stage->tasks.executor_of(p) != e)
          return "executor " + std::to_string(id.value) + " keeps an output that was not accepted from it";
    }
  }
  for (const auto& [id, where] : stages_) {
    const auto& stage = *known(id);
    if (auto f = stage.tasks.fault()) return f;
    if (stage.tasks.running() - stage.tasks.publishing() + stage.tasks.copies() != running[id])
      return "a running task belongs to no lease";
    if (stage.spec->is_shuffle_map() && stage.tasks.done() != kept[id] + stage.consumed_count)
      return "a map output is kept nowhere";
    if (auto f = fault_of_pipe(jobs_.at(where.first), stage)) return f;
  }
  return fault_of_publications();
}

} // namespace troupe
