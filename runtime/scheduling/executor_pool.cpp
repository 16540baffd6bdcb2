#include <troupe/runtime/scheduling/executor_pool.hpp>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <tuple>

#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

demand_index executor_pool::intern(demand d) {
  const auto [it, added] =
      demand_numbers_.try_emplace({d.profile, d.build_id, d.alone, d.gang}, static_cast<demand_index>(demands_.size()));
  if (added) {
    demands_.emplace_back().what = std::move(d);
    for (const auto& [id, e] : by_id_) recount(e, it->second);
  }
  return it->second;
}

executor_index executor_pool::add(executor_info info, time_point now) {
  const auto e = executors_.take();
  auto& record = executors_[e];
  record.book = ledger{info.capacity, matching_};
  record.idle_since = now;
  record.info = std::move(info);
  by_id_.emplace(record.info.executor, e);
  index_.insert(record.info.executor, e);
  for (const auto& [name, resource] : record.info.capacity.custom)
    if (!resource.addresses.empty()) holders_[name].insert(e);
  for (demand_index d = 0; d < demands_.size(); ++d) recount(e, d);
  return e;
}

void executor_pool::remove(executor_index executor) {
  auto& record = executors_[executor];
  for (const auto id : record.leases) {
    --demands_[leases_.find(id)->demand].leases;
    leases_.erase(id);
  }
  for (demand_index number = 0; number < demands_.size(); ++number) {
    stop_satisfying(executor, number);
    demands_[number].excluded.erase(executor);
  }
  for (auto& s : record.services) drop_room(executor, s);
  if (executor == unlisted_.executor) unlisted_ = {};
  by_id_.erase(record.info.executor);
  index_.erase(record.info.executor);
  for (auto it = holders_.begin(); it != holders_.end();) {
    it->second.erase(executor);
    it = it->second.empty() ? holders_.erase(it) : std::next(it);
  }
  refusing_.erase(executor);
  executors_.give_back(executor);
}

void executor_pool::drain(executor_index executor) {
  transition("executor", executors_[executor].status, executor_record::state::draining);
  for (demand_index d = 0; d < demands_.size(); ++d) recount(executor, d);
}

/// Spec MP-8. `exact` goes by the shape alone, whatever its content. Only an executor that was started for no shape is
/// there for every profile with the amounts of its executor half, however they are written down: it takes its scripts,
/// and what it has none of, from settings of its own.
bool executor_pool::was_started_for(const executor_record& e, const demand& d) const {
  if (matching_ == profile_matching::compatible || d.any_executor) return true;
  return e.info.shape ? e.info.shape == d.shape : capacity_of(e.info.profile) == capacity_of(*d.content);
}

/// Why it would get none even if it were empty and nothing had happened.
hindrance executor_pool::unfit(const executor_record& e, demand_index number) const {
  const auto& d = demands_[number].what;
  if (e.status != executor_record::state::active) return hindrance::draining;
  if (e.barred.contains(number)) return hindrance::barred;
  if (!d.build_id.empty() && (!e.info.native || e.info.build_id != d.build_id)) return hindrance::other_program;
  if (!was_started_for(e, d)) return hindrance::other_profile;
  return troupe::satisfies(e.info.capacity, *d.content) ? hindrance::none : hindrance::lacks;
}

/// Why it gets none although it fits and may have a slot.
hindrance executor_pool::closed(executor_index executor, demand_index d) const {
  const auto& e = executors_[executor];
  if (!e.excluded.empty() && demands_[d].excluded.contains(executor)) return hindrance::excluded;
  if (!e.refused.empty() && e.refused.contains(d)) return hindrance::refused;
  if (e.reserved.value_or(d) != d) return hindrance::reserved;
  return kept_for(executor, d).empty() ? hindrance::none : hindrance::kept;
}

hindrance executor_pool::hindrance_of(executor_index executor, demand_index d) const {
  if (const auto h = unfit(executors_[executor], d); h != hindrance::none) return h;
  if (const auto h = closed(executor, d); h != hindrance::none) return h;
  return free_on(executor, d) > 0 ? hindrance::none : hindrance::busy;
}

