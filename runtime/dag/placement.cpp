// Leases and batches: which executor gets which tasks, and how many at once.

#include <algorithm>
#include <limits>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// Under each of their demands: what is free first is taken.
void dag_scheduler::make_ready(stage_run& stage, time_point now) {
  if (stage.paused) return;
  for (auto& [number, lane] : stage.lanes) {
    if (lane.pending() == 0) {
      if (!stage.fed_by.empty()) unready(lane); // its last task has been withheld
      continue;
    }
    bool is_new = false;
    for (const auto d : lane.demands) is_new |= ready_[d].emplace(rank_of(lane), &lane).second;
    if (!is_new) continue;
    lane.served = now;
    newly_ready_.emplace_back(lane.demands.front(), rank_of(lane));
    scarce_due_ = true;
    if (!stage.spec->barrier) continue;
    gangs_.emplace(turn_of(lane), &lane);
    gather_due_ = true;
  }
}

void dag_scheduler::unready(stage_run& stage) {
  for (auto& [number, lane] : stage.lanes) unready(lane);
}

void dag_scheduler::unready(task_lane& lane) {
  for (const auto d : lane.demands) {
    const auto it = ready_.find(d);
    if (it == ready_.end()) continue;
    it->second.erase(rank_of(lane));
    if (it->second.empty()) ready_.erase(it);
  }
  if (lane.stage->spec->barrier && gangs_.erase(turn_of(lane)) > 0) gather_due_ = true;
  lane.takes_scarce = false;
  if (lane.number == 0) lane.stage->declined_since.reset();
  scarce_due_ = true;
}

executor_orders& dag_scheduler::orders_for(executor_index e) {
  auto& at = pool_[e].orders;
  if (at == executor_record::no_orders) {
    at = static_cast<std::uint32_t>(orders_.size());
    orders_.emplace_back().first = e;
  }
  return orders_[at].second;
}

std::uint32_t dag_scheduler::window_of(const stage_run& stage) const {
  // Nothing is known before the first outcome: one task at a time, so that long ones are spread evenly. And nothing is
  // queued behind a task that may wait for others.
  if (stage.mean_nanoseconds == 0 || stage.spec->barrier) return 1;
  const auto mean = stage.mean_nanoseconds;
  if (mean > static_cast<std::uint64_t>(options_.long_task.count())) return 1;
  const auto ahead = static_cast<std::uint64_t>(options_.queue_ahead.count()) / mean;
  const auto most =
      std::min<std::uint64_t>(std::uint64_t{options_.max_batch} * options_.window_batches, tasks_before_pause(stage));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(most, 1, 1 + ahead));
}

/// The same for a lease that may have tasks of other stages in flight: nothing is queued behind long ones, and nothing
/// behind what is being killed, of which nothing is known.
std::uint32_t dag_scheduler::window_of(const lease_record& lease, const task_lane& lane) {
  if (is_alone(lane.number)) return 1; // who did it must be certain
  const auto window = window_of(*lane.stage);
  if (lease.runs.empty() || lease.runs.front().stage == lane.stage->id) return window;
  const auto* first = find_stage(lease.runs.front().stage);
  return first ? std::min(window, window_of(*first)) : 1;
}

std::uint64_t dag_scheduler::waiting_tasks(demand_index d) const {
  std::uint64_t waiting = 0;
  if (const auto it = ready_.find(d); it != ready_.end())
    for (const auto& [r, lane] : it->second) waiting += lane->pending();
  return waiting;
}

/// True when this lease has to make way: a stage of better rank waits, has room nowhere, and would have room here if
/// leases of worse rank went. The executor is then kept for that stage until it has what it waits for.
bool dag_scheduler::must_yield(const lease_record& lease, const task_lane& mine, time_point now) {
  const auto e = lease.executor;
  const auto& record = pool_[e];
  for (const auto& [d, lanes] : ready_) {
    if (d == lease.demand) continue;
    const auto& theirs = first_in_line(lanes, &lease);
    if (!comes_before(theirs, mine, &lease)) continue;
    if (pool_.has_room(d) || !pool_.satisfies(e, d) || record.refused.contains(d) || record.reserved.value_or(d) != d ||
        !pool_.kept_for(e, d).empty() || !has_work_for(theirs, e, now))
      continue;
    const auto known = claims_.find(d);
    auto elsewhere = known == claims_.end() ? 0 : known->second.total;
    if (known != claims_.end())
      if (const auto here = known->second.slots.find(e); here != known->second.slots.end()) elsewhere -= here->second;
    const auto waiting = waiting_tasks(d);
    if (waiting <= elsewhere) continue;
    const auto wanted = static_cast<std::int64_t>(std::min<std::uint64_t>(waiting - elsewhere, 1u << 30));
    const auto& what = pool_.demand_of(d);
    auto book = record.book;
    const auto give_back = [&](bool going) {
      for (const auto id : record.leases) {
        const auto& other = *pool_.find_lease(id);
        const auto queue = ready_.find(other.demand);
        const bool goes = other.draining || queue == ready_.end();
        const bool worse = !goes && comes_before(theirs, first_in_line(queue->second, &other), &other);
        // Cannot fail: the book gave exactly this.
        if (going ? goes : worse) (void) book.release(other.holding);
      }
      return book.free_slots(*what.content, what.profile);
    };
    const auto coming = give_back(true);
    if (coming >= wanted) continue;
    const auto most = give_back(false);
    if (most <= coming) continue;
    auto& claimed = claims_[d];
    auto& slots = claimed.slots[e];
    claimed.total -= slots;
    slots = static_cast<std::uint64_t>(std::min(most, wanted));
    claimed.total += slots;
    if (!record.reserved) pool_.reserve(e, d);
    return true;
  }
  return false;
}

