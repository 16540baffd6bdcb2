#include <troupe/tests/support/fake_executor.hpp>

#include <algorithm>

#include <troupe/runtime/scheduling/bucket_sizes.hpp>
#include <troupe/tests/support/builders.hpp>

namespace troupe::testing {

fake_executor::fake_executor(executor_info info) : info_(std::move(info)), book_(info_.capacity) {}

void fake_executor::refuse_batches(std::string reason, bool build_mismatch) {
  refuse_batches_ = std::move(reason);
  build_mismatch_ = build_mismatch;
}

void fake_executor::refuse(const task_batch& batch, std::string reason, bool mismatch) {
  refusal r;
  r.lease = batch.lease;
  r.stage = batch.stage;
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    r.partitions.push_back(batch.partition(i));
    r.attempts.push_back(batch.attempt(i));
  }
  r.reason = std::move(reason);
  r.build_mismatch = mismatch;
  refusals_.push_back(std::move(r));
}

std::optional<std::string> fake_executor::apply(const executor_orders& orders) {
  const auto fault = [&](const std::string& what) {
    return "executor " + std::to_string(info_.executor.value) + " was ordered what it cannot do: " + what;
  };
  if (orders.epoch != info_.epoch) return fault("orders for another incarnation");
  if (orders.sequence != sequence_ + 1) return fault("orders with a gap");
  ++sequence_;
  if (orders.empty()) return fault("empty orders");
  for (const auto id : orders.revoked) {
    const auto it = leases_.find(id);
    if (it == leases_.end()) return fault("an unknown lease is revoked");
    if (!it->second.queue.empty()) return fault("a lease is revoked that has tasks");
    if (!book_.release(it->second.holding)) return fault("a lease gives back what it did not hold");
    leases_.erase(it);
  }
  for (const auto stage : orders.removed_stages) {
    if (stages_.erase(stage) == 0 && !info_.shuffle_service) return fault("a stage is removed that is not installed");
    for (auto& [id, lease] : leases_)
      for (auto& a : lease.queue) a.doomed = a.doomed || a.stage == stage;
  }
  for (const auto& k : orders.kills)
    for (auto& [id, lease] : leases_)
      for (auto& a : lease.queue)
        a.doomed = a.doomed || (a.stage == k.stage && a.partition == k.partition && a.attempt == k.attempt);
  if (!orders.takeovers.empty() && !info_.shuffle_service) return fault("blocks are handed to it");
  takeovers_.insert(takeovers_.end(), orders.takeovers.begin(), orders.takeovers.end());
  withdrawn_.insert(withdrawn_.end(), orders.withdrawn.begin(), orders.withdrawn.end());
  for (const auto cache : orders.unkept) std::erase_if(kept_, [&](const auto& one) { return one.first == cache; });
  for (const auto& copy : orders.surplus) kept_.erase({copy.cache, copy.partition});
  told_gone_.insert(told_gone_.end(), orders.gone.begin(), orders.gone.end());
  for (const auto id : orders.recalled) {
    const auto it = leases_.find(id);
    if (it == leases_.end() && !refused_.contains(id)) return fault("an unknown lease is recalled");
    if (it == leases_.end() || it->second.queue.size() < 2) continue;
    auto& queue = it->second.queue;
    std::for_each(std::next(queue.begin()), queue.end(), [&](const fake_attempt& a) {
      unsent_.push_back({a, task_status::given_back, {}, {}});
    });
    queue.erase(std::next(queue.begin()), queue.end());
  }
  for (const auto& g : orders.grants) {
    std::string why = refuse_grants_;
    if (why.empty() && !satisfies(info_.capacity, *g.profile)) why = "the profile is not satisfied";
    if (why.empty() && !matches(g.holding, *g.profile)) why = "the addresses are not what a task takes";
    if (why.empty())
      if (const auto taken = book_.acquire(g.holding); !taken) why = taken.error().message;
    if (!why.empty()) {
      if (refuse_grants_.empty()) return fault("a grant that the ledger declines: " + why);
      refusal r;
      r.lease = g.lease;
      r.reason = why;
      refusals_.push_back(std::move(r));
      refused_.insert(g.lease);
    } else if (!leases_.emplace(g.lease, open_lease{g.holding, {}}).second) {
      return fault("a lease is granted twice");
    }
  }
  for (const auto& i : orders.installs) {
    const auto it = stages_.find(i.stage);
    if (it != stages_.end() && it->second.stage_attempt >= i.stage_attempt) return fault("an older stage attempt");
    stages_[i.stage] = i;
  }
  for (const auto& b : orders.batches) {
    if (b.count == 0) return fault("an empty batch");
    const auto stage = stages_.find(b.stage);
    if (stage == stages_.end() || stage->second.stage_attempt != b.stage_attempt)
      return fault("a batch of a stage attempt that is not installed");
    const auto lease = leases_.find(b.lease);
    if (lease == leases_.end() || !refuse_batches_.empty()) {
      if (lease == leases_.end() && refuse_grants_.empty()) return fault("a batch for an unknown lease");
      refuse(b, lease == leases_.end() ? "the lease is not open" : refuse_batches_, build_mismatch_);
      continue;
    }
    for (std::uint32_t i = 0; i < b.count; ++i) {
      const fake_attempt a{b.stage, b.stage_attempt, b.partition(i), b.attempt(i), b.lease, false};
      if (a.partition >= stage->second.tasks) return fault("a partition beyond the stage's tasks");
      auto& inputs = inputs_[{a.stage, a.partition, a.attempt}];
      inputs.clear();
      for (const auto& input : b.inputs) {
        if (input.endpoint_of_task.size() != b.count || input.attempt_of_task.size() != b.count)
          return fault("inputs that do not fit their batch");
        if (input.endpoint_of_task[i] == partition_inputs::nowhere) continue;
        if (input.endpoint_of_task[i] >= input.endpoints.size()) return fault("inputs of nobody");
        if (input.attempt_of_task[i] == partition_inputs::kept) {
          if (!input.cache) return fault("a kept partition of no dataset");
          caches_[input.stage] = input.cache;
        }
        inputs.push_back(
            {input.stage, a.partition, input.attempt_of_task[i], input.endpoints[input.endpoint_of_task[i]].executor});
      }
      lease->second.queue.push_back(a);
    }
  }
  return std::nullopt;
}