bool executor_pool::satisfies(executor_index executor, demand_index d) const {
  return find_service(executors_[executor], d) != nullptr;
}

const executor_record::service* executor_pool::find_service(const executor_record& e, demand_index d) {
  const auto it = std::ranges::lower_bound(e.services, d, {}, &executor_record::service::demand);
  return it == e.services.end() || it->demand != d ? nullptr : &*it;
}

bool executor_pool::is_satisfied_on(const std::string& host, demand_index d) const {
  const auto& all = demands_[d].satisfied_by;
  return std::any_of(all.begin(), all.end(), [&](executor_index e) { return executors_[e].info.host == host; });
}

bool executor_pool::is_satisfied_beyond(const std::string& host, demand_index d) const {
  const auto& all = demands_[d].satisfied_by;
  return std::any_of(all.begin(), all.end(), [&](executor_index e) { return executors_[e].info.host != host; });
}

bool executor_pool::has_room_on(executor_index executor, demand_index d) const {
  if (executor == unlisted_.executor) return free_on(executor, d) > 0;
  const auto* s = find_service(executors_[executor], d);
  return s && s->free > 0;
}

std::string_view executor_pool::kept_for(executor_index executor, demand_index d) const {
  const auto& record = demands_[d];
  const auto& pools = executors_[executor].info.capacity.custom;
  for (const auto& name : record.kept_from) {
    const auto pool = pools.find(name);
    if (pool != pools.end() && !pool->second.addresses.empty() && !record.what.content->task.contains(name))
      return name;
  }
  return {};
}

void executor_pool::keep_from(demand_index d, std::set<std::string, std::less<>> resources) {
  auto& record = demands_[d];
  if (record.kept_from == resources) return;
  std::vector<std::string> changed;
  std::set_symmetric_difference(record.kept_from.begin(), record.kept_from.end(), resources.begin(), resources.end(),
                                std::back_inserter(changed));
  record.kept_from = std::move(resources);
  for (const auto& name : changed)
    if (const auto holders = holders_.find(name); holders != holders_.end())
      for (const auto e : holders->second) refresh(e, d);
}

std::int64_t executor_pool::slots_on(executor_index executor, demand_index d) const {
  return troupe::slots_of(executors_[executor].info.capacity, *demands_[d].what.content).slots;
}

std::int64_t executor_pool::free_on(executor_index executor, demand_index d) const {
  return satisfies(executor, d) ? free_in_service(executor, d) : 0;
}

std::int64_t executor_pool::free_in_service(executor_index executor, demand_index d) const {
  if (closed(executor, d) != hindrance::none) return 0;
  return executors_[executor].book.free_slots(*demands_[d].what.content, demands_[d].what.profile);
}

void executor_pool::stop_satisfying(executor_index executor, demand_index d) {
  auto& record = demands_[d];
  if (record.satisfied_by.erase(executor) == 0) return;
  record.slots -= slots_on(executor, d);
  record.plain -= excess_of(executors_[executor], record.what) == 0 ? 1 : 0;
}

/// Whether it stands among those that satisfy the demand, those that are excluded, or neither.
void executor_pool::recount(executor_index executor, demand_index d) {
  const auto& e = executors_[executor];
  auto& record = demands_[d];
  stop_satisfying(executor, d);
  record.excluded.erase(executor);
  if (fits(e, d)) (e.excluded.contains(record.what.profile) ? record.excluded : record.satisfied_by).insert(executor);
  const bool satisfied = record.satisfied_by.contains(executor);
  auto& services = executors_[executor].services;
  const auto at = std::ranges::lower_bound(services, d, {}, &executor_record::service::demand);
  const bool was = at != services.end() && at->demand == d;
  if (satisfied) {
    record.slots += slots_on(executor, d);
    record.plain += excess_of(e, record.what) == 0 ? 1 : 0;
  }
  if (satisfied && !was) services.insert(at, executor_record::service{d, false, 0, excess_of(e, record.what), 0});
  if (!satisfied && was) {
    drop_room(executor, *at);
    services.erase(at);
  }
  refresh(executor, d);
}

