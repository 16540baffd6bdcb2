// Datasets that programs keep for later jobs: what former jobs have left need not be computed again.

#include <algorithm>

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// Tasks of a new job whose output is kept from a former one are done, and so are those that nobody would read but
/// them.
void dag_scheduler::use_kept(job_run& job, time_point now) {
  std::vector<std::vector<partition_index>> there(job.stages.size());
  for (auto& stage : job.stages) {
    if (!stage.spec->keeps) continue;
    stage.keeps = kept_.open(stage.spec->keeps->id);
    stage.from_cache.resize(stage.tasks.size());
    stage.stays.resize(stage.tasks.size());
    keepers_[stage.keeps].insert(stage.id);
    for (const auto& [partition, on] : kept_.partitions(stage.keeps))
      if (partition < stage.tasks.size() && is_kept_by_active(on)) there[stage.index].push_back(partition);
    stage.tasks.adopt(there[stage.index], no_executor);
    for (const auto partition : there[stage.index]) take_kept(job, stage, partition);
  }
  for (auto i = job.stages.size(); i-- > 0;) {
    auto& stage = job.stages[i];
    if (stage.feeds.empty() || stage.feeds.size() < stage.children.size()) continue;
    std::vector<partition_index> read;
    for (partition_index p = 0; p < stage.tasks.size(); ++p)
      if (stage.tasks.status_of(p) != task_set::status::done && was_read(job, stage, p)) read.push_back(p);
    stage.tasks.adopt(read, no_executor);
    for (const auto p : read) stage.consumed[p] = true;
    stage.consumed_count += static_cast<std::uint32_t>(read.size());
  }
  for (auto& stage : job.stages)
    for (const auto partition : there[stage.index]) feed(job, stage, partition, now);
}

/// Whether somebody keeps what the task has made, or would make.
bool dag_scheduler::is_kept_for(const stage_run& stage, partition_index partition) const {
  const auto on = stage.keeps ? kept_.find(stage.keeps, partition) : std::nullopt;
  return on && is_kept_by_active(*on);
}

bool dag_scheduler::is_kept_by_active(executor_id on) const {
  const auto e = pool_.find(on);
  return e != no_executor && pool_[e].status == executor_record::state::active;
}

/// The output of a task that is done is what is kept from a former job, or from this one.
void dag_scheduler::take_kept(job_run& job, stage_run& stage, partition_index partition) {
  const auto on = *kept_.find(stage.keeps, partition);
  const auto e = pool_.find(on);
  stage.tasks.output_moved(partition, e);
  stage.from_cache[partition] = stage.stays[partition] = true;
  pool_[e].kept[stage.id].add(partition);
  job.touched.add(on);
}

/// Whether the partition is still to be read as a kept one.
bool dag_scheduler::reads_kept(const stage_run& stage, partition_index partition) {
  return partition < stage.tasks.size() && stage.from_cache[partition] && has_output(stage, partition);
}

/// The executor says that it keeps what it has made of the partition. @returns whether it shall
bool dag_scheduler::on_kept(const stage_run& stage, partition_index partition, executor_index e) {
  // Somebody who goes, or does not answer, keeps it for nobody.
  if (const auto on = kept_.find(stage.keeps, partition); on && !is_kept_by_active(*on))
    kept_.remove(stage.keeps, partition, *on);
  if (kept_.add(stage.keeps, partition, pool_[e].info.executor)) return true;
  if (!kept_.is_open(stage.keeps))
    orders_for(e).unkept.push_back(stage.keeps); // it was withdrawn meanwhile
  else
    orders_for(e).surplus.push_back({stage.keeps, partition}); // two jobs have made it, or two attempts
  return false;
}

/// Those that read the partition would rather run where it is.
void dag_scheduler::prefer_kept(job_run& job, const stage_run& stage, partition_index partition) {
  const auto& info = pool_[stage.tasks.executor_of(partition)].info;
  for (const auto c : stage.feeds)
    if (auto& child = job.stages[c]; child.reads_kept && child.tasks.prefer(partition, {info.host, info.executor}))
      scarce_due_ = true; // it may have to be waited for
}

/// Somebody keeps it no longer: unfinished jobs that were to read it there make it again.
void dag_scheduler::lose_kept(cache_id cache, partition_index partition, time_point now, effects::list& out) {
  const auto users = keepers_.find(cache);
  if (users == keepers_.end()) return;
  std::set<job_id> hit;
  for (const auto id : users->second) {
    auto& stage = *find_stage(id);
    if (!reads_kept(stage, partition)) continue;
    lose_output(stage, partition, out);
    hit.insert(stage.job);
  }
  for (const auto id : hit) settle(*find_job(id), now, out);
}

void dag_scheduler::on_evicted(executor_index e, const kept_partition& what, time_point now, effects::list& out) {
  if (kept_.remove(what.cache, what.partition, pool_[e].info.executor)) lose_kept(what.cache, what.partition, now, out);
}

/// The dataset is needed no longer.
void dag_scheduler::drop_kept(const broadcast_id& dataset, time_point now, effects::list& out) {
  for (const auto cache : kept_.withdraw(dataset)) {
    for (const auto& [id, e] : pool_.all()) orders_for(e).unkept.push_back(cache);
    const auto users = keepers_.find(cache);
    if (users == keepers_.end()) continue;
    std::set<job_id> hit;
    for (const auto id : users->second) {
      auto& stage = *find_stage(id);
      for (partition_index p = 0; p < stage.tasks.size(); ++p)
        if (reads_kept(stage, p)) {
          lose_output(stage, p, out);
          hit.insert(stage.job);
        }
    }
    for (const auto id : hit) settle(*find_job(id), now, out);
  }
}

/// The job has ended. What is under way of it is heard of no more: where the dataset was withdrawn meanwhile, nobody
/// else would have it dropped.
void dag_scheduler::stop_using_kept(job_run& job, const stage_run& stage) {
  if (!stage.keeps) return;
  if (!kept_.is_open(stage.keeps))
    for (const auto executor : job.touched.all())
      if (const auto e = pool_.find(executor); e != no_executor) orders_for(e).unkept.push_back(stage.keeps);
  const auto users = keepers_.find(stage.keeps);
  users->second.erase(stage.id);
  if (users->second.empty()) keepers_.erase(users);
}

} // namespace troupe