std::vector<fake_attempt> fake_executor::attempts() const {
  std::vector<fake_attempt> all;
  for (const auto& [id, lease] : leases_) all.insert(all.end(), lease.queue.begin(), lease.queue.end());
  return all;
}

std::vector<fake_attempt> fake_executor::running() const {
  std::vector<fake_attempt> all;
  for (const auto& [id, lease] : leases_)
    if (!lease.queue.empty()) all.push_back(lease.queue.front());
  return all;
}

const allotment* fake_executor::holding(lease_id lease) const {
  const auto it = leases_.find(lease);
  return it == leases_.end() ? nullptr : &it->second.holding;
}

const std::vector<fake_input>& fake_executor::inputs_of(const fake_attempt& a) const {
  return inputs_.at({a.stage, a.partition, a.attempt});
}

const stage_install* fake_executor::installed(stage_id stage) const {
  const auto it = stages_.find(stage);
  return it == stages_.end() ? nullptr : &it->second;
}

void fake_executor::evict(cache_id cache, partition_index partition) {
  kept_.erase({cache, partition});
  evicted_.push_back({cache, partition});
}

fake_end fake_executor::success(const fake_attempt& a, std::string_view value) {
  if (a.doomed) return {a, task_status::killed, {}, {}};
  const auto* stage = installed(a.stage);
  const std::uint64_t sizes[] = {8};
  const auto is_kept = stage && stage->keeps && keeps_ && kept_.emplace(stage->keeps, a.partition).second;
  auto map_output = map_result(8, stage && stage->buckets == 1 ? encode_bucket_sizes(sizes) : std::string{});
  if (is_kept) map_output.front() = '\3';
  return {a, task_status::succeeded, stage && stage->buckets > 0 ? map_output : inline_result(value), {}};
}

executor_report fake_executor::report(std::vector<fake_end> ends, duration run_time) {
  ++reports_;
  executor_report r;
  r.executor = info_.executor;
  r.epoch = info_.epoch;
  r.orders_seen = sequence_;
  r.refusals = std::exchange(refusals_, {});
  r.evicted = std::exchange(evicted_, {});
  ends.insert(ends.end(), unsent_.begin(), unsent_.end());
  unsent_.clear();
  std::shared_ptr<outcome_batch> batch;
  for (const auto& end : ends) {
    const auto& a = end.what;
    if (const auto lease = leases_.find(a.lease); lease != leases_.end()) {
      auto& queue = lease->second.queue;
      const auto it = std::find_if(queue.begin(), queue.end(), [&](const fake_attempt& other) {
        return other.stage == a.stage && other.partition == a.partition && other.attempt == a.attempt;
      });
      if (it != queue.end()) queue.erase(it);
      inputs_.erase({a.stage, a.partition, a.attempt});
    }
    if (!batch || batch->stage != a.stage || batch->lease != a.lease || batch->stage_attempt != a.stage_attempt ||
        batch->count == 256) {
      batch = std::make_shared<outcome_batch>();
      batch->stage = a.stage;
      batch->stage_attempt = a.stage_attempt;
      batch->lease = a.lease;
      r.outcomes.push_back(batch);
    }
    batch->partitions.push_back(a.partition);
    batch->attempts.push_back(a.attempt);
    batch->statuses.push_back(end.status);
    batch->results.push_back(end.status == task_status::succeeded ? std::string_view{end.result} : std::string_view{});
    for (const auto& [name, amount] : end.counted) {
      auto& names = batch->accumulators;
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      batch->counted.push_back(
          {batch->count, static_cast<std::uint32_t>(std::ranges::find(names, name) - names.begin()), amount});
    }
    std::ranges::sort(batch->counted, {}, [](const counted_amount& c) { return std::pair{c.index, c.accumulator}; });
    if (end.status != task_status::succeeded) {
      batch->failures.push_back(end.detail);
      batch->failures.back().index = batch->count;
    }
    ++batch->count;
    if (end.status != task_status::given_back) batch->run_nanoseconds += static_cast<std::uint64_t>(run_time.count());
  }
  return r;
}

executor_heartbeat fake_executor::heartbeat() const {
  executor_heartbeat beat;
  beat.executor = info_.executor;
  beat.epoch = info_.epoch;
  beat.orders_seen = sequence_;
  beat.reports_sent = reports_;
  beat.running = static_cast<std::uint32_t>(running().size());
  beat.queued = static_cast<std::uint32_t>(attempts().size()) - beat.running;
  return beat;
}

} // namespace troupe::testing
