#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>

#include <algorithm>
#include <utility>

#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {

dag_scheduler::dag_scheduler(const options& opts)
  : options_(opts), pool_(opts.matching, opts.placement), sharing_(opts.sharing), exclusions_(opts.exclusion) {}

job_run* dag_scheduler::find_job(job_id id) {
  const auto it = jobs_.find(id);
  return it == jobs_.end() ? nullptr : &it->second;
}

stage_run* dag_scheduler::find_stage(stage_id id) {
  const auto it = stages_.find(id);
  if (it == stages_.end()) return nullptr;
  return &find_job(it->second.first)->stages[it->second.second];
}

job_id dag_scheduler::on_job_submitted(std::shared_ptr<const job_spec> spec,
                                       const std::vector<resolved_profile>& profiles, time_point now,
                                       effects::list& out) {
  const job_id id{next_job_++};
  auto& job = jobs_[id];
  job.id = id;
  job.spec = std::move(spec);
  job.submitted = now;
  out.push_back(effects::publish{events::job_submitted{
      id, job.spec->name, static_cast<std::uint32_t>(job.spec->stages.size()), stage_id{next_stage_}}});
  const auto pool = sharing_.find(job.spec->pool);
  job.stages.reserve(job.spec->stages.size());
  for (std::uint32_t i = 0; i < job.spec->stages.size(); ++i) {
    const auto& what = job.spec->stages[i];
    const auto& profile = profiles[what.profile];
    const stage_id stage{next_stage_++};
    stages_.emplace(stage, std::pair{id, i});
    job.stages.emplace_back(stage, id, i, what, demands_of(profile, what));
    auto& made = job.stages.back();
    made.pool = pool;
    made.lanes[0].stage = &made;
    made.escalations = escalations_of(profile);
    if (options_.speculation.enabled && what.tasks > 1 && !what.barrier)
      made.durations = std::make_unique<duration_histogram>();
    for (const auto d : made.demands())
      for (const auto& [name, amount] : pool_.demand_of(d).content->task)
        if (name != resource_names::cpus && name != resource_names::memory) made.asks.insert(name);
    for (const auto& dependency : what.dependencies) job.stages[dependency.stage].children.push_back(i);
  }
  connect(job);
  use_kept(job, now);
  for (auto& stage : job.stages) count_asks(stage, true);
  job.stages.back().keeps_values = job.stages.back().spec->keep_results && !job.stages.back().spec->is_shuffle_map();
  if (auto why = hopeless(job)) {
    fail(job, std::move(*why), now, out);
  } else {
    ask_feasibility(job, now);
    held_.insert(id);
    admit(now, out);
  }
  schedule(now, out);
  return id;
}

/// What tasks of this profile may run as, each once.
std::vector<demand_index> dag_scheduler::demands_of(const resolved_profile& profile, const stage_spec& stage) {
  std::vector<demand_index> demands;
  const auto add = [&](const resolved_profile& one) {
    shapes_.try_emplace(one.shape, shape_origin{one.profile, one.content});
    auto content = std::make_shared<resource_profile>(one.content);
    if (one.any_executor) content->executor.clear();
    const auto d = pool_.intern({one.profile, one.shape, std::move(content),
                                 stage.is_native() ? std::get<native_program>(stage.program).build_id : std::string{},
                                 one.any_executor, false, stage.barrier});
    if (std::find(demands.begin(), demands.end(), d) == demands.end()) demands.push_back(d);
  };
  add(profile);
  for (const auto& alternative : profile.alternatives) add(alternative);
  return demands;
}

/// Starts the jobs that have heard whether their executors can be had, and those that have waited long enough.
void dag_scheduler::admit(time_point now, effects::list& out) {
  for (auto it = held_.begin(); it != held_.end();) {
    auto& job = *find_job(*it);
    if (!job.finished()) {
      const bool wait =
          now - job.submitted < options_.feasibility_wait &&
          std::any_of(job.stages.begin(), job.stages.end(), [&](const stage_run& s) { return is_unanswered(job, s); });
      if (wait) {
        ++it;
        continue;
      }
      job.unanswered.clear();
      if (!passes_slot_check(job, now, out)) {
        it = job.finished() ? held_.erase(it) : std::next(it);
        continue;
      }
      transition("job", job.state, job_state::running);
      settle(job, now, out);
    }
    it = held_.erase(it);
  }
}

