// Why jobs wait, in all detail. Whatever is said of executors comes from `executor_pool::hindrance_of` and
// `shortfalls`, which placement goes by.

#include <algorithm>
#include <map>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

namespace {

/// Left of `wait`, of which so much is over; for `explained_wait`.
std::int64_t left_of(duration wait, duration over) {
  return wait == never ? -1 : std::max<std::int64_t>(0, (wait - over).count());
}

std::string plural(std::uint64_t n, const std::string& one, const std::string& more) {
  return std::to_string(n) + " " + (n == 1 ? one : more);
}

} // namespace

std::optional<job_explanation> dag_scheduler::explain(job_id id, time_point now) const {
  if (const auto old = ended_.find(id); old != ended_.end()) return explain_ended(id, old->second);
  const auto it = jobs_.find(id);
  if (it == jobs_.end()) return std::nullopt;
  const auto& job = it->second;
  job_explanation all{id, job.spec->name, job.state, {}, {}, job.failures.all(), job.failures.left_out()};
  if (job.state == job_state::accepted) all.reason = waiting_for(job);
  if (job.state == job_state::accepted && all.reason.empty()) all.reason = "it has not started yet";
  for (const auto& stage : job.stages) all.stages.push_back(explain(job, stage, now));
  return all;
}

explained_stage dag_scheduler::explain(const job_run& job, const stage_run& stage, time_point now) const {
  explained_stage out{stage.id,
                      stage.index,
                      stage.spec->name,
                      stage.state,
                      stage.tasks.size(),
                      stage.tasks.pending(),
                      stage.tasks.running(),
                      stage.tasks.done(),
                      {},
                      {}};
  if (stage.state == stage_state::waiting) {
    for (const auto& d : stage.spec->dependencies) {
      const auto& parent = job.stages[d.stage];
      if (!parent.tasks.complete())
        out.reason += (out.reason.empty() ? "it waits for stage " : ", ") + std::to_string(parent.index) + " (" +
                      parent.spec->name + ")";
    }
    if (held_back_.contains(stage.id)) out.reason = "it runs again in a moment, after a loss";
    if (job.state == job_state::accepted) out.reason = "its job has not started";
  }
  if (stage.state == stage_state::running) out.reason = pipe_reason(job, stage);
  const bool waits = stage.state == stage_state::running || job.state == job_state::accepted;
  for (const auto& [number, lane] : stage.lanes)
    if (waits && stage.tasks.pending(number) > 0) out.task_sets.push_back(explain(lane, now));
  return out;
}

explained_task_set dag_scheduler::explain(const task_lane& lane, time_point now) const {
  const auto& stage = *lane.stage;
  explained_task_set out;
  out.pending = stage.tasks.pending(lane.number);
  if (const auto step = escalations_of(lane.number); step > 0)
    out.conditions = "with more memory, step " + std::to_string(step);
  if (is_alone(lane.number))
    out.conditions +=
        (out.conditions.empty() ? "" : ", ") + std::string{"alone on an executor, since one may have crashed"};
  const bool ready = stage.state == stage_state::running;
  bool room = false;
  for (const auto d : lane.demands) {
    out.choices.push_back(explain(lane, d, now));
    room = room || pool_.has_room(d);
  }
  const auto wait = [&](std::string what, const char* key, duration limit, time_point since) {
    out.waits.push_back({std::move(what), key, left_of(limit, now - since)});
  };
  if (stage.declined_since) {
    const auto level = allowed_level(stage, now);
    const auto first = stage.nearest == locality_level::executor ? options_.executor_wait : duration::zero();
    if (level == locality_level::executor)
      wait("then its tasks run on any executor of their hosts", "troupe.locality.executor-wait", options_.executor_wait,
           *stage.declined_since);
    else if (level == locality_level::host)
      wait("then its tasks run anywhere", "troupe.locality.host-wait", options_.host_wait,
           *stage.declined_since + first);
  }
  const bool kept = std::any_of(lane.demands.begin(), lane.demands.end(),
                                [this](demand_index d) { return !pool_.kept_from(d).empty(); });
  if (kept && !lane.takes_scarce)
    wait("then it takes executors that are kept for others", "troupe.scheduler.scarce-resource-wait",
         options_.scarce_resource_wait, lane.served);
  if (ready && lane.opened < lane.demands.size())
    wait("then executors are asked for the next alternative", "troupe.scheduler.alternative-wait",
         options_.alternative_wait, lane.served);
  if (const auto it = unschedulable_.find(rank_of(lane)); it != unschedulable_.end())
    wait("then its job fails: nobody is left for it", "troupe.exclude-on-failure.unschedulable-timeout",
         options_.unschedulable_timeout, it->second.since);
  else if (std::all_of(lane.demands.begin(), lane.demands.end(),
                       [&](demand_index d) { return unsatisfied_.contains(d) && !has_enough(stage, d); })) {
    const auto last = *std::max_element(lane.demands.begin(), lane.demands.end(), [&](demand_index a, demand_index b) {
      return unsatisfied_.at(a) < unsatisfied_.at(b);
    });
    wait("then its job fails, unless executors for it can be had", "troupe.scheduler.infeasible-timeout",
         options_.infeasible_timeout, unsatisfied_.at(last));
  }
  if (const auto it = deadlines_.find(stage.id); it != deadlines_.end())
    out.waits.push_back({"then its job fails: the stage has a time-out", "timeout", left_of(it->second - now, {})});
  out.reason = ready && room && !stage.spec->barrier && !stage.declined_since
                   ? "there is room: its tasks are handed out one after the other"
                   : waiting_for(lane);
  return out;
}

