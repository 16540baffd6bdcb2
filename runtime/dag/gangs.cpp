// Gangs: tasks of barrier stages, which start together or not at all (spec BA).

#include <algorithm>
#include <tuple>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// The order in which gangs gather: by name of pool where pools share, then by job and stage. Not by what pools lack,
/// which changes all the time: what is held should not.
dag_scheduler::gang_turn dag_scheduler::turn_of(const task_lane& lane) const {
  return {sharing_.are_fair() ? sharing_.name_of(lane.stage->pool) : std::string{}, rank_of(lane)};
}

bool dag_scheduler::is_first_gang(const task_lane& lane) const {
  return !gangs_.empty() && gangs_.begin()->second == &lane;
}

/// Whether what is there, were it empty, would run a task of the stage; for a gang: all of them at once.
bool dag_scheduler::has_enough(const stage_run& stage, demand_index d) const {
  return stage.spec->barrier ? pool_.slots_of(d) >= stage.tasks.size() : pool_.satisfying(d) > 0;
}

/// As far as is known at most so many tasks of the demand could run at once here: where executors are started for it,
/// these take the place of others, but not of those that were started by hand.
std::int64_t dag_scheduler::most_slots(demand_index d) const {
  std::int64_t by_hand = 0;
  for (const auto e : pool_.satisfied_by(d))
    if (!pool_[e].info.request) by_hand += pool_.slots_on(e, d);
  const auto answer = answers_.find(pool_.demand_of(d).shape);
  constexpr std::int64_t limit = 1'000'000'000;
  const auto started = answer == answers_.end() || !answer->second.feasible
                           ? 0
                           : std::min<std::int64_t>(limit, answer->second.most) *
                                 std::clamp<std::int64_t>(slots_on_its_shape(pool_.demand_of(d)), 1, limit);
  return by_hand + std::max(pool_.slots_of(d) - by_hand, started);
}

/// Of what it may run as the first for which there is enough, else what it would rather have if that can still be had.
std::optional<demand_index> dag_scheduler::demand_to_gather(const task_lane& lane) const {
  const auto opened = lane.demands.begin() + lane.opened;
  const auto enough =
      std::find_if(lane.demands.begin(), opened, [&](demand_index d) { return has_enough(*lane.stage, d); });
  if (enough != opened) return *enough;
  const auto wanted = std::find_if(lane.demands.begin(), opened,
                                   [&](demand_index d) { return most_slots(d) >= lane.stage->tasks.size(); });
  if (wanted != opened) return *wanted;
  return std::nullopt;
}

/// Under `compatible` the first of the gangs that wait holds executors that it cannot use yet, closed to other work. It
/// alone: two of them, each with a part of what both need, would wait for each other for ever.
void dag_scheduler::gather(time_point now) {
  if (!std::exchange(gather_due_, false) || options_.matching == profile_matching::exact) return;
  if (gangs_.empty()) return stop_gathering();
  const auto& first = *gangs_.begin()->second;
  const auto d = demand_to_gather(first);
  if (gathering_ && (gathering_->stage != first.stage->id || gathering_->demand != d)) stop_gathering();
  if (!d) return;
  if (!gathering_) gathering_ = gathering{first.stage->id, *d, {}, now};
  hold(first, *d, now);
}

/// Decides which executors are held: those that are free or will be soonest, until there is room for all, and one more
/// each second, since what runs there may run for long. None for which work waits that comes before the gang.
void dag_scheduler::hold(const task_lane& lane, demand_index d, time_point now) {
  std::vector<demand_index> better;
  for (const auto& [other, lanes] : ready_)
    if (!pool_.demand_of(other).gang && comes_before(first_in_line(lanes, nullptr), lane, nullptr))
      better.push_back(other);
  std::vector<std::tuple<std::size_t, bool, executor_id, executor_index>> candidates;
  for (const auto e : pool_.satisfied_by(d)) {
    const auto& record = pool_[e];
    if (record.refused.contains(d) || !pool_.kept_for(e, d).empty() ||
        std::any_of(better.begin(), better.end(), [&](demand_index other) { return pool_.satisfies(e, other); }))
      continue;
    candidates.emplace_back(record.leases.size(), !record.held, record.info.executor, e);
  }
  std::sort(candidates.begin(), candidates.end());
  // Where they do not come, what is there does not stand idle for ever.
  if (!has_enough(*lane.stage, d) && now - gathering_->since >= options_.infeasible_timeout) candidates.clear();
  std::set<executor_index> chosen;
  std::int64_t slots = 0;
  auto more = std::chrono::duration_cast<std::chrono::seconds>(now - gathering_->since).count();
  for (const auto& [busy, is_new, id, e] : candidates) {
    if (slots >= lane.stage->tasks.size() && more-- <= 0) break;
    slots += pool_.slots_on(e, d);
    chosen.insert(e);
  }
  for (const auto e : gathering_->held)
    if (!chosen.contains(e) && pool_.is_present(e) && pool_[e].held) pool_.unreserve(e);
  for (const auto e : chosen) {
    if (pool_[e].held) continue;
    drop_claims(e);
    pool_.hold(e, d);
  }
  gathering_->held = std::move(chosen);
}