/// A slot that was waited for has come.
void dag_scheduler::claim_granted(demand_index d, executor_index e) {
  const auto known = claims_.find(d);
  if (known == claims_.end()) return;
  const auto here = known->second.slots.find(e);
  if (here == known->second.slots.end()) return;
  --known->second.total;
  if (--here->second > 0) return;
  known->second.slots.erase(here);
  pool_.unreserve(e);
  if (known->second.slots.empty()) claims_.erase(known);
}

void dag_scheduler::drop_claims(executor_index e) {
  for (auto it = claims_.begin(); it != claims_.end();) {
    if (const auto here = it->second.slots.find(e); here != it->second.slots.end()) {
      it->second.total -= here->second;
      it->second.slots.erase(here);
      pool_.unreserve(e);
    }
    it = it->second.slots.empty() ? claims_.erase(it) : std::next(it);
  }
}

/// Claims of demands that no longer wait. What they kept is free for others.
void dag_scheduler::drop_stale_claims() {
  for (auto it = claims_.begin(); it != claims_.end();) {
    if (ready_.contains(it->first)) {
      ++it;
      continue;
    }
    for (const auto& [e, slots] : it->second.slots) pool_.unreserve(e);
    it = claims_.erase(it);
  }
}

void dag_scheduler::fill(lease_record& lease, std::uint32_t cap, time_point now) {
  while (cap > 0) {
    const auto it = ready_.find(lease.demand);
    if (it == ready_.end()) return;
    auto* const next = next_for(it->second, lease, now);
    if (!next) return;
    auto& lane = *next;
    auto& stage = *lane.stage;
    const auto window = window_of(lease, lane);
    if (lease.in_flight >= window) return;
    const auto most = std::min({window - lease.in_flight, cap, options_.max_batch, stage.most_in_batch});
    task_batch batch;
    const auto n = take(lane, most, lease.executor, now, batch);
    if (n == 0) return;
    hand_over(lease, lane, std::move(batch), now);
    if (lane.pending() == 0) unready(lane);
    cap -= n;
  }
}

/// Sends tasks that were just taken out of the lane, and before them what they have in common.
void dag_scheduler::hand_over(lease_record& lease, task_lane& lane, task_batch&& batch, time_point now) {
  auto& stage = *lane.stage;
  auto& record = pool_[lease.executor];
  auto& orders = orders_for(lease.executor);
  batch.stage = stage.id;
  batch.stage_attempt = stage.attempt;
  batch.lease = lease.id;
  batch.arguments = stage.spec->arguments;
  batch.by_partition = true;
  batch.inputs = partitions_for(*find_job(stage.job), stage, batch);
  if (!record.installed.has(stage.id, stage.attempt)) {
    stage_install install;
    install.stage = stage.id;
    install.stage_attempt = stage.attempt;
    install.job = stage.job;
    install.name = stage.spec->name;
    install.tasks = stage.tasks.size();
    install.buckets = stage.spec->buckets;
    install.program = stage.program;
    install.inputs = stage.inputs;
    install.task_timeout = stage.spec->task_timeout;
    install.gang = stage.gang;
    install.hands_on = stage.hands_on;
    install.keeps = stage.keeps;
    if (stage.spec->keeps) install.level = stage.spec->keeps->level;
    orders.installs.push_back(std::move(install));
    record.installed.set(stage.id, stage.attempt);
    find_job(stage.job)->touched.add(record.info.executor);
  }
  if (lease.in_flight == 0) {
    lease.front_since = now;
    lease.recalled = false;
  }
  lease.add(batch);
  heard_of(lease, now);
  serve(lease, stage);
  lane.served = now;
  record.in_flight += batch.count;
  orders.batches.push_back(std::move(batch));
}