explained_choice dag_scheduler::explain(const task_lane& lane, demand_index d, time_point now) const {
  const auto& what = pool_.demand_of(d);
  explained_choice out;
  out.profile = what.profile;
  out.content = to_string(*what.content);
  out.asked_for = lane.preference_of(d) < lane.opened;
  out.slots = pool_.slots_of(d);
  out.free_slots = pool_.free_slots(d);
  // Each clause as it fails where there is nothing at all.
  const auto clauses = shortfalls(executor_capacity{}, *what.content);
  std::map<std::string, std::uint32_t, std::less<>> failed;
  std::map<hindrance, explained_hindrance> hindrances;
  std::map<std::pair<job_id, std::uint32_t>, explained_holder> holders;
  for (const auto& [id, e] : pool_.all()) {
    const auto& record = pool_[e];
    ++out.executors;
    for (const auto& lack : shortfalls(record.info.capacity, *what.content)) ++failed[lack.resource];
    const auto h = pool_.hindrance_of(e, d);
    auto& entry = hindrances.try_emplace(h, explained_hindrance{h, 0, {}}).first->second;
    ++entry.executors;
    if (h == hindrance::refused && entry.detail.empty()) {
      const auto& refused = record.refused.at(d);
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(refused.until - now).count();
      entry.detail = "for " + std::to_string(std::max<std::int64_t>(0, left)) + "ms: " + refused.reason;
    }
    if (is_unfit(h)) continue;
    ++out.fit;
    for (const auto lease : record.leases) {
      const auto& runs = pool_.find_lease(lease)->runs;
      const auto known = runs.empty() ? stages_.end() : stages_.find(runs.front().stage);
      if (known == stages_.end()) {
        ++holders[{}].leases;
        continue;
      }
      const auto [job, index] = known->second;
      auto& holder = holders[{job, index}];
      holder = {job, index, jobs_.at(job).stages[index].spec->name, holder.leases + 1};
    }
  }
  for (const auto& clause : clauses)
    out.clauses.push_back({clause.resource + " " + clause.wanted, out.executors - failed[clause.resource]});
  if (const auto it = hindrances.find(hindrance::excluded); it != hindrances.end())
    it->second.detail = exclusions_.describe(what.profile);
  if (const auto it = hindrances.find(hindrance::kept); it != hindrances.end())
    for (const auto& name : pool_.kept_from(d)) it->second.detail += (it->second.detail.empty() ? "" : ", ") + name;
  if (const auto it = hindrances.find(hindrance::reserved); it != hindrances.end())
    if (const auto first = who_gathers(); !first.empty())
      it->second.detail = "a barrier stage gathers executors: " + first;
  for (auto& [h, entry] : hindrances) out.hindrances.push_back(std::move(entry));
  for (auto& [key, holder] : holders) out.holders.push_back(std::move(holder));
  std::stable_sort(out.holders.begin(), out.holders.end(),
                   [](const auto& a, const auto& b) { return a.leases > b.leases; });
  if (out.fit == 0)
    if (const auto nearest = pool_.nearest(d)) {
      const auto& info = pool_[nearest->executor].info;
      out.nearest = explained_nearest{info.executor, info.host, {}};
      for (const auto& lack : nearest->lacks) out.nearest->lacks.push_back(to_string(lack));
      if (!nearest->other.empty()) out.nearest->lacks.push_back(nearest->other);
    }
  out.allocation = allocation_of(what.shape);
  out.edit = edit_for(lane, d);
  return out;
}