void dag_scheduler::stop_gathering() {
  if (!gathering_) return;
  for (const auto e : gathering_->held)
    if (pool_.is_present(e) && pool_[e].held) pool_.unreserve(e);
  gathering_.reset();
  load_due_ = true;
}

/// Starts the gang if there is room for all of it. What is held for another one is no room.
/// @returns whether it did
bool dag_scheduler::place_gang(task_lane& lane, demand_index d, time_point now, effects::list& out) {
  auto& stage = *lane.stage;
  const auto size = stage.tasks.size();
  const bool gathers = gathering_ && gathering_->stage == stage.id;
  pool_.settle();
  if (pool_.free_slots(d) - (gathers ? 0 : pool_.held_slots(d)) < size) return false;
  std::vector<lease_record*> leases;
  // One on each in turn, until none gives another: what is held for others is left out.
  for (auto offers = pool_.with_room(d); !offers.empty() && leases.size() < size;) {
    std::vector<executor_index> again;
    for (const auto e : offers) {
      if (leases.size() == size) break;
      if (pool_[e].held && !gathers) continue;
      auto* lease = pool_.grant_on(e, d);
      if (!lease) continue;
      leases.push_back(lease);
      again.push_back(e);
    }
    offers = std::move(again);
  }
  if (leases.size() < size) { // all or nothing (spec BA-6)
    for (const auto* lease : leases) pool_.release(lease->id);
    return false;
  }
  // Neighbours share an executor where they can.
  std::stable_sort(leases.begin(), leases.end(), [&](const lease_record* a, const lease_record* b) {
    return pool_[a->executor].info.executor < pool_[b->executor].info.executor;
  });
  std::vector<task_batch> batches(size);
  std::vector<std::string> addresses(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    open_lease(*leases[i], out);
    stage.tasks.take(lane.number, 1, leases[i]->executor, batches[i]);
    const auto& info = pool_[leases[i]->executor].info;
    const bool has_port = info.blocks.port != 0;
    addresses[batches[i].partition(0)] =
        has_port ? info.blocks.host + ":" + std::to_string(info.blocks.port) : info.host;
  }
  auto gang = std::make_shared<packed_column>();
  for (const auto& address : addresses) gang->push_back(address);
  stage.gang = std::move(gang);
  stage.rounds = std::make_unique<barrier_coordinator>(size);
  for (std::uint32_t i = 0; i < size; ++i) hand_over(*leases[i], lane, std::move(batches[i]), now);
  unready(lane);
  if (gathers) stop_gathering();
  return true;
}

/// Under `exact` a job starts when its gangs could, or fails after so many looks (spec BA-3). Under `compatible` they
/// wait for executors as other stages do. @returns whether the job may start
bool dag_scheduler::passes_slot_check(job_run& job, time_point now, effects::list& out) {
  if (options_.matching == profile_matching::compatible) return true;
  const auto must_run = stages_to_run(job);
  const auto lacking = std::find_if(job.stages.begin(), job.stages.end(), [&](const stage_run& s) {
    return s.spec->barrier && must_run[s.index] &&
           std::none_of(s.demands().begin(), s.demands().end(),
                        [&](demand_index d) { return most_slots(d) >= s.tasks.size(); });
  });
  if (lacking == job.stages.end()) return true;
  if (job.failed_slot_checks > 0 && now < job.next_slot_check) return false;
  job.next_slot_check = now + options_.slot_check_interval;
  if (++job.failed_slot_checks <= options_.max_slot_check_failures) return false;
  const auto slots = most_slots(lacking->demand());
  fail(job,
       make_error(ec::infeasible,
                  "stage " + std::to_string(lacking->index) + " (" + lacking->spec->name +
                      "): [SPARK-24819]: Barrier execution mode does not allow run a barrier stage that requires more "
                      "slots than the total number of slots in the cluster currently: it has " +
                      std::to_string(lacking->tasks.size()) + " tasks, the cluster " + std::to_string(slots) +
                      " slots (looked " + std::to_string(job.failed_slot_checks) +
                      " times: troupe.barrier.max-slot-check-failures); make fewer partitions, or a larger cluster"),
       now, out);
  return false;
}