/// Gives the lease's slot back; where `revoke`, the executor is told.
void dag_scheduler::drop_lease(lease_record& lease, bool revoke, time_point now, effects::list& out) {
  const auto e = lease.executor;
  const auto id = lease.id;
  if (revoke) orders_for(e).revoked.push_back(id);
  stop_serving(lease);
  queued_.forget(id);
  pool_.release(id);
  out.push_back(effects::publish{events::lease_released{id, pool_[e].info.executor}});
  touch_idle(e, now);
}

/// A lease with news gets more work, or goes back to the pool.
void dag_scheduler::refill(lease_record& lease, time_point now, effects::list& out) {
  const auto it = ready_.find(lease.demand);
  if (it != ready_.end() && !lease.draining) {
    auto* const next = next_for(it->second, lease, now);
    const auto& lane = next ? *next : first_in_line(it->second, &lease);
    const auto& record = pool_[lease.executor];
    if (must_yield(lease, lane, now) || !pool_.kept_for(lease.executor, lease.demand).empty() ||
        (record.held && record.reserved != lease.demand)) {
      lease.draining = true;
    } else if (next && (!lease.recalled || lease.in_flight == 0)) {
      const auto window = window_of(lease, lane);
      const auto space = window > lease.in_flight ? window - lease.in_flight : 0;
      // Few large batches rather than many small ones; near the end the rest is shared out evenly.
      if (lease.in_flight == 0 || space >= options_.max_batch || 2 * space >= window) {
        const auto leases = std::max<std::uint64_t>(1, pool_.leases_of(lease.demand));
        const std::uint64_t worthwhile = 100'000 / std::max<std::uint64_t>(1, lane.stage->mean_nanoseconds);
        const auto fair = std::max((waiting_tasks(lease.demand) + leases - 1) / leases, worthwhile);
        fill(lease, static_cast<std::uint32_t>(std::min<std::uint64_t>(fair, space)), now);
      }
    }
  }
  if (lease.in_flight == 0) drop_lease(lease, true, now, out);
}

/// A slot that was just taken is the lease's from now on.
void dag_scheduler::open_lease(lease_record& lease, effects::list& out) {
  claim_granted(lease.demand, lease.executor);
  const auto& what = pool_.demand_of(lease.demand);
  const auto& executor = pool_[lease.executor].info.executor;
  idle_.erase(executor);
  orders_for(lease.executor).grants.push_back({lease.id, what.content, lease.holding});
  out.push_back(effects::publish{events::lease_granted{lease.id, executor, what.profile, lease.holding}});
}

/// Whether a task of the lane may run there now, or a copy of one.
bool dag_scheduler::has_work_for(const task_lane& lane, executor_index e, time_point now) const {
  auto& stage = *lane.stage;
  if (stage.spec->barrier) return false; // it starts as a whole
  const auto& info = pool_[e].info;
  const bool has_task = lane.number == 0 && stage.tasks.located()
                            ? stage.tasks.has_near(info.executor, info.host, allowed_level(stage, now))
                            : stage.tasks.pending(lane.number) > 0;
  return has_task || copy_for(lane, e);
}

/// The first lane of a line that has something for the lease's executor; null: none has.
task_lane* dag_scheduler::next_for(const std::map<rank, task_lane*>& lanes, const lease_record& lease, time_point now) {
  auto& first = first_in_line(lanes, &lease);
  if (has_work_for(first, lease.executor, now)) return &first;
  decline(first, now);
  for (const auto& [r, lane] : lanes) {
    if (has_work_for(*lane, lease.executor, now)) return lane;
    decline(*lane, now);
  }
  return nullptr;
}

/// Hands out tasks of the lane that may run there, else a copy of one. @returns how many
std::uint32_t dag_scheduler::take(task_lane& lane, std::uint32_t most, executor_index e, time_point now,
                                  task_batch& batch) {
  auto& tasks = lane.stage->tasks;
  const auto& info = pool_[e].info;
  const auto n = lane.number == 0 && tasks.located()
                     ? tasks.take_near(info.executor, info.host, allowed_level(*lane.stage, now), most, e, batch)
                     : tasks.take(lane.number, most, e, batch);
  if (n > 0) return n;
  const auto copied = copy_for(lane, e);
  if (!copied) return 0;
  tasks.start_copy(*copied, e, batch);
  return 1;
}