void dag_scheduler::on_results_released(job_id id, time_point now, effects::list& out) {
  const auto it = ended_.find(id);
  if (it == ended_.end() || it->second.held.empty()) return;
  forget(it->second.held, it->second.touched, now);
  it->second.held.clear();
  --holding_;
  drop_surplus(now, out);
  schedule(now, out);
}

void dag_scheduler::on_broadcast_withdrawn(broadcast_id broadcast, time_point now, effects::list& out) {
  for (const auto& [id, e] : pool_.all()) orders_for(e).withdrawn.push_back(broadcast);
  drop_kept(broadcast, now, out);
  schedule(now, out);
}

void dag_scheduler::on_allocator_added(time_point now, effects::list& out) {
  announced_shapes_.clear();
  allocation_.clear();
  answers_.clear();
  asked_.clear();
  for (const auto id : held_)
    for (const auto shape : find_job(id)->unanswered) ask(shape, now);
  for (const auto& [d, since] : unsatisfied_) ask(pool_.demand_of(d).shape, now);
  schedule(now, out);
}

void dag_scheduler::on_executor_added(const executor_info& info, time_point now, effects::list& out) {
  if (const auto known = pool_.find(info.executor); known != no_executor) {
    ++stale_;
    if (pool_[known].info.epoch == info.epoch) return;
    on_executor_gone(info.executor, pool_[known].info.epoch, "another incarnation took its place", true, now, out);
  }
  const auto e = pool_.add(info, now);
  exclude_newcomer(e);
  scarce_due_ = gather_due_ = true; // whoever could not be served before perhaps can be now
  touch_idle(e, now);
  if (info.shuffle_service) add_service(e, now);
  out.push_back(effects::publish{events::executor_added{info, profile_of(info)}});
  admit(now, out);
  schedule(now, out);
}

/// The profile that it was asked for as; of several with equal executor halves the first.
std::optional<profile_id> dag_scheduler::profile_of(const executor_info& info) const {
  const auto it = shapes_.find(info.shape);
  return it == shapes_.end() ? std::nullopt : std::optional{it->second.profile};
}

void dag_scheduler::on_executor_out_of_reach(executor_id id, incarnation epoch, time_point now, effects::list& out) {
  const auto e = pool_.find(id);
  if (e == no_executor || pool_[e].info.epoch != epoch) {
    ++stale_;
    return;
  }
  if (pool_[e].status != executor_record::state::active) return;
  drain(e);
  schedule(now, out);
}

/// Nothing new goes there; what was kept for its sake, or there for somebody, is decided anew.
void dag_scheduler::drain(executor_index e) {
  drop_claims(e);
  pool_.drain(e);
  scarce_due_ = gather_due_ = true;
}

