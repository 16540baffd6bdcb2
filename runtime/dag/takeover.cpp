// Blocks of executors that are to go, kept by the shuffle service of their machine.

#include <algorithm>
#include <set>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// Of the executor's machine; one that names none is there for all executors of its session.
executor_index dag_scheduler::service_for(const executor_info& info) const {
  for (const auto id : services_) {
    const auto s = pool_.find(id);
    if (pool_[s].info.host.empty() || pool_[s].info.host == info.host) return s;
  }
  return no_executor;
}

/// No task ever runs there.
void dag_scheduler::add_service(executor_index s, time_point now) {
  drain(s);
  services_.push_back(pool_[s].info.executor);
  for (const auto& [id, e] : pool_.all())
    if (pool_[e].status == executor_record::state::draining) hand_over(e);
  load_due_ = true;
  touch_idle(s, now);
}

/// What was asked of it is asked of the next one.
void dag_scheduler::remove_service(executor_id service) {
  std::erase(services_, service);
  for (const auto& [id, e] : pool_.all()) {
    if (pool_[e].handed.to != service) continue;
    pool_[e].handed = {};
    hand_over(e);
  }
  load_due_ = true;
}

/// Goes on with what is to make this executor dispensable: whatever unfinished jobs need of it changes hands, and then
/// the sockets at which it is asked for that. Nothing does as long as it keeps results of ended jobs, whose submitters
/// know where those are. @pre it is draining
void dag_scheduler::hand_over(executor_index e) {
  constexpr std::uint8_t most_in_vain = 3;
  auto& record = pool_[e];
  auto& handed = record.handed;
  if (record.info.shuffle_service || record.info.blocks.host.empty() || handed.asked) return;
  const auto s = handed.to ? pool_.find(handed.to) : service_for(record.info);
  if (s == no_executor || handed.in_vain >= most_in_vain) return;
  block_takeover what{endpoint_of(record.info), {}};
  if (record.kept.empty()) {
    if (!handed.any || handed.sockets) return;
    what.sockets = handed.sockets = true;
  }
  for (const auto& [stage_number, partitions] : record.kept) {
    const auto* stage = find_stage(stage_number);
    if (!stage) return;
    for (const auto p : partitions)
      if (!stage->keeps || !stage->from_cache[p])
        what.blocks.push_back({stage_number, p, stage->tasks.attempt_of(p), 0});
  }
  if (what.blocks.empty() && !what.sockets) return; // what is kept of datasets stays
  std::sort(what.blocks.begin(), what.blocks.end());
  handed.to = pool_[s].info.executor;
  handed.asked = true;
  orders_for(s).takeovers.push_back(std::move(what));
}

/// The service has the blocks. Those that are still the accepted ones are its own from now on.
void dag_scheduler::on_taken_over(executor_index s, const block_takeover& what, time_point now) {
  if (!pool_[s].info.shuffle_service) {
    ++stale_;
    return;
  }
  const auto e = pool_.find(what.from.executor);
  const bool there = e != no_executor && e != s && pool_[e].info.epoch == what.from.epoch;
  std::set<stage_id> unknown;
  std::set<stage_id> moved;
  std::uint32_t unwanted = 0; // by now
  for (const auto& block : what.blocks) {
    auto* stage = find_stage(block.stage);
    if (!stage) {
      unknown.insert(block.stage);
      continue;
    }
    pool_[s].installed.set(stage->id, stage->attempt); // so that it is told when the stage goes
    find_job(stage->job)->touched.add(pool_[s].info.executor);
    const bool accepted =
        block.partition < stage->tasks.size() && stage->tasks.status_of(block.partition) == task_set::status::done &&
        stage->tasks.attempt_of(block.partition) == block.attempt && !stage->has_consumed(block.partition);
    if (accepted && stage->tasks.executor_of(block.partition) == s) continue; // said before
    const auto drop = [&] {
      ++unwanted;
      orders_for(s).consumed.push_back({block.stage, block.partition, block.attempt, 0});
    };
    if (!accepted || !there || stage->tasks.executor_of(block.partition) != e) {
      drop();
      continue;
    }
    auto& kept = pool_[e].kept;
    const auto at = kept.find(stage->id);
    if (at == kept.end() || !at->second.remove(block.partition)) {
      drop();
      continue;
    }
    if (at->second.empty()) kept.erase(at);
    pool_[s].kept[stage->id].add(block.partition);
    stage->tasks.output_moved(block.partition, s);
    stage->value_moved(block.partition, endpoint_of(pool_[s].info));
    moved.insert(stage->id);
  }
  // Whoever hears of a reader only now is told of the new place.
  for (const auto id : moved) {
    auto& job = *find_job(find_stage(id)->job);
    for (const auto child : find_stage(id)->children)
      if (auto& reader = job.stages[child]; reader.state == stage_state::running)
        reader.inputs = inputs_of(job, reader);
  }
  // Their jobs have ended meanwhile.
  auto& removed = orders_for(s).removed_stages;
  removed.insert(removed.end(), unknown.begin(), unknown.end());
  if (!there) return;
  if (auto& handed = pool_[e].handed; handed.asked && handed.to == pool_[s].info.executor) {
    handed.asked = false;
    handed.any = handed.any || !moved.empty();
    handed.in_vain = static_cast<std::uint8_t>(moved.empty() && unwanted == 0 ? handed.in_vain + 1 : 0);
    hand_over(e);
  }
  touch_idle(e, now);
  load_due_ = true;
}

} // namespace troupe
