#include <troupe/tests/support/scheduler_harness.hpp>

#include <stdexcept>

namespace troupe::testing {

scheduler_harness::scheduler_harness(dag_scheduler::options opts)
  : scheduler(opts), registry(default_test_profile()), answer([](const executor_shape&) { return feasibility{}; }) {}

void scheduler_harness::carry_out(effects::list& out) {
  last_orders.clear();
  std::vector<executor_shape> asked;
  for (const auto& effect : out) {
    if (const auto* send = std::get_if<effects::send_orders>(&effect)) {
      if (!last_orders.emplace(send->executor, send->orders).second) throw std::logic_error("two orders in one event");
      lossy_ = lossy_ || orders_get_lost;
      if (orders_get_lost) continue;
      if (const auto fault = executor(send->executor).apply(send->orders); fault && !lossy_)
        throw std::logic_error(*fault);
    } else if (const auto* complete = std::get_if<effects::complete_job>(&effect)) {
      if (!ends_.emplace(complete->end.job, complete->end).second) throw std::logic_error("a job ended twice");
    } else if (const auto* lost = std::get_if<effects::give_up_executor>(&effect)) {
      given_up.push_back(*lost);
    } else if (const auto* ask = std::get_if<effects::ask_feasibility>(&effect)) {
      asked.insert(asked.end(), ask->shapes.begin(), ask->shapes.end());
    } else if (const auto* load = std::get_if<effects::report_load>(&effect)) {
      loads.push_back(load->report);
    } else if (const auto* fact = std::get_if<effects::publish>(&effect)) {
      history.push_back(fact->event);
    } else if (const auto* staged = std::get_if<effects::publish_staged>(&effect)) {
      to_publish.push_back(staged->what);
    } else if (const auto* late = std::get_if<effects::discard_staged>(&effect)) {
      discarded.push_back(late->what);
    } else if (const auto* old = std::get_if<effects::forget_job>(&effect)) {
      forgotten.push_back(old->job);
    } else if (const auto* printed = std::get_if<effects::keep_printed>(&effect)) {
      printed_by_lost.push_back(*printed);
    }
  }
  out.clear();
  check();
  if (publishes_at_once)
    while (!to_publish.empty()) publish(effects::staged_attempt{to_publish.front()});
  questions.insert(questions.end(), asked.begin(), asked.end());
  if (answer)
    for (const auto& shape : asked) answer_feasibility(shape.shape, answer(shape));
}

job_id scheduler_harness::submit(const job_builder& what) {
  const auto job = what.make();
  std::vector<resolved_profile> profiles;
  for (const auto& p : job->profiles) {
    const auto registered = registry.register_profile(p);
    if (!registered) throw std::logic_error(registered.error().message);
    profiles.push_back(resolved(*registered));
  }
  return submit(what, profiles);
}

job_id scheduler_harness::submit(const job_builder& what, const std::vector<resolved_profile>& profiles) {
  effects::list out;
  const auto id = scheduler.on_job_submitted(what.make(), profiles, now, out);
  carry_out(out);
  return id;
}

executor_id scheduler_harness::add(const executor_builder& what) {
  const executor_id id{next_executor_++};
  const auto info = what.make(id, 1000 + id.value);
  executors_.emplace(id, std::make_unique<fake_executor>(info));
  effects::list out;
  scheduler.on_executor_added(info, now, out);
  carry_out(out);
  return id;
}

void scheduler_harness::lose_connection(executor_id e) {
  effects::list out;
  scheduler.on_executor_out_of_reach(e, executor(e).info().epoch, now, out);
  carry_out(out);
}

void scheduler_harness::publish(const effects::staged_attempt& what, publication_outcome outcome,
                                const std::string& reason) {
  std::erase(to_publish, what);
  effects::list out;
  scheduler.on_publications({{what.stage, what.partition, what.attempt, outcome, reason}}, now, out);
  carry_out(out);
}

void scheduler_harness::report_publication(executor_id from, const publication_right& right,
                                           publication_outcome outcome, const std::string& reason) {
  auto report = executor(from).report({});
  report.publications.push_back({right.stage, right.partition, right.attempt, outcome, reason});
  deliver(report);
}

void scheduler_harness::lose(executor_id e, const std::string& cause, bool lost, const executor_exit& exit,
                             bool ended) {
  const auto epoch = executor(e).info().epoch;
  executors_.erase(e);
  effects::list out;
  scheduler.on_executor_gone(e, epoch, cause, lost, now, out, exit, ended);
  carry_out(out);
}

result<void> scheduler_harness::cancel_stage(job_id job, std::uint32_t index) {
  effects::list out;
  auto done = scheduler.on_stage_cancelled(job, index, "by request", now, out);
  carry_out(out);
  return done;
}

result<std::vector<job_id>> scheduler_harness::cancel_group(const std::string& group) {
  effects::list out;
  auto ended = scheduler.on_group_cancelled(group, "by request", now, out);
  carry_out(out);
  return ended;
}

void scheduler_harness::cancel(job_id job) {
  effects::list out;
  if (!scheduler.on_job_cancelled(job, "by request", now, out)) throw std::logic_error("the job is unknown");
  carry_out(out);
}

void scheduler_harness::tick(duration after) {
  now += after;
  effects::list out;
  scheduler.on_tick(now, out);
  carry_out(out);
}

dag_scheduler::release scheduler_harness::release(executor_id e) {
  effects::list out;
  auto answered = scheduler.on_release_requested(e, now, out);
  carry_out(out);
  return answered;
}

void scheduler_harness::release_results(job_id job) {
  effects::list out;
  scheduler.on_results_released(job, now, out);
  carry_out(out);
}

void scheduler_harness::withdraw(broadcast_id broadcast) {
  effects::list out;
  scheduler.on_broadcast_withdrawn(broadcast, now, out);
  carry_out(out);
}

void scheduler_harness::answer_feasibility(shape_id shape, const feasibility& a) {
  effects::list out;
  scheduler.on_feasibility(shape, a, now, out);
  carry_out(out);
}

shape_id scheduler_harness::shape_of(const resource_profile& p) { return registry.register_profile(p)->shape; }

void scheduler_harness::deliver(const executor_report& report) {
  effects::list out;
  scheduler.on_report(report, now, out);
  carry_out(out);
}

void scheduler_harness::beat(duration after) {
  now += after;
  effects::list out;
  for (const auto& [id, e] : executors_) scheduler.on_heartbeat(e->heartbeat(), now, out);
  carry_out(out);
}

std::vector<fake_attempt> scheduler_harness::attempts() const {
  std::vector<fake_attempt> all;
  for (const auto& [id, e] : executors_) {
    const auto some = e->attempts();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<fake_attempt> scheduler_harness::attempts_of(job_id job, std::uint32_t stage) const {
  auto all = attempts();
  const auto id = stage_of(job, stage);
  std::erase_if(all, [&](const fake_attempt& a) { return a.stage != id; });
  return all;
}

stage_id scheduler_harness::stage_of(job_id job, std::uint32_t stage) const {
  return progress(job).stages.at(stage).stage;
}

executor_id scheduler_harness::executor_of(const fake_attempt& a) const {
  for (const auto& [id, e] : executors_)
    if (e->holding(a.lease)) return id;
  throw std::logic_error("the attempt runs nowhere");
}

void scheduler_harness::succeed(const fake_attempt& a, std::string_view value, duration run_time) {
  auto& e = executor(executor_of(a));
  now += run_time;
  deliver(e.report({e.success(a, value)}, run_time));
}

void scheduler_harness::succeed_all(executor_id id, duration run_time) {
  auto& e = executor(id);
  std::vector<fake_end> ends;
  for (const auto& a : e.attempts()) ends.push_back(e.success(a, std::to_string(a.partition)));
  now += run_time;
  deliver(e.report(ends, run_time));
}

void scheduler_harness::drain(duration run_time) {
  for (int rounds = 0; !attempts().empty(); ++rounds) {
    if (rounds > 100'000) throw std::logic_error("the cluster does not come to rest");
    for (auto& [id, e] : executors_)
      if (!e->attempts().empty()) succeed_all(id, run_time);
  }
}

void scheduler_harness::end(const fake_attempt& a, task_status status, task_failure detail) {
  auto& e = executor(executor_of(a));
  deliver(e.report({fake_end{a, status, {}, std::move(detail)}}));
}

void scheduler_harness::fail(const fake_attempt& a, const std::string& message, const std::string& stderr_text) {
  task_failure detail;
  detail.message = message;
  detail.stderr_text = stderr_text;
  end(a, task_status::failed, std::move(detail));
}

void scheduler_harness::arrive(const fake_attempt& a, std::uint32_t round, sync_kind kind, std::string text) {
  auto report = executor(executor_of(a)).report({});
  report.arrivals.push_back({a.stage, a.stage_attempt, a.partition, a.attempt, round, kind, std::move(text)});
  deliver(report);
}

void scheduler_harness::fetch_fail(const fake_attempt& a, stage_id shuffle, partition_index map,
                                   attempt_number map_attempt) {
  task_failure detail;
  detail.message = "no answer";
  detail.shuffle = shuffle;
  detail.map_partition = map;
  detail.map_attempt = map_attempt;
  end(a, task_status::fetch_failed, std::move(detail));
}

const job_end* scheduler_harness::end_of(job_id job) const {
  const auto it = ends_.find(job);
  return it == ends_.end() ? nullptr : &it->second;
}

std::vector<std::string> scheduler_harness::values(job_id job) const {
  const auto* ended = end_of(job);
  if (!ended || !ended->results) throw std::logic_error("the job has no results");
  std::vector<std::string> all;
  for (std::size_t i = 0; i < ended->results->values.size(); ++i) all.emplace_back(ended->results->values[i]);
  return all;
}

void scheduler_harness::check() const {
  if (const auto fault = scheduler.fault()) throw std::logic_error(*fault);
  if (lossy_) return;
  for (const auto& [id, e] : executors_) {
    const auto index = scheduler.pool().find(id);
    if (index == no_executor) throw std::logic_error("an executor is unknown to the scheduler");
    const auto& mine = scheduler.pool()[index].book;
    bool same = e->has_refusals() || mine.free_cpus() == e->book().free_cpus();
    for (const auto& [name, pool] : e->info().capacity.custom)
      for (const auto& a : pool.addresses)
        same = same && (e->has_refusals() || mine.free_of(name, a) == e->book().free_of(name, a));
    if (!same) throw std::logic_error("book and ledger of executor " + std::to_string(id.value) + " differ");
  }
}

void scheduler_harness::check_idle() const {
  check();
  if (!scheduler.is_idle()) throw std::logic_error("the scheduler is not idle");
  for (const auto& [id, e] : executors_)
    if (!e->attempts().empty() || e->lease_count() > 0 || e->installed_count() > 0 || !e->book().is_idle())
      throw std::logic_error("executor " + std::to_string(id.value) + " is not idle");
}

} // namespace troupe::testing
