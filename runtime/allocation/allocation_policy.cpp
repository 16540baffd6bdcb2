#include <troupe/runtime/allocation/allocation_policy.hpp>

#include <algorithm>
#include <utility>

#include <troupe/runtime/resources/capacity.hpp>

namespace troupe {

namespace {

/// For so many executors way is made at a time; the next report goes on.
constexpr std::uint32_t most_at_a_time = 64;

} // namespace

allocation_policy::allocation_policy(options opts) : options_(std::move(opts)) {
  for (const auto& f : options_.fixed) {
    auto& record = shapes_.try_emplace(f.shape.shape, shape_record{f.shape, 0, 0, {}}).first->second;
    record.fixed += f.count;
  }
}

std::uint32_t allocation_policy::count(shape_id shape, request_state state, std::optional<bool> fixed) const {
  return static_cast<std::uint32_t>(std::count_if(requests_.begin(), requests_.end(), [&](const auto& entry) {
    return entry.second.shape == shape && entry.second.state == state && (!fixed || entry.second.fixed == *fixed);
  }));
}

std::uint32_t allocation_policy::live() const {
  return static_cast<std::uint32_t>(std::count_if(requests_.begin(), requests_.end(), [](const auto& entry) {
    return entry.second.state != request_state::parked;
  }));
}

std::vector<executor_order> allocation_policy::wanted() const {
  std::vector<executor_order> orders;
  orders.reserve(requests_.size());
  for (const auto& [id, r] : requests_)
    orders.push_back({id, shapes_.at(r.shape).shape, r.state == request_state::parked, r.fixed});
  return orders;
}

void allocation_policy::start(shape_record& shape, std::uint32_t n, bool fixed, time_point now,
                              effects::allocation_list& out) {
  for (; n > 0; --n) {
    const request_id id{next_request_++};
    requests_.emplace(id, request{shape.shape.shape, request_state::starting, now, fixed});
    out.push_back(effects::announce_request{id, shape.shape});
  }
}

void allocation_policy::on_start(time_point now, const room_function& room, effects::allocation_list& out) {
  // In the order of the list, as a cluster file is checked.
  for (const auto& f : options_.fixed) {
    start(shapes_.at(f.shape.shape), std::min(f.count, room(f.shape)), true, now, out);
    out.push_back(effects::converge{wanted()});
  }
}

/// Its executor is to end, and keeps its room until the backend says that it is gone.
allocation_policy::request_map::iterator allocation_policy::drop(request_map::iterator it) {
  leaving_.insert(it->first);
  return requests_.erase(it);
}

/// Learns which requests have become executors, and which of those are gone.
void allocation_policy::read_present(const load_report& report, effects::allocation_list& out) {
  const std::set<request_id> present{report.present.begin(), report.present.end()};
  bool changed = false;
  for (auto it = requests_.begin(); it != requests_.end();) {
    auto& r = it->second;
    if (present.contains(it->first)) {
      if (r.state == request_state::starting) {
        r.state = request_state::present;
        shapes_.at(r.shape).failures = 0;
      }
    } else if (r.state != request_state::starting) {
      // It was admitted once and is gone now: no longer wanted under this number.
      it = drop(it);
      changed = true;
      continue;
    }
    ++it;
  }
  if (changed) out.push_back(effects::converge{wanted()});
}

/// Asks for what has been idle too long and drops what may be stopped. @returns executors that could make way for
/// others: fixed ones last, without output first, then without kept datasets, the longest idle first.
std::vector<idle_executor> allocation_policy::read_idle(const load_report& report, time_point now,
                                                        effects::allocation_list& out) {
  // What is not idle any more has been refused, or is gone; an answer that never came is not waited for.
  std::set<executor_id> idle_now;
  for (const auto& idle : report.idle)
    if (!idle.draining) idle_now.insert(idle.executor);
  std::erase_if(asked_, [&](const auto& entry) {
    return !idle_now.contains(entry.first) || now - entry.second.since >= options_.answer_timeout;
  });
  std::vector<idle_executor> reclaimable;
  bool changed = false;
  for (const auto& idle : report.idle) {
    const auto it = requests_.find(idle.request);
    if (it == requests_.end()) continue;
    auto& r = it->second;
    if (idle.draining) {
      // Consent was given, even if the answer was lost.
      if (idle.serving && r.state != request_state::parked) {
        r.state = request_state::parked;
        changed = true;
      } else if (!idle.serving) {
        drop(it);
        changed = true;
      }
      continue;
    }
    if (asked_.contains(idle.executor)) continue;
    const auto timeout = idle.keeping ? options_.keeping_idle_timeout : options_.idle_timeout;
    const auto limit = static_cast<std::uint64_t>(timeout.count());
    if (options_.dynamic && !r.fixed && (!idle.serving || options_.outputs_outlive) && idle.idle_nanoseconds >= limit)
      ask_release(idle, now, out);
    else
      reclaimable.push_back(idle);
  }
  if (changed) out.push_back(effects::converge{wanted()});
  // Two executors of one request: what the second one said has ended it.
  std::erase_if(reclaimable, [this](const idle_executor& idle) { return !requests_.contains(idle.request); });
  std::sort(reclaimable.begin(), reclaimable.end(), [this](const idle_executor& a, const idle_executor& b) {
    return std::tuple{requests_.at(a.request).fixed, a.serving, a.keeping, b.idle_nanoseconds, a.executor} <
           std::tuple{requests_.at(b.request).fixed, b.serving, b.keeping, a.idle_nanoseconds, b.executor};
  });
  return reclaimable;
}

void allocation_policy::ask_release(const idle_executor& idle, time_point now, effects::allocation_list& out) {
  asked_[idle.executor] = {idle.request, now};
  out.push_back(effects::ask_release{idle.executor});
}

/// Where there is no room, what is idle for other shapes makes way, and what only serves output is parked: on a host
/// where the fewest have to, and no more than are missing when those that leave already have gone.
/// @param beyond_limit so many are missing because of `max_executors`, which any executor makes way for
void allocation_policy::make_way(const shape_load& load, std::uint32_t short_of, std::uint32_t beyond_limit,
                                 std::vector<idle_executor>& reclaimable, time_point now, const way_function& way,
                                 effects::allocation_list& out) {
  // A fixed one goes only for what could never run beside it; it comes back when there is room.
  const auto may_go = [&](const idle_executor& idle) {
    const auto& r = requests_.at(idle.request);
    return r.shape != load.shape && (!r.fixed || load.satisfied_by_none);
  };
  const auto release = [&](std::vector<idle_executor>::iterator it) {
    if (it == reclaimable.end()) return;
    ask_release(*it, now, out);
    reclaimable.erase(it);
  };
  way_question question{
      shapes_.at(load.shape).shape, std::min(short_of, most_at_a_time), {leaving_.begin(), leaving_.end()}, {}};
  for (const auto& [executor, asked] : asked_) question.leaving.push_back(asked.request);
  std::size_t least = short_of;
  std::size_t going = question.leaving.size();
  // A fixed one costs more than any number of others: it is asked for what is still missing when those have gone.
  for (const bool with_fixed : {false, true}) {
    question.may_go.clear();
    bool any_fixed = false;
    for (const auto& idle : reclaimable) {
      const bool fixed = requests_.at(idle.request).fixed;
      if (!may_go(idle) || (fixed && !with_fixed)) continue;
      question.may_go.push_back(idle.request);
      any_fixed = any_fixed || fixed;
    }
    if (with_fixed && !any_fixed) break;
    const auto answer = way(question);
    if (!answer) break;
    for (const auto id : answer->going) {
      release(std::find_if(reclaimable.begin(), reclaimable.end(),
                           [&](const idle_executor& idle) { return idle.request == id; }));
      question.leaving.push_back(id);
    }
    // Who finds room but for the limit, needs somebody to go all the same.
    const auto within_limit = short_of - beyond_limit;
    least = answer->placed > within_limit ? answer->placed - within_limit : 0;
    going = asked_.size();
    if (answer->placed == question.count) break;
  }
  for (; going < least; ++going) {
    const auto other = std::find_if(reclaimable.begin(), reclaimable.end(), may_go);
    if (other == reclaimable.end()) break;
    release(other);
  }
}

void allocation_policy::on_load(const load_report& report, time_point now, const room_function& room,
                                const way_function& way, effects::allocation_list& out) {
  if (report.number <= last_report_) return;
  last_report_ = report.number;
  for (const auto& s : report.new_shapes) shapes_.try_emplace(s.shape, shape_record{s, 0, 0, {}});
  read_present(report, out);
  auto reclaimable = read_idle(report, now, out);
  bool way_is_made = false;
  std::vector<shape_status> statuses;
  for (const auto& load : report.loads) {
    const auto found = shapes_.find(load.shape);
    if (found == shapes_.end()) continue;
    const auto starting = count(load.shape, request_state::starting);
    const auto missing = load.executors_wanted > starting ? load.executors_wanted - starting : 0;
    auto& status = statuses.emplace_back(shape_status{load.shape, starting, missing, allocation_obstacle::none});
    if (options_.only_fixed)
      status.why = allocation_obstacle::only_fixed;
    else if (now < found->second.not_before)
      status.why = allocation_obstacle::pause;
    else if (!options_.dynamic && !load.satisfied_by_none)
      status.why = allocation_obstacle::not_dynamic;
    if (status.why != allocation_obstacle::none) continue;
    auto& shape = found->second;
    const auto allowed = options_.max_executors > live() ? options_.max_executors - live() : 0;
    const auto n = std::min({missing, allowed, missing > 0 ? room(shape.shape) : 0});
    if (n > 0) {
      start(shape, n, false, now, out);
      out.push_back(effects::converge{wanted()});
    }
    const auto short_of = missing - n;
    status.starting += n;
    status.missing = short_of;
    if (short_of > 0) status.why = allowed < missing ? allocation_obstacle::limit : allocation_obstacle::room;
    if (short_of > 0) make_way(load, short_of, missing > allowed ? missing - allowed : 0, reclaimable, now, way, out);
    way_is_made = way_is_made || (load.satisfied_by_none && short_of > 0);
  }
  if (statuses != told_) {
    told_ = statuses;
    out.push_back(effects::report_shapes{std::move(statuses)});
  }
  // What a fixed executor left must not go back to it while it is too little for whom it left: they would take turns
  // for ever. It comes back when that demand is satisfied or gone.
  if (way_is_made) return;
  for (auto& [id, shape] : shapes_) {
    if (shape.fixed == 0 || now < shape.not_before) continue;
    const auto have = count(id, request_state::starting, true) + count(id, request_state::present, true);
    if (have >= shape.fixed) continue;
    const auto n = std::min(shape.fixed - have, room(shape.shape));
    if (n == 0) continue;
    start(shape, n, true, now, out);
    out.push_back(effects::converge{wanted()});
  }
}

feasibility allocation_policy::check(const executor_shape& shape,
                                     const std::function<feasibility()>& of_backend) const {
  if (!options_.only_fixed) {
    auto answer = of_backend();
    answer.most = std::min(answer.most, options_.max_executors);
    return answer;
  }
  // In executors of that shape, of which a larger one is worth several.
  const auto own = std::max<std::int64_t>(1, slots_of(shape.profile).slots);
  std::int64_t most = 0;
  for (const auto& f : options_.fixed) {
    const auto capacity = capacity_of(f.shape.profile);
    if (options_.exact_matching)
      most += f.shape.profile.executor == shape.profile.executor ? f.count : 0;
    else if (satisfies(capacity, shape.profile))
      most += f.count * ((slots_of(capacity, shape.profile).slots + own - 1) / own);
  }
  if (most > 0) return {true, true, {}, static_cast<std::uint32_t>(std::min<std::int64_t>(most, 0xffff'ffff))};
  return {false, true,
          "no executor that the cluster file lists satisfies it, and no others are started (cluster.elastic: false)"};
}

void allocation_policy::launch_failed(request_id id, launch_status status, time_point now,
                                      effects::allocation_list& out) {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return;
  auto& shape = shapes_.at(it->second.shape);
  shape.failures = std::min<std::uint32_t>(shape.failures + 1, 6);
  shape.not_before = now + options_.retry_pause * (1 << (shape.failures - 1));
  status.shape = it->second.shape;
  out.push_back(effects::report_launch_failure{std::move(status)});
  drop(it);
}

void allocation_policy::on_snapshot(const std::vector<launch_status>& statuses, time_point now,
                                    effects::allocation_list& out) {
  const auto before = requests_.size();
  for (const auto& s : statuses) {
    const auto it = requests_.find(s.request);
    if (it == requests_.end() || s.state == launch_state::starting || s.state == launch_state::running) continue;
    // One that was admitted is reported by the driver; only one that never came is a failed launch.
    if (it->second.state == request_state::starting) launch_failed(s.request, s, now, out);
  }
  std::vector<request_id> late;
  for (const auto& [id, r] : requests_)
    if (r.state == request_state::starting && now - r.since >= options_.launch_timeout) late.push_back(id);
  for (const auto id : late)
    launch_failed(id,
                  {id,
                   {},
                   launch_state::gone,
                   "it did not say hello in time (troupe.dynamic-allocation.launch-timeout); main of a program of your "
                   "own has to come to troupe::run, or to main_hook of a test cluster, before all that takes long"},
                  now, out);
  if (requests_.size() != before) out.push_back(effects::converge{wanted()});
  std::set<request_id> still_there;
  for (const auto& s : statuses)
    if (s.state == launch_state::starting || s.state == launch_state::running) still_there.insert(s.request);
  std::erase_if(leaving_, [&](request_id id) { return !still_there.contains(id); });
}

void allocation_policy::on_release_answer(executor_id executor, bool granted, bool serving,
                                          effects::allocation_list& out) {
  const auto asked = asked_.find(executor);
  if (asked == asked_.end()) return;
  const auto it = requests_.find(asked->second.request);
  asked_.erase(asked);
  if (!granted || it == requests_.end()) return;
  if (serving)
    it->second.state = request_state::parked;
  else
    drop(it);
  out.push_back(effects::converge{wanted()});
}

} // namespace troupe
