// Tasks near their data: a slot that none of the waiting tasks would rather have stays free for a while (spec TS-9).

#include <algorithm>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// How far from its data a task of the stage may run now. The clock runs while slots stay free for the sake of this,
/// and not where nothing that is there could be near.
locality_level dag_scheduler::allowed_level(const stage_run& stage, time_point now) const {
  auto waited = stage.declined_since ? now - *stage.declined_since : duration::zero();
  const auto is_over = [&](duration wait) {
    if (wait == never || waited < wait) return false;
    waited -= wait;
    return true;
  };
  if (stage.nearest == locality_level::executor && !is_over(options_.executor_wait)) return locality_level::executor;
  if (stage.nearest <= locality_level::host && !is_over(options_.host_wait)) return locality_level::host;
  return locality_level::any;
}

/// Finds out how near to what its tasks name a stage can be at all: it waits for no level that no executor is there
/// for. What was said before holds until executors come, go or are kept from somebody.
void dag_scheduler::look_for_near() {
  if (!scarce_due_) return;
  for (const auto& [d, lanes] : ready_)
    for (const auto& [r, lane] : lanes) {
      auto& stage = *lane->stage;
      if (lane->number != 0 || d != lane->demands.front() || !stage.tasks.located()) continue;
      const auto any_demand = [&](auto holds) {
        return std::any_of(lane->demands.begin(), lane->demands.end(), holds);
      };
      const auto& located = *stage.tasks.located();
      if (located.any_executor([&](executor_id id) {
            const auto e = pool_.find(id);
            return e != no_executor && any_demand([&](demand_index each) { return pool_.satisfies(e, each); });
          }))
        stage.nearest = locality_level::executor;
      else if (located.any_host([&](const std::string& host) {
                 return any_demand([&](demand_index each) { return pool_.is_satisfied_on(host, each); });
               }))
        stage.nearest = locality_level::host;
      else
        stage.nearest = locality_level::any;
    }
}

/// A slot has passed the lane by although it has tasks.
void dag_scheduler::decline(task_lane& lane, time_point now) {
  auto& stage = *lane.stage;
  if (lane.number == 0 && stage.tasks.located() && stage.tasks.pending(0) > 0 && !stage.declined_since)
    stage.declined_since = now;
}

/// Leases, at most so many, on executors near the data of tasks that wait, the nearest first; pass after pass, one
/// lease on each executor, until a pass gives none (spec TS-3). @returns how many
std::uint64_t dag_scheduler::place_near(task_lane& lane, demand_index d, std::uint64_t most, time_point now,
                                        effects::list& out) {
  auto& stage = *lane.stage;
  const auto before = most;
  const auto allowed = allowed_level(stage, now);
  for (auto level = locality_level::executor; level <= allowed;
       level = static_cast<locality_level>(static_cast<int>(level) + 1)) {
    auto offers = pool_.with_room(d);
    while (most > 0 && !offers.empty()) {
      std::vector<executor_index> again;
      for (const auto e : offers) {
        const auto& info = pool_[e].info;
        if (most == 0 || !stage.tasks.has_near(info.executor, info.host, level)) continue;
        auto* lease = pool_.grant_on(e, d);
        if (!lease) continue;
        open_lease(*lease, out);
        fill(*lease, 1, now);
        if (lease->in_flight == 0) drop_lease(*lease, true, now, out);
        --most;
        again.push_back(e);
      }
      offers = std::move(again);
    }
  }
  if (std::none_of(lane.demands.begin(), lane.demands.end(),
                   [this](demand_index each) { return pool_.has_room(each); }))
    stage.declined_since.reset();
  else if (most > 0) // else what is free may belong to others
    decline(lane, now);
  return before - most;
}

/// Whether slots stay free for the sake of tasks that could be nearer elsewhere.
bool dag_scheduler::is_declining() const {
  return std::any_of(ready_.begin(), ready_.end(), [](const auto& entry) {
    return std::any_of(entry.second.begin(), entry.second.end(),
                       [](const auto& lane) { return lane.second->stage->declined_since.has_value(); });
  });
}

} // namespace troupe