/// The gang that gathers; "" where none does, or its job has just ended.
std::string dag_scheduler::who_gathers() const {
  const auto known = gathering_ ? stages_.find(gathering_->stage) : stages_.end();
  if (known == stages_.end()) return {};
  return "stage " + std::to_string(known->second.second) + " of job " + std::to_string(known->second.first.value);
}

/// Why it does not start; "" where no executor fits it at all, nor can be had.
std::string dag_scheduler::gang_waits_for(const task_lane& lane) const {
  const auto& stage = *lane.stage;
  const auto size = stage.tasks.size();
  const bool gathers = gathering_ && gathering_->stage == stage.id;
  auto fits =
      std::find_if(lane.demands.begin(), lane.demands.end(), [&](demand_index d) { return has_enough(stage, d); });
  if (fits == lane.demands.end())
    fits =
        std::find_if(lane.demands.begin(), lane.demands.end(), [&](demand_index d) { return pool_.slots_of(d) > 0; });
  auto text = "its " + std::to_string(size) + " tasks start together, and ";
  if (fits == lane.demands.end()) {
    const auto d = lane.demands.front();
    return most_slots(d) > 0 ? text + "no executor is there for them yet" + lack_of(d) : std::string{};
  }
  const auto d = gathers ? gathering_->demand : *fits;
  const auto slots = pool_.slots_of(d);
  const auto excluded = excluded_executors(d);
  if (slots < size)
    return text + "the executors that fit have " + std::to_string(slots) + (slots == 1 ? " slot" : " slots") +
           " in all" + lack_of(d) + (excluded.empty() ? "" : "; " + excluded);
  text += std::to_string(pool_.free_slots(d) - (gathers ? 0 : pool_.held_slots(d))) + " of " + std::to_string(slots) +
          " slots are free for it";
  if (const auto kept = kept_executors(d); !kept.empty()) text += "; " + kept;
  if (!excluded.empty()) text += "; " + excluded;
  if (gathers)
    return text + "; " + std::to_string(gathering_->held.size()) +
           (gathering_->held.size() == 1 ? " executor is" : " executors are") + " held for it" + lost_slots(d);
  if (const auto first = who_gathers(); !first.empty()) text += "; " + first + " is before it and gathers executors";
  return text + lost_slots(d);
}

std::optional<std::string> dag_scheduler::fault_of_gangs() const {
  std::set<executor_index> held;
  if (gathering_) held = gathering_->held;
  for (const auto& [id, e] : pool_.all())
    if (pool_[e].held && (!held.contains(e) || pool_[e].reserved != gathering_->demand))
      return "an executor is held for a gang that does not gather";
  if (gathering_ && (gangs_.empty() || gangs_.begin()->second->stage->id != gathering_->stage) && !gather_due_)
    return "another gang than the first one gathers";
  for (const auto& [id, job] : jobs_)
    for (const auto& stage : job.stages) {
      if (job.finished() || !stage.spec->barrier || stage.state != stage_state::running) continue;
      const auto pending = stage.tasks.pending();
      if (pending != 0 && pending != stage.tasks.size()) return "a part of a gang waits";
      if ((pending == 0) != (stage.rounds != nullptr)) return "a gang meets before it runs, or runs and cannot meet";
      const auto waits =
          std::count_if(gangs_.begin(), gangs_.end(), [&](const auto& entry) { return entry.second->stage == &stage; });
      if (waits != (pending == 0 ? 0 : 1)) return "a gang that waits is not in line";
    }
  if (!broken_.empty()) return "a gang has failed and is not run again";
  for (const auto id : meeting_) {
    const auto it = stages_.find(id);
    if (it == stages_.end()) return "a gang of an ended job meets";
    const auto& stage = jobs_.at(it->second.first).stages[it->second.second];
    if (!stage.rounds || !stage.rounds->waiting_since()) return "a gang meets of which nobody waits";
  }
  return std::nullopt;
}

} // namespace troupe