/// What the allocator was asked for, and what it has said.
std::string dag_scheduler::allocation_of(shape_id shape) const {
  std::string text;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (const auto it = answers_.find(shape); it != answers_.end()) {
    if (!it->second.feasible)
      add("none can be had" + std::string{it->second.fixed ? "" : " now"} + ": " + it->second.sentence);
  } else if (asked_.contains(shape)) {
    add("it is being asked whether one can be had");
  }
  if (const auto it = allocation_.find(shape); it != allocation_.end()) {
    const auto& s = it->second;
    if (s.starting > 0) add(plural(s.starting, "executor is", "executors are") + " being started");
    if (s.missing > 0) {
      const auto more = plural(s.missing, "more is wanted", "more are wanted");
      switch (s.why) {
      case allocation_obstacle::none: add(more); break;
      case allocation_obstacle::only_fixed:
        add(more + ", but none is started beyond those of the cluster file (cluster.elastic)");
        break;
      case allocation_obstacle::not_dynamic:
        add(more + ", but none is started where one fits (troupe.dynamic-allocation.enabled = false)");
        break;
      case allocation_obstacle::pause:
        add(more + ", and asked for again after a pause (troupe.dynamic-allocation.retry-pause)");
        break;
      case allocation_obstacle::limit:
        add(more + ", but there are as many executors as there may be (troupe.dynamic-allocation.max-executors)");
        break;
      case allocation_obstacle::room:
        add(more + ", but there is no room for " + (s.missing == 1 ? "it" : "them") +
            ": executors of other profiles make way when they are idle");
        break;
      }
    }
  }
  if (const auto it = launch_failures_.find(shape); it != launch_failures_.end())
    add("the last one that was started did not come: " + it->second);
  return text;
}

/// What its author could change so that it runs sooner; "" where only time helps.
std::string dag_scheduler::edit_for(const task_lane& lane, demand_index d) const {
  const auto& stage = *lane.stage;
  if (pool_.satisfying(d) > 0) {
    if (stage.spec->barrier && !has_enough(stage, d))
      return "make at most " + plural(static_cast<std::uint64_t>(pool_.slots_of(d)), "partition", "partitions") +
             ": so many tasks run at once on what is there";
    if (!kept_executors(d).empty() && !pool_.has_room(d))
      return "set troupe.scheduler.scarce-resource-wait lower, or ask for what these executors have";
    if (stage.declined_since) return "set troupe.locality.executor-wait and troupe.locality.host-wait lower";
    return {};
  }
  if (const auto wrong = misspelt(d); !wrong.empty())
    return "write " + wrong.front().second + " instead of " + wrong.front().first;
  // One clause less, and some executor fits.
  const auto& content = *pool_.demand_of(d).content;
  std::map<std::pair<std::string, std::string>, std::uint32_t> single;
  for (const auto& [id, e] : pool_.all())
    if (pool_.hindrance_of(e, d) == hindrance::lacks)
      if (const auto lacks = shortfalls(pool_[e].info.capacity, content); lacks.size() == 1)
        ++single[{lacks[0].resource, lacks[0].present}];
  if (!single.empty()) {
    const auto best = std::max_element(single.begin(), single.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto& [resource, present] = best->first;
    return (present == "0" ? "leave " + resource + " out" : "ask for " + resource + " " + present) + ": " +
           plural(best->second, "executor fits then", "executors fit then");
  }
  return {};
}

} // namespace troupe
