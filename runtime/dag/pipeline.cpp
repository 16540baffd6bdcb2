// Stages that are connected task by task: a consumer starts when its input exists, a producer pauses while too much of
// what it made waits to be read, and what was read by all goes.

#include <algorithm>
#include <utility>

#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>

namespace troupe {

/// Connects the stages of a new job: their tasks flow where neither side is a gang, whose tasks start together.
void dag_scheduler::connect(job_run& job) {
  for (auto& stage : job.stages)
    for (const auto& dependency : stage.spec->dependencies) {
      auto& parent = job.stages[dependency.stage];
      if (dependency.kind == dependency_kind::one_to_one && !parent.spec->is_native()) parent.hands_on = true;
      if (dependency.kind != dependency_kind::one_to_one || stage.spec->barrier || parent.spec->barrier) continue;
      stage.fed_by.push_back(parent.index);
      parent.feeds.push_back(stage.index);
      parent.consumed.resize(parent.tasks.size());
      parent.unread.resize(parent.tasks.size());
    }
  for (auto& stage : job.stages) {
    if (stage.fed_by.empty()) continue;
    stage.reads_kept = !stage.tasks.located() && std::ranges::any_of(stage.fed_by, [&](std::uint32_t parent) {
      return job.stages[parent].spec->keeps.has_value();
    });
    if (stage.reads_kept) stage.tasks.locate(std::make_unique<located_tasks>(stage.tasks.size()));
    stage.tasks.gate();
  }
  // Of stages that flow into each other the last comes first where several want a slot: what was made is used up before
  // more is made.
  std::vector<bool> ordered(job.stages.size());
  for (std::uint32_t i = 0; i < job.stages.size(); ++i) {
    if (ordered[i]) continue;
    std::vector<std::uint32_t> line{i};
    ordered[i] = true;
    for (std::size_t at = 0; at < line.size(); ++at)
      for (const auto* side : {&job.stages[line[at]].feeds, &job.stages[line[at]].fed_by})
        for (const auto next : *side)
          if (!ordered[next]) {
            ordered[next] = true;
            line.push_back(next);
          }
    std::sort(line.begin(), line.end());
    for (std::size_t at = 0; at < line.size(); ++at) {
      job.stages[line[at]].order = line[line.size() - 1 - at];
      job.stages[line[at]].line = line.front();
    }
  }
}

/// Bytes of what the task made.
std::uint64_t dag_scheduler::output_size(const stage_run& stage, partition_index partition) {
  if (stage.keeps && stage.stays[partition]) return 0; // in any case
  if (!stage.spec->is_shuffle_map()) {
    if (const auto files = stage.handed.find(partition); files != stage.handed.end()) return files->second;
    const auto files = stage.in_place.find(partition);
    return files == stage.in_place.end() ? 0 : files->second;
  }
  const auto sizes = bucket_sizes::parse(stage.bucket_sizes_of_map[partition], stage.spec->buckets);
  return sizes ? sizes->of(0) : 0; // it was parsed before
}

bool dag_scheduler::has_output(const stage_run& stage, partition_index partition) {
  return stage.tasks.status_of(partition) == task_set::status::done && !stage.has_consumed(partition);
}

/// An executor keeps what it made; else that are files under their own names, or nothing.
bool dag_scheduler::is_kept(const stage_run& stage, partition_index partition) {
  return has_output(stage, partition) && (stage.spec->is_shuffle_map() || stage.handed.contains(partition));
}

/// The attempt whose output is read.
attempt_number dag_scheduler::readable_attempt(const stage_run& stage, partition_index partition) {
  return stage.keeps && stage.from_cache[partition] ? partition_inputs::kept : stage.tasks.attempt_of(partition);
}

/// The task has made its output. Consumers that have all their inputs now may start.
void dag_scheduler::feed(job_run& job, stage_run& stage, partition_index partition, time_point now) {
  if (stage.feeds.empty()) return;
  count_unread(stage, partition, true);
  if (stage.keeps) prefer_kept(job, stage, partition);
  for (const auto c : stage.feeds) {
    auto& child = job.stages[c];
    if (child.tasks.status_of(partition) == task_set::status::done || !admit(job, child, partition)) continue;
    if (child.state == stage_state::running)
      make_ready(child, now);
    else
      job.unsettled = true;
  }
  drop_consumed(job, stage, partition, now); // where it was made again although all have read it
}

/// Counts what the task made among what waits to be read, or no longer.
void dag_scheduler::count_unread(stage_run& stage, partition_index partition, bool is_unread) {
  if (stage.unread[partition] == is_unread) return;
  stage.unread[partition] = is_unread;
  const auto size = output_size(stage, partition);
  stage.unconsumed_bytes += is_unread ? size : -size;
  if (is_unread) {
    stage.made_bytes += size;
    ++stage.made_count;
  }
  if (stage.unconsumed_bytes >= options_.max_unconsumed) ahead_.insert(stage.id);
}

/// Whether every task that reads it as soon as it is there is done.
bool dag_scheduler::was_read(const job_run& job, const stage_run& stage, partition_index partition) {
  return std::all_of(stage.feeds.begin(), stage.feeds.end(), [&](std::uint32_t c) {
    return job.stages[c].tasks.status_of(partition) == task_set::status::done;
  });
}

/// Whether the output has to be kept. What depends on the whole stage without reading blocks of it does not count.
bool dag_scheduler::is_wanted(const job_run& job, const stage_run& stage, partition_index partition) {
  if (!was_read(job, stage, partition)) return true;
  return std::any_of(stage.children.begin(), stage.children.end(), [&](std::uint32_t c) {
    const auto& child = job.stages[c];
    if (child.is_fed_by(stage.index)) return stage.spec->indeterminate && !child.tasks.complete();
    return std::ranges::any_of(child.spec->dependencies, [&](const stage_dependency& d) {
      return d.stage == stage.index && d.kind != dependency_kind::all;
    });
  });
}

/// Admits the task where all that it reads is there. @returns whether it waits now
bool dag_scheduler::admit(const job_run& job, stage_run& stage, partition_index partition) {
  if (!std::all_of(stage.fed_by.begin(), stage.fed_by.end(),
                   [&](std::uint32_t parent) { return has_output(job.stages[parent], partition); }))
    return false;
  stage.tasks.admit(partition);
  return stage.tasks.status_of(partition) == task_set::status::pending;
}

/// What an indeterminate task makes again may be something else. Where one of those that read it has read what it made
/// first, and another one is still to read it, they would go on from different things. @returns why the job cannot
/// become right, if so; asked when all that an event has taken away is known
std::optional<error> dag_scheduler::second_version(job_run& job, const std::vector<bool>& must_run) {
  std::erase_if(job.lost_versions, [&](const auto& lost) {
    return job.stages[lost.first].tasks.status_of(lost.second) == task_set::status::done;
  });
  for (const auto& [number, partition] : job.lost_versions) {
    const auto& stage = job.stages[number];
    const bool is_to_be_read = std::ranges::any_of(stage.feeds, [&, p = partition](std::uint32_t c) {
      return must_run[c] && job.stages[c].tasks.status_of(p) != task_set::status::done;
    });
    if (!is_to_be_read) continue;
    const auto first = std::ranges::find_if(stage.feeds, [&, p = partition](std::uint32_t c) {
      const auto& child = job.stages[c];
      return child.tasks.status_of(p) == task_set::status::done && !(child.keeps && child.from_cache[p]);
    });
    if (first == stage.feeds.end()) continue;
    return make_error(ec::fetch_failed,
                      "what partition " + std::to_string(partition) + " of stage " + std::to_string(number) + " (" +
                          stage.spec->name + ") had made is lost, and stage " + std::to_string(*first) + " (" +
                          job.stages[*first].spec->name +
                          ") has read it, while another one has not; since that stage is indeterminate, running the "
                          "task again could give the two different inputs: submit the job again");
  }
  return std::nullopt;
}

/// The output of the task is lost: its inputs are made again where they are gone, and the inputs of those. A line of
/// stages may be long, so nothing here calls itself.
void dag_scheduler::recall_inputs(job_run& job, stage_run& stage, partition_index partition, effects::list& out) {
  std::vector<std::uint32_t> again{stage.index};
  for (std::size_t i = 0; i < again.size(); ++i) {
    auto& reader = job.stages[again[i]];
    if (!reader.fed_by.empty()) reader.tasks.withhold(partition);
    for (const auto number : reader.fed_by) {
      auto& parent = job.stages[number];
      if (parent.tasks.status_of(partition) != task_set::status::done) continue;
      if (parent.has_consumed(partition)) {
        parent.consumed[partition] = false;
        --parent.consumed_count;
        if (!is_kept_for(parent, partition)) {
          parent.handed.erase(partition);
          parent.tasks.invalidate(partition);
          if (parent.spec->indeterminate) job.lost_versions.emplace(number, partition);
          out.push_back(effects::publish{events::map_output_lost{parent.id, partition, {}}});
          again.push_back(number);
          continue;
        }
        take_kept(job, parent, partition);
        prefer_kept(job, parent, partition);
      }
      count_unread(parent, partition, true);
    }
  }
  for (const auto number : again) // when all that is gone is known
    if (auto& reader = job.stages[number]; !reader.fed_by.empty()) admit(job, reader, partition);
}

/// The output of the task is lost: consumers that have not begun do not start.
void dag_scheduler::withhold_consumers(job_run& job, stage_run& stage, partition_index partition) {
  if (stage.feeds.empty()) return;
  count_unread(stage, partition, false);
  for (const auto c : stage.feeds) {
    auto& child = job.stages[c];
    const auto lane = child.tasks.lane_of(partition);
    child.tasks.withhold(partition);
    if (auto& of = child.lanes.at(lane); of.pending() == 0) unready(of);
  }
}

/// Whether tasks that run side by side with those of the executor have something of it to read yet: it is not idle.
bool dag_scheduler::holds_unread(const executor_record& record) {
  return std::ranges::any_of(record.kept, [this](const auto& entry) {
    const auto* const stage = find_stage(entry.first);
    return stage && !stage->feeds.empty() &&
           std::ranges::any_of(entry.second, [&](partition_index p) { return stage->unread[p]; });
  });
}

/// The task was accepted: what it has read is needed no longer, unless by another stage, or it could not be made again.
void dag_scheduler::consume_inputs(job_run& job, stage_run& stage, partition_index partition, time_point now) {
  stage.missed.erase(partition);
  for (const auto number : stage.fed_by) drop_consumed(job, job.stages[number], partition, now);
}

/// The stage is complete: what was kept for all of its tasks is needed no longer.
void dag_scheduler::consume_all_inputs(job_run& job, stage_run& stage, time_point now) {
  for (const auto number : stage.fed_by) {
    auto& parent = job.stages[number];
    if (parent.spec->indeterminate)
      for (partition_index p = 0; p < parent.tasks.size(); ++p) drop_consumed(job, parent, p, now);
  }
}

/// An output that all have read does not count any more, and goes where nobody can want it again.
void dag_scheduler::drop_consumed(job_run& job, stage_run& stage, partition_index partition, time_point now) {
  if (!has_output(stage, partition) || !was_read(job, stage, partition)) return;
  count_unread(stage, partition, false);
  stage.in_place.erase(partition);
  if (!is_kept(stage, partition) || is_wanted(job, stage, partition)) return;
  const auto e = stage.tasks.executor_of(partition);
  auto& executor = pool_[e];
  const auto kept = executor.kept.find(stage.id);
  if (kept == executor.kept.end() || !kept->second.remove(partition)) return;
  if (kept->second.empty()) executor.kept.erase(kept);
  if (!stage.keeps || !stage.from_cache[partition])
    orders_for(e).consumed.push_back({stage.id, partition, stage.tasks.attempt_of(partition), 0});
  stage.consumed[partition] = true;
  ++stage.consumed_count;
  if (!executor.kept.empty()) return;
  load_due_ = load_due_ || executor.leases.empty(); // it need not wait for readers any more
  if (executor.status == executor_record::state::draining) hand_over(e);
  touch_idle(e, now);
  if (executor.leases.empty()) executor.idle_since = now; // until now it was there for those who read
}

/// Whether enough of what it made waits to be read, by somebody who can go on, or will as soon as another producer has
/// made its part: else it has to make more, however much that is.
bool dag_scheduler::must_pause(const job_run& job, const stage_run& stage) const {
  const auto can_go_on = [](const stage_run& s) {
    return s.state == stage_state::running && s.tasks.pending() + s.tasks.running() > 0;
  };
  return stage.unconsumed_bytes >= options_.max_unconsumed &&
         std::any_of(stage.feeds.begin(), stage.feeds.end(), [&](std::uint32_t c) {
           const auto& child = job.stages[c];
           return can_go_on(child) || std::any_of(child.fed_by.begin(), child.fed_by.end(), [&](std::uint32_t other) {
                    const auto& producer = job.stages[other];
                    return other != stage.index && producer.unconsumed_bytes < options_.max_unconsumed &&
                           can_go_on(producer);
                  });
         });
}

/// Stops producers that are too far ahead, and lets them go on when their consumers have caught up, or cannot go on
/// themselves.
void dag_scheduler::pace_producers(time_point now) {
  for (auto it = ahead_.begin(); it != ahead_.end();) {
    auto& stage = *find_stage(*it);
    const auto& job = *find_job(stage.job);
    const bool pauses = stage.state == stage_state::running && must_pause(job, stage);
    if (pauses && !stage.paused) unready(stage);
    if (std::exchange(stage.paused, pauses) && !pauses && stage.state == stage_state::running) make_ready(stage, now);
    it = stage.unconsumed_bytes < options_.max_unconsumed ? ahead_.erase(it) : std::next(it);
  }
}

/// About how many tasks each of its leases may have at once before too much of what they make waits to be read.
std::uint64_t dag_scheduler::tasks_before_pause(const stage_run& stage) const {
  if (stage.made_bytes == 0) return ~std::uint64_t{0};
  if (stage.unconsumed_bytes >= options_.max_unconsumed) return 1;
  const auto each = std::max<std::uint64_t>(1, stage.made_bytes / stage.made_count);
  const auto leases = std::max<std::uint64_t>(1, pool_.leases_of(stage.demand()));
  return (options_.max_unconsumed - stage.unconsumed_bytes) / each / leases;
}

/// Where the tasks of a batch find what they read one to one.
std::vector<partition_inputs> dag_scheduler::partitions_for(const job_run& job, const stage_run& stage,
                                                            const task_batch& batch) const {
  std::vector<partition_inputs> inputs;
  for (const auto& dependency : stage.spec->dependencies) {
    const auto& parent = job.stages[dependency.stage];
    if (dependency.kind != dependency_kind::one_to_one || (!parent.spec->is_shuffle_map() && parent.handed.empty()))
      continue;
    auto& input = inputs.emplace_back();
    input.stage = parent.id;
    input.cache = parent.keeps;
    for (std::uint32_t i = 0; i < batch.count; ++i) {
      const auto p = batch.partition(i);
      if (!is_kept(parent, p)) {
        input.endpoint_of_task.push_back(partition_inputs::nowhere);
        input.attempt_of_task.push_back(parent.tasks.attempt_of(p));
        continue;
      }
      const auto& info = pool_[parent.tasks.executor_of(p)].info;
      auto known = std::find_if(input.endpoints.begin(), input.endpoints.end(),
                                [&](const block_endpoint& at) { return at.executor == info.executor; });
      if (known == input.endpoints.end()) known = input.endpoints.insert(known, endpoint_of(info));
      input.endpoint_of_task.push_back(static_cast<std::uint32_t>(known - input.endpoints.begin()));
      input.attempt_of_task.push_back(readable_attempt(parent, p));
    }
  }
  return inputs;
}

/// The task did not find what it was to read: that alone is made again, and then the task runs again; no attempt of a
/// stage fails. @returns nothing where it is not about such an input; false where the task was never to read that
std::optional<bool> dag_scheduler::on_missing_partition(job_run& job, stage_run& stage, partition_index partition,
                                                        const task_failure& detail, const std::string& where,
                                                        time_point now, effects::list& out) {
  const auto& dependencies = stage.spec->dependencies;
  const auto from = std::find_if(dependencies.begin(), dependencies.end(), [&](const stage_dependency& d) {
    return d.kind == dependency_kind::one_to_one && job.stages[d.stage].id == detail.shuffle &&
           (job.stages[d.stage].spec->is_shuffle_map() || job.stages[d.stage].hands_on);
  });
  if (from == dependencies.end()) return std::nullopt;
  auto& parent = job.stages[from->stage];
  const bool was_kept = parent.keeps && detail.map_attempt == partition_inputs::kept;
  if (detail.map_partition != partition || (!was_kept && detail.map_attempt > parent.tasks.attempt_of(partition)))
    return false;
  // What was known already is no attempt's fault.
  if (!is_kept(parent, partition) || readable_attempt(parent, partition) != detail.map_attempt) return true;
  if (++stage.missed[partition] >= options_.max_stage_attempts) {
    fail(job,
         make_error(ec::fetch_failed, where + ": " + detail.message + "; what it reads of stage " +
                                          std::to_string(parent.index) + " (" + parent.spec->name + ") was missing " +
                                          std::to_string(options_.max_stage_attempts) +
                                          " times in a row (troupe.scheduler.max-stage-attempts)"),
         now, out);
    return true;
  }
  // Where it is there still, nobody reads it any more.
  const auto on = parent.tasks.executor_of(partition);
  if (was_kept) {
    kept_.remove(parent.keeps, partition, pool_[on].info.executor);
    lose_kept(parent.keeps, partition, now, out);
    return true;
  }
  orders_for(on).consumed.push_back({parent.id, partition, detail.map_attempt, 0});
  lose_output(parent, partition, out);
  return true;
}

/// Why a stage that runs has no task that could: "" where it has.
std::string dag_scheduler::pipe_reason(const job_run& job, const stage_run& stage) const {
  if (stage.paused)
    return "it pauses: " + std::to_string(stage.unconsumed_bytes) +
           " bytes of what it has made were not read yet, and at most " + std::to_string(options_.max_unconsumed) +
           " may wait (troupe.pipeline.max-unconsumed)";
  if (!stage.is_starved()) return {};
  std::string parents;
  for (const auto number : stage.fed_by)
    parents += (parents.empty() ? "" : ", ") + std::to_string(number) + " (" + job.stages[number].spec->name + ")";
  return "it waits for stage " + parents + " to make what its next tasks read";
}

/// Tasks of consumers are admitted exactly where what they read is there; what was read is counted.
std::optional<std::string> dag_scheduler::fault_of_pipe(const job_run& job, const stage_run& stage) const {
  if ((stage.unconsumed_bytes >= options_.max_unconsumed && !stage.feeds.empty()) != ahead_.contains(stage.id) ||
      (stage.paused && !ahead_.contains(stage.id)))
    return "a stage is wrongly listed as one that is ahead, or not";
  if (std::count(stage.consumed.begin(), stage.consumed.end(), true) != stage.consumed_count)
    return "the outputs that were read by all are counted wrongly";
  std::uint64_t bytes = 0;
  for (partition_index p = 0; p < stage.tasks.size(); ++p) {
    if (stage.has_consumed(p) && stage.tasks.status_of(p) != task_set::status::done)
      return "an output was read by all that does not exist";
    const bool unread = !stage.feeds.empty() && has_output(stage, p) && !was_read(job, stage, p);
    if (unread) bytes += output_size(stage, p);
    if (!stage.unread.empty() && stage.unread[p] != unread)
      return "an output is wrongly taken as one that is not read yet";
    if (stage.fed_by.empty() || stage.tasks.status_of(p) == task_set::status::done) continue;
    const bool there = std::all_of(stage.fed_by.begin(), stage.fed_by.end(),
                                   [&](std::uint32_t parent) { return has_output(job.stages[parent], p); });
    if (there != stage.tasks.is_admitted(p)) return "a task is wrongly admitted, or wrongly withheld";
  }
  if (bytes != stage.unconsumed_bytes) return "the bytes that were not read are counted wrongly";
  return std::nullopt;
}

} // namespace troupe