/// Brings every stage of the job to the state that its inputs and its own tasks imply: needed stages whose inputs exist
/// run, others wait. Called whenever a stage completed or lost something.
void dag_scheduler::settle(job_run& job, time_point now, effects::list& out) {
  if (job.state == job_state::accepted) return; // what was kept for it may go before it begins
  for (auto& stage : job.stages)
    if (broken_.contains(stage.id) && !restart_gang(job, stage, now, out)) return;
  const auto must_run = stages_to_run(job);
  if (auto why = second_version(job, must_run)) return fail(job, std::move(*why), now, out);
  for (std::size_t i = 0; i < job.stages.size(); ++i) {
    auto& stage = job.stages[i];
    if (!must_run[i]) {
      // Complete, or lost something that nobody needs any more.
      if (stage.state != stage_state::complete) complete(job, stage, now, out);
      count_asks(stage, false);
      continue;
    }
    count_asks(stage, true);
    // Of stages that flow into it some tasks are enough.
    const bool may_begin = stage.fed_by.empty() || stage.state == stage_state::running || stage.tasks.pending() > 0;
    const bool inputs_exist =
        may_begin &&
        std::all_of(stage.spec->dependencies.begin(), stage.spec->dependencies.end(), [&](const stage_dependency& d) {
          return job.stages[d.stage].tasks.complete() || stage.is_fed_by(d.stage);
        });
    // A gang that failed begins again when nothing of its last attempt can be published any more.
    const bool is_published = stage.spec->barrier && stage.state != stage_state::running && publications_.has(stage.id);
    if (!inputs_exist || is_published || held_back_.contains(stage.id)) {
      scarce_due_ = true;
      if (stage.state == stage_state::waiting) continue; // of a long chain nearly all are
      unready(stage);
      deadlines_.erase(stage.id);
      transition("stage", stage.state, stage_state::waiting);
    } else if (stage.state != stage_state::running) {
      start(job, stage, now, out);
    } else {
      make_ready(stage, now);
    }
  }
  const bool all_complete = std::all_of(job.stages.begin(), job.stages.end(),
                                        [](const stage_run& s) { return s.state == stage_state::complete; });
  if (all_complete) end(job, job_state::succeeded, {}, now, out);
}

/// By index: a stage has to run when it lacks something and somebody below still needs it.
std::vector<bool> dag_scheduler::stages_to_run(const job_run& job) {
  std::vector<bool> must_run(job.stages.size());
  for (auto i = job.stages.size(); i-- > 0;) {
    const auto& stage = job.stages[i];
    if (stage.tasks.complete()) continue;
    must_run[i] = stage.children.empty() || std::any_of(stage.children.begin(), stage.children.end(),
                                                        [&](std::uint32_t c) { return must_run[c]; });
  }
  return must_run;
}

void dag_scheduler::start(job_run& job, stage_run& stage, time_point now, effects::list& out) {
  if (stage.spec->barrier && stage.tasks.pending() < stage.tasks.size()) { // a part of it is worth nothing
    tell_restart(stage, "some of what its tasks had made, or were to read, was lost", now, out);
    clear_gang(job, stage, out);
  }
  if (stage.was_submitted) ++stage.attempt;
  stage.fetch_failed = false;
  if (!stage.was_submitted) stage.started = now;
  stage.was_submitted = true;
  stage.attempt_started = now;
  stage.attempt_told = false;
  stage.attempt_tasks = stage.fed_by.empty() ? stage.tasks.pending() : stage.tasks.size() - stage.tasks.done();
  transition("stage", stage.state, stage_state::running);
  if (stage.spec->timeout != never) deadlines_[stage.id] = now + stage.spec->timeout;
  stage.inputs = inputs_of(job, stage);
  out.push_back(
      effects::publish{events::stage_submitted{job.id, stage.id, stage.attempt, stage.spec->name,
                                               pool_.demand_of(stage.demand()).profile, stage.attempt_tasks}});
  make_ready(stage, now);
}

/// The end of its attempt, unless that has failed before and been told.
void dag_scheduler::tell_completion(stage_run& stage, const error& why, time_point now, effects::list& out) {
  if (std::exchange(stage.attempt_told, true)) return;
  out.push_back(effects::publish{events::stage_completed{stage.job, stage.id, stage.attempt, why, stage.spec->name,
                                                         pool_.demand_of(stage.demand()).profile, stage.attempt_tasks,
                                                         stage.attempt_nanoseconds(now)}});
}

void dag_scheduler::tell_restart(stage_run& stage, const std::string& why, time_point now, effects::list& out) {
  stage.attempt_told = true;
  out.push_back(effects::publish{events::stage_restarted{stage.job, stage.id, stage.attempt, why, stage.spec->name,
                                                         pool_.demand_of(stage.demand()).profile, stage.attempt_tasks,
                                                         stage.attempt_nanoseconds(now)}});
}

