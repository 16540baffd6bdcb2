// The executors of a simulated cluster: what they do with their orders, and what they say of it.

#include <stdexcept>

#include <troupe/tests/support/simulator.hpp>

namespace troupe::testing {

void simulator::send(const effects::send_orders& what) {
  auto& m = *members_.at(what.executor);
  m.orders_until = std::max(m.orders_until, now_ + latency());
  at(m.orders_until - now_, "orders for executor " + std::to_string(what.executor.value), [=, this] {
    auto& to = *members_.at(what.executor);
    if (!to.alive || to.deaf) return;
    if (to.loses && strikes(40) && !jobs_are_over()) {
      say("they get lost");
      to.deaf = true;
      return;
    }
    const bool refuse = strikes(60);
    const bool batches = dice_.once_in(2);
    if (refuse && batches) to.self.refuse_batches("no space left", strikes(10));
    if (refuse && !batches) to.self.refuse_grants("no such address");
    const auto fault = to.self.apply(what.orders);
    to.self.refuse_batches({});
    to.self.refuse_grants({});
    if (fault) throw std::logic_error(*fault);
    for (const auto& right : what.orders.rights) use_right(what.executor, right);
    for (const auto stage : what.orders.removed_stages)
      std::erase_if(to.blocks, [&](const auto& block) { return std::get<0>(block) == stage; });
    for (const auto& read : what.orders.consumed) to.blocks.erase(std::tuple{read.stage, read.partition, read.attempt});
    report_.consumed += what.orders.consumed.size();
    report_.recalls += what.orders.recalled.size();
    if (to.self.has_unsent())
      deliver(what.executor, to.self.report({}), "answer of executor " + std::to_string(what.executor.value));
    let_go(what.executor, what.orders);
    work(what.executor);
  });
}

/// A task of a gang waits for the others before it ends. @returns whether it does now
bool simulator::meets(executor_id e, lease_id lease) {
  auto& m = *members_.at(e);
  for (const auto& a : m.self.running()) {
    if (a.lease != lease || a.doomed || !meeting_.contains(a.stage) || m.met.contains(a)) continue;
    m.waiting[a] = lease;
    auto report = m.self.report({});
    report.arrivals.push_back(
        {a.stage, a.stage_attempt, a.partition, a.attempt, 0, sync_kind::all_gather, std::to_string(a.partition)});
    deliver(e, report, "a task of stage " + std::to_string(a.stage.value) + " waits for its gang");
    return true;
  }
  return false;
}

/// Those that wait no longer: they have met, or are to end.
void simulator::let_go(executor_id e, const executor_orders& orders) {
  auto& m = *members_.at(e);
  const auto present = m.self.attempts();
  for (auto it = m.waiting.begin(); it != m.waiting.end();) {
    const auto [a, lease] = *it;
    bool goes = std::find(present.begin(), present.end(), a) == present.end(); // it is doomed now
    for (const auto& b : orders.barriers) {
      if (b.stage != a.stage || b.stage_attempt != a.stage_attempt ||
          std::find(b.partitions.begin(), b.partitions.end(), a.partition) == b.partitions.end())
        continue;
      goes = true;
      m.met.insert(a);
      if (!b.failure.empty()) {
        m.deserted.insert(a);
      } else if (!b.texts || (*b.texts)[a.partition] != std::to_string(a.partition)) {
        throw std::logic_error("a task got other texts than were handed over");
      }
    }
    if (!goes) {
      ++it;
      continue;
    }
    it = m.waiting.erase(it);
    at(1ms, "a task of stage " + std::to_string(a.stage.value) + " goes on", [=, l = lease, this] { finish(e, l, 1); });
  }
}

/// Starts what is at the front of idle leases.
void simulator::work(executor_id e) {
  auto& m = *members_.at(e);
  for (const auto& a : m.self.running()) {
    if (!m.busy.insert(a.lease).second) continue;
    const auto pace = pace_.at(a.stage);
    // Of the shortest tasks several end at once, and some turn out to be long.
    const bool straggles = pace < 1ms && dice_.once_in(20);
    const auto count = pace < 1ms && !straggles ? static_cast<std::uint32_t>(dice_.between(1, 64)) : 1u;
    const duration usual{static_cast<std::int64_t>(
        dice_.between(static_cast<std::uint64_t>(pace.count()) / 2, static_cast<std::uint64_t>(pace.count()) * 2))};
    const auto run = straggles ? duration{2s} : usual;
    at(a.doomed ? 1ms : run * count, "tasks end on executor " + std::to_string(e.value),
       [=, lease = a.lease, this] { finish(e, lease, count); });
  }
}

void simulator::finish(executor_id e, lease_id lease, std::uint32_t count) {
  auto& m = *members_.at(e);
  if (!m.alive || meets(e, lease)) return;
  m.busy.erase(lease);
  std::vector<fake_end> ends;
  duration pace{};
  for (const auto& a : m.self.attempts()) {
    if (a.lease != lease || ends.size() == count) continue;
    pace = pace_.at(a.stage);
    ends.push_back(outcome_of(m, a));
  }
  auto report = m.self.report(ends, pace);
  if (!report.outcomes.empty()) deliver(e, report, "report of executor " + std::to_string(e.value));
  work(e);
}

/// Reports overtake each other. Some come twice, some never.
void simulator::deliver(executor_id e, const executor_report& report, const std::string& what) {
  auto& m = *members_.at(e);
  if (m.loses && strikes(40) && !jobs_are_over()) {
    say(what + " gets lost");
    m.mute = true;
    return;
  }
  for (int copies = !m.loses && strikes(15) ? 2 : 1; copies > 0; --copies) {
    const auto way = latency();
    m.reports_until = std::max(m.reports_until, now_ + way);
    at(way, what, [=, this] {
      if (scheduler_.pool().find(e) != no_executor)
        for (const auto& batch : report.outcomes)
          for (std::uint32_t i = 0; i < batch->count; ++i)
            if (batch->status(i) == task_status::succeeded)
              reported_.insert({batch->stage, batch->partition(i), batch->attempt(i)});
      effects::list out;
      scheduler_.on_report(report, now_, out);
      dispatch(out);
    });
  }
}

/// A sign of life, which overtakes no report.
void simulator::beat(executor_id e) {
  auto& m = *members_.at(e);
  if (!m.alive || now_ < m.next_beat) return;
  m.next_beat = now_ + 1s;
  at(std::max(m.reports_until - now_, duration{latency()}), {}, [beat = m.self.heartbeat(), this] {
    effects::list out;
    scheduler_.on_heartbeat(beat, now_, out);
    dispatch(out);
  });
}

/// An output that the attempt was told of and that is not there.
std::optional<task_failure> simulator::missing_input(const fake_executor& reader, const fake_attempt& a) {
  const auto missing = [&](stage_id stage, partition_index p, attempt_number attempt,
                           executor_id on) -> std::optional<task_failure> {
    auto& source = *members_.at(on);
    const auto block = std::tuple{stage, p, attempt};
    const bool rotten = strikes(300);
    if (attempt == partition_inputs::kept) {
      const auto cache = reader.cache_of(stage);
      if (rotten && source.self.kept().contains({cache, p})) source.self.evict(cache, p);
      if (source.alive && source.self.kept().contains({cache, p})) {
        ++report_.kept_read;
        return std::nullopt;
      }
    }
    if (rotten) source.blocks.erase(block);
    if (source.alive && source.blocks.contains(block)) return std::nullopt;
    task_failure why;
    why.message = "no block";
    why.shuffle = stage;
    why.map_partition = p;
    why.map_attempt = attempt;
    why.map_executor = on;
    return why;
  };
  for (const auto& input : reader.installed(a.stage)->inputs)
    for (partition_index p = 0; p < input.attempt_of_map.size(); ++p)
      if (auto why = missing(input.shuffle, p, input.attempt_of_map[p],
                             input.endpoints.at(input.endpoint_of_map.at(p)).executor))
        return why;
  for (const auto& input : reader.inputs_of(a))
    if (auto why = missing(input.stage, input.partition, input.attempt, input.executor)) return why;
  return std::nullopt;
}

fake_end simulator::outcome_of(member& m, const fake_attempt& a) {
  if (a.doomed) return {a, task_status::killed, {}, {}};
  // A task of an older stage attempt that was queued has the inputs of the installed one, as on a real executor.
  if (auto why = missing_input(m.self, a)) {
    const auto* stage = m.self.installed(a.stage);
    auto at_work = a;
    at_work.stage_attempt = stage->stage_attempt;
    return {at_work, task_status::fetch_failed, {}, *why};
  }
  task_failure why;
  why.message = "bad luck";
  if (m.deserted.contains(a)) return {a, task_status::failed, {}, why};
  if (dice_.once_in(2)) why.cause = failure_cause::memory_limit;
  if (strikes(40)) return {a, task_status::failed, {}, why};
  if (strikes(200)) return {a, task_status::lost, {}, why};
  if (strikes(200)) return {a, task_status::succeeded, "\5garbage", {}};
  auto end = m.self.success(a, std::to_string(a.partition));
  if (m.self.installed(a.stage)->buckets > 0)
    m.blocks.insert({a.stage, a.partition, a.attempt});
  else if (dice_.once_in(20)) {
    end.result = stored_result(1000);
    m.blocks.insert({a.stage, a.partition, a.attempt});
  }
  stage_output(m.self, a);
  return end;
}

} // namespace troupe::testing