void executor_pool::mark_refused(executor_index executor, demand_index d, time_point until, std::string reason) {
  auto& e = executors_[executor];
  e.refused[d] = {until, std::move(reason)};
  refusing_.insert(executor);
  if (!e.held || e.reserved == d) unreserve(executor);
  refresh(executor, d);
}

std::optional<std::string> executor_pool::refusal_of(demand_index d) const {
  for (const auto e : refusing_)
    if (const auto it = executors_[e].refused.find(d); it != executors_[e].refused.end()) return it->second.reason;
  return std::nullopt;
}

bool executor_pool::forgive(time_point now) {
  bool any = false;
  for (auto it = refusing_.begin(); it != refusing_.end();) {
    auto& e = executors_[*it];
    if (std::erase_if(e.refused, [&](const auto& entry) { return entry.second.until <= now; }) > 0) {
      any = true;
      refresh(*it);
    }
    it = e.refused.empty() ? refusing_.erase(it) : std::next(it);
  }
  return any;
}

void executor_pool::bar(executor_index executor, demand_index d) {
  auto& e = executors_[executor];
  e.barred.insert(d);
  if (!e.held || e.reserved == d) unreserve(executor);
  recount(executor, d);
}

void executor_pool::exclude(executor_index executor, profile_id profile) {
  auto& e = executors_[executor];
  if (!e.excluded.insert(profile).second) return;
  if (!e.held || demands_[*e.reserved].what.profile == profile) unreserve(executor);
  for (demand_index d = 0; d < demands_.size(); ++d)
    if (demands_[d].what.profile == profile) recount(executor, d);
}

void executor_pool::readmit(executor_index executor, profile_id profile) {
  if (executors_[executor].excluded.erase(profile) == 0) return;
  for (demand_index d = 0; d < demands_.size(); ++d)
    if (demands_[d].what.profile == profile) recount(executor, d);
}

void executor_pool::reserve(executor_index executor, demand_index d) {
  executors_[executor].reserved = d;
  refresh(executor);
}

void executor_pool::unreserve(executor_index executor) {
  auto& e = executors_[executor];
  if (!e.reserved) return;
  e.reserved.reset();
  e.held = false;
  refresh(executor);
}

void executor_pool::hold(executor_index executor, demand_index d) {
  executors_[executor].held = true;
  reserve(executor, d);
}

namespace {

/// Whatever room it has, tasks of this demand cannot run there.
bool runs_another_program(const executor_record& e, demand_index d, const demand& what) {
  return e.barred.contains(d) || (!what.build_id.empty() && (!e.info.native || e.info.build_id != what.build_id));
}

} // namespace

bool executor_pool::has_wrong_program(demand_index d) const {
  const auto& what = demands_[d].what;
  return std::any_of(by_id_.begin(), by_id_.end(), [&](const auto& entry) {
    const auto& e = executors_[entry.second];
    return runs_another_program(e, d, what) && e.info.request && troupe::satisfies(e.info.capacity, *what.content);
  });
}

std::optional<executor_pool::nearest_executor> executor_pool::nearest(demand_index d) const {
  const auto& what = demands_[d].what;
  std::optional<nearest_executor> best;
  for (const auto& [id, e] : by_id_) {
    const auto& record = executors_[e];
    if (record.status != executor_record::state::active) continue;
    nearest_executor candidate{e, shortfalls(record.info.capacity, *what.content), {}, false};
    candidate.wrong_program = runs_another_program(record, d, what);
    if (!what.build_id.empty() && !record.info.native)
      candidate.other = "runs commands only";
    else if (!what.build_id.empty() && record.info.build_id != what.build_id)
      candidate.other = "was started from another build of the program";
    else if (record.barred.contains(d))
      candidate.other = "refused it as a program of another build";
    else if (!was_started_for(record, what))
      candidate.other = std::string{"was started for another profile"} +
                        (candidate.lacks.empty() ? ", though a large enough one" : "") +
                        " (troupe.scheduler.profile-matching = exact)";
    // Of two that lack as much, the one that could run it.
    const auto weight = [](const nearest_executor& n) {
      return std::pair{n.lacks.size() + (n.other.empty() ? 0 : 1), n.wrong_program};
    };
    if (!best || weight(candidate) < weight(*best)) best = std::move(candidate);
  }
  return best;
}

} // namespace troupe