void dag_scheduler::complete(job_run& job, stage_run& stage, time_point now, effects::list& out) {
  unready(stage);
  if (stage.spec->barrier && !stage.tasks.complete()) clear_gang(job, stage, out); // who waits would wait for nothing
  transition("stage", stage.state, stage_state::complete);
  deadlines_.erase(stage.id);
  stage.ended = now;
  stage.fetch_failures = 0;
  stage.gang_failures = 0;
  stage.paused = false;
  end_rounds(stage);
  consume_all_inputs(job, stage, now);
  if (stage.was_submitted) tell_completion(stage, {}, now, out); // else nothing of it had to be made
}

void dag_scheduler::fail(job_run& job, error why, time_point now, effects::list& out) {
  end(job, job_state::failed, std::move(why), now, out);
}

void dag_scheduler::end(job_run& job, job_state state, error why, time_point now, effects::list& out) {
  for (auto& stage : job.stages) {
    unready(stage);
    count_asks(stage, false);
    held_back_.erase(stage.id);
    deadlines_.erase(stage.id);
    suspects_.forget(stage.id);
    publications_.forget(stage.id);
    broken_.erase(stage.id);
    ahead_.erase(stage.id);
    stop_using_kept(job, stage);
    end_rounds(stage);
    std::erase_if(unschedulable_, [&](const auto& entry) { return entry.second.lane->stage == &stage; });
    // Only a stage of a job that did not succeed is neither complete nor untouched.
    if (!stage.was_submitted || stage.state == stage_state::complete) continue;
    stage.ended = now;
    transition("stage", stage.state, stage_state::failed);
    drop_accusations(stage, out);
    tell_completion(stage, why, now, out);
  }
  if (held_back_.empty()) resubmit_at_.reset();
  transition("job", job.state, state);
  job.failure = why;
  job.ended = now;
  job_end message;
  message.job = job.id;
  message.failure = std::move(why);
  ended_job rest;
  auto& last = job.stages.back();
  if (state == job_state::succeeded && last.keeps_values) {
    if (last.has_values_elsewhere()) rest.held.push_back(last.id);
    message.results = last.take_results();
    message.result_bytes = message.results->values.data.size();
    for (const auto& location : message.results->elsewhere) message.result_bytes += location.bytes;
  }
  message.progress = progress_of(job, now);
  rest.progress = message.progress;
  rest.failure = job.failure;
  rest.failures = std::move(job.failures);
  rest.touched = job.touched.all();
  std::vector<stage_id> over;
  std::vector<std::pair<stage_id, std::string>> staged;
  for (const auto& stage : job.stages) {
    if (stage.was_submitted && stages_files(stage))
      staged.emplace_back(stage.id, std::get<command_program>(*stage.program).output_directory);
    rest.ran_commands = rest.ran_commands || std::holds_alternative<command_program>(*stage.program);
    stages_.erase(stage.id);
    if (rest.held.empty() || stage.id != rest.held.front()) over.push_back(stage.id);
    rest.placements.push_back(stage.placements());
  }
  forget(over, rest.touched, now);
  out.push_back(effects::publish{events::job_ended{job.id, job.state, job.failure}});
  out.push_back(effects::complete_job{std::move(message), std::move(staged)});
  retain(job.id, std::move(rest), now, out);
  // The job itself goes when the event has been dealt with: callers still hold references to it.
  finished_.push_back(job.id);
}

/// Keeps what can still be asked of an ended job, and what is still to be fetched of it.
void dag_scheduler::retain(job_id id, ended_job job, time_point now, effects::list& out) {
  if (!job.held.empty()) ++holding_;
  ended_.emplace(id, std::move(job));
  drop_surplus(now, out);
}