/// New leases, at most so many, for what waits in one lane as one of its demands, as far as there is room, and an even
/// share of the tasks for each. @returns whether there was any
bool dag_scheduler::grant(task_lane& lane, demand_index d, std::uint64_t most, time_point now, effects::list& out) {
  if (lane.stage->spec->barrier) return place_gang(lane, d, now, out);
  if (lane.number == 0 && lane.stage->tasks.located()) {
    const auto placed = place_near(lane, d, most, now, out);
    return place_copies(lane, d, most - placed, now, out) || placed > 0;
  }
  const std::uint64_t all = lane.stage->tasks.pending(lane.number);
  const auto waiting = std::min(all, most);
  // An even share is one of all leases that will be had, also where they come one after the other.
  const auto others = most < all ? pool_.executors_with_room(d) : 0;
  std::vector<lease_id> fresh;
  const auto use = [&](lease_record& lease) {
    fresh.push_back(lease.id);
    open_lease(lease, out);
  };
  // The passes are what Spark's default does; its other strategies, too, take one slot after the other (TS-20).
  if (options_.matching == profile_matching::compatible || options_.placement != placement_policy::spread) {
    while (fresh.size() < waiting && pool_.has_room(d)) {
      auto* lease = pool_.grant(d);
      if (!lease) break;
      use(*lease);
    }
  } else {
    // Pass after pass over the executors that have room, one lease each, until a pass gives none (spec TS-3). Where
    // there are fewer tasks than executors, Spark draws lots; who holds fewest leases is one of the draws. What is
    // queued ahead under a lease runs when its slot is free, as Spark offers a freed slot at once (TS-6). An executor
    // is never offered that has not said that it runs (TS-5), nor one that is draining (TS-2).
    for (auto offers = pool_.with_room(d, waiting); !offers.empty();) {
      std::vector<executor_index> again;
      for (const auto e : offers) {
        if (fresh.size() == waiting) break;
        auto* lease = pool_.grant_on(e, d);
        if (!lease) continue;
        use(*lease);
        again.push_back(e);
      }
      offers = std::move(again);
      if (fresh.size() == waiting) break;
    }
  }
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const auto left = std::max(fresh.size() - i, others);
    const auto share = (lane.stage->tasks.pending(lane.number) + left - 1) / left;
    fill(*pool_.find_lease(fresh[i]),
         static_cast<std::uint32_t>(std::min<std::uint64_t>(share, std::numeric_limits<std::uint32_t>::max())), now);
  }
  const bool copied = place_copies(lane, d, most - fresh.size(), now, out);
  return copied || !fresh.empty();
}

/// Slots to whom they belong. Where a gang has started, what was held for it and is left over is free for others.
void dag_scheduler::grant_all(time_point now, effects::list& out) {
  bool again = true;
  while (std::exchange(again, false)) {
    const auto gathered = gathering_ ? gathering_->stage : stage_id{};
    if (sharing_.are_fair())
      grant_fairly(now, out);
    else
      grant_by_rank(now, out);
    if (!gathered || gathering_) continue;
    again = true;
    gather(now);
  }
}

void dag_scheduler::schedule(time_point now, effects::list& out) {
  pace_producers(now);
  look_for_near();
  gather(now);
  const auto refills = std::exchange(refill_, {});
  for (const auto id : refills)
    if (auto* lease = pool_.find_lease(id)) refill(*lease, now, out);
  drop_stale_claims();
  keep_scarce(now);
  grant_all(now, out);
  drop_stale_claims();
  pool_.settle();
  watch_unsatisfied(now);
  watch_unschedulable(now, out);
  flush(out);
  // Who waits for room waits for the allocator: it hears at once, not at the next tick. Of whoever found room it need
  // not hear: in a pipeline that keeps pace that is every task.
  for (const auto& [d, r] : std::exchange(newly_ready_, {}))
    if (const auto lanes = ready_.find(d); lanes != ready_.end() && lanes->second.contains(r)) load_due_ = true;
  if (load_due_ && !ready_.empty()) report_load(now, out);
  load_due_ = false;
  for (const auto id : finished_) {
    held_.erase(id);
    jobs_.erase(id);
  }
  finished_.clear();
}

void dag_scheduler::flush(effects::list& out) {
  if (!questions_.empty()) {
    effects::ask_feasibility question;
    for (const auto shape : questions_) question.shapes.push_back({shape, shapes_.at(shape).content});
    questions_.clear();
    out.push_back(std::move(question));
  }
  for (auto& [e, orders] : orders_) {
    if (e == no_executor) continue;
    auto& record = pool_[e];
    record.orders = executor_record::no_orders;
    if (orders.empty()) continue;
    orders.epoch = record.info.epoch;
    orders.sequence = ++record.sequence;
    out.push_back(effects::send_orders{record.info.executor, std::move(orders)});
  }
  orders_.clear();
}

void dag_scheduler::touch_idle(executor_index e, time_point now) {
  auto& record = pool_[e];
  if (!record.leases.empty()) {
    idle_.erase(record.info.executor);
    return;
  }
  if (idle_.insert(record.info.executor).second) record.idle_since = now;
}

} // namespace troupe