void dag_scheduler::drop_surplus(time_point now, effects::list& out) {
  const auto oldest = [this](bool held) {
    return std::find_if(ended_.begin(), ended_.end(), [&](const auto& e) { return e.second.held.empty() != held; });
  };
  const auto drop = [&](std::map<job_id, ended_job>::iterator which) {
    const auto& [id, job] = *which;
    if (job.ran_commands) {
      for (const auto executor : job.touched)
        if (const auto e = pool_.find(executor); e != no_executor) orders_for(e).forgotten_jobs.push_back(id);
      out.push_back(effects::forget_job{id});
    }
    ended_.erase(which);
  };
  while (ended_.size() - holding_ > options_.retained_jobs) drop(oldest(false));
  while (holding_ > options_.held_jobs) {
    const auto it = oldest(true);
    forget(it->second.held, it->second.touched, now);
    drop(it);
    --holding_;
  }
}

/// @pre `stages` ascending
void dag_scheduler::forget(const std::vector<stage_id>& stages, const std::vector<executor_id>& on, time_point now) {
  for (const auto executor : on) {
    const auto e = pool_.find(executor);
    if (e == no_executor) continue;
    auto& record = pool_[e];
    record.installed.erase(stages, [&](stage_id stage) {
      auto& orders = orders_for(e);
      orders.removed_stages.push_back(stage);
      if (stage == late_stage_) orders.late_stages.push_back(stage);
    });
    if (!record.kept.empty()) // also of stages that it knows nothing of, but whose output it keeps from former jobs
      for (const auto stage : stages) record.kept.erase(stage);
    if (record.status == executor_record::state::draining) hand_over(e); // which may have waited for that
    touch_idle(e, now);
  }
}

/// Which buckets are empty readers are told up to so many bytes: it goes to each of them along with what controls it,
/// and asking for nothing costs little.
constexpr std::size_t most_told_empty = 1 << 20;

std::vector<shuffle_input> dag_scheduler::inputs_of(const job_run& job, const stage_run& stage) const {
  std::vector<shuffle_input> inputs;
  for (const auto& dependency : stage.spec->dependencies) {
    if (dependency.kind != dependency_kind::shuffle) continue;
    const auto& parent = job.stages[dependency.stage];
    shuffle_input input;
    input.shuffle = parent.id;
    input.endpoint_of_map.reserve(parent.tasks.size());
    input.attempt_of_map.reserve(parent.tasks.size());
    auto empty = std::make_shared<packed_column>();
    std::unordered_map<executor_index, std::uint32_t> position;
    for (partition_index p = 0; p < parent.tasks.size(); ++p) {
      const auto e = parent.tasks.executor_of(p);
      const auto [it, added] = position.try_emplace(e, static_cast<std::uint32_t>(input.endpoints.size()));
      if (added) input.endpoints.push_back(endpoint_of(pool_[e].info));
      input.endpoint_of_map.push_back(it->second);
      input.attempt_of_map.push_back(parent.tasks.attempt_of(p));
      if (empty->data.size() <= most_told_empty)
        empty->push_back(empty_buckets(parent.bucket_sizes_of_map[p], parent.spec->buckets));
    }
    if (!empty->data.empty() && empty->data.size() <= most_told_empty) input.empty_of_map = std::move(empty);
    inputs.push_back(std::move(input));
  }
  return inputs;
}

dag_scheduler::release dag_scheduler::on_release_requested(executor_id id, time_point now, effects::list& out) {
  const auto e = pool_.find(id);
  if (e == no_executor) return {true, false, "it is gone"};
  auto& record = pool_[e];
  if (record.in_flight > 0) return {false, false, std::to_string(record.in_flight) + " attempts run or wait there"};
  if (const auto left = publications_.count_of(id); left > 0)
    return {false, false, std::to_string(left) + " attempts of it wait to be published"};
  if (record.held) return {false, false, "it is held for a barrier stage that gathers executors"};
  if (record.status == executor_record::state::active) {
    drain(e);
    load_due_ = true;
  }
  hand_over(e);
  // Draining the last executor that satisfied a demand starts the clock of its time-out.
  schedule(now, out);
  return {true, record.is_serving(), {}};
}

} // namespace troupe
