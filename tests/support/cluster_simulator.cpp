// The driver's side of a simulated cluster: jobs, the allocator, and what has to hold.

#include <stdexcept>

#include <troupe/tests/support/simulator.hpp>

namespace troupe::testing {

void simulator::submit() {
  if (!last_job_ || !dice_.once_in(3)) last_job_ = random_job(dice_, matching_).make();
  const auto job = last_job_; // again: what it keeps is there
  const auto number = report_.jobs++;
  if (options_.only_jobs && !options_.only_jobs->contains(number)) {
    --to_submit_;
    return;
  }
  std::vector<resolved_profile> profiles;
  for (const auto& p : job->profiles) {
    profiles.push_back(resolved(registry_.register_profile(p).value()));
  }
  effects::list out;
  const auto id = scheduler_.on_job_submitted(job, profiles, now_, out);
  --to_submit_;
  ++report_.jobs_run;
  running_.insert(id);
  const auto progress = scheduler_.progress(id, now_);
  for (const auto& s : progress->stages)
    pace_[s.stage] = std::vector<duration>{1us, 300us, 5ms, 80ms, 700ms}[dice_.below(5)];
  for (const auto& s : progress->stages) job_of_[s.stage] = id;
  for (std::size_t s = 0; s < job->stages.size(); ++s)
    if (job->stages[s].barrier) gangs_.insert(progress->stages[s].stage);
  for (auto s = job->stages.size(); s-- > 0;) {
    const auto id_of = [&](std::size_t stage) { return progress->stages[stage].stage; };
    if (job->stages[s].keeps) datasets_.push_back(job->stages[s].keeps->id);
    if (!job->stages[s].keeps && !spared_.contains(id_of(s))) continue;
    spared_.insert(id_of(s));
    for (const auto& above : job->stages[s].dependencies) spared_.insert(id_of(above.stage));
  }
  for (std::size_t s = 0; s < job->stages.size(); ++s)
    if (job->stages[s].barrier && dice_.below(3) > 0) meeting_.insert(progress->stages[s].stage);
  say("job " + std::to_string(id.value) + " of " + std::to_string(job->stages.size()) + " stages");
  if (happens(dice_.once_in(12)))
    at(duration{static_cast<std::int64_t>(dice_.below(3'000'000'000))}, "cancel job " + std::to_string(id.value),
       [=, this] {
         effects::list more;
         scheduler_.on_job_cancelled(id, "by request", now_, more);
         dispatch(more);
       });
  dispatch(out);
}

void simulator::dispatch(effects::list& out) {
  for (const auto& effect : out) {
    if (const auto* orders = std::get_if<effects::send_orders>(&effect)) {
      send(*orders);
    } else if (const auto* complete = std::get_if<effects::complete_job>(&effect)) {
      check_end(complete->end);
      over_.insert(complete->end.job);
    } else if (const auto* staged = std::get_if<effects::publish_staged>(&effect)) {
      publish(staged->what);
    } else if (const auto* useless = std::get_if<effects::discard_staged>(&effect)) {
      const auto& what = useless->what;
      if (accepted_outputs_.contains({what.stage, what.partition, what.attempt}))
        throw std::logic_error("an accepted attempt is discarded");
      staged_.erase({what.stage, what.partition, what.attempt});
    } else if (const auto* hopeless = std::get_if<effects::give_up_executor>(&effect)) {
      const auto& m = *members_.at(hopeless->executor);
      if (hopeless->lost && m.alive && !misses_messages(m))
        throw std::logic_error("executor " + std::to_string(hopeless->executor.value) +
                               " is given up although nothing got lost: " + hopeless->cause);
      say("executor " + std::to_string(hopeless->executor.value) + " is given up: " + hopeless->cause);
      if (m.alive && hopeless->lost) ++report_.given_up;
      lose(hopeless->executor, hopeless->lost, false);
    } else if (const auto* question = std::get_if<effects::ask_feasibility>(&effect)) {
      if (strikes(10)) continue; // lost
      for (const auto& shape : question->shapes)
        at(latency(), "feasibility of shape " + std::to_string(shape.shape.value), [=, this] {
          effects::list more;
          scheduler_.on_feasibility(shape.shape, hosts_.check(shape.profile), now_, more);
          dispatch(more);
        });
    } else if (const auto* load = std::get_if<effects::report_load>(&effect)) {
      // Never the one that announces a shape: that is sent over an ordered channel.
      if (load->report.new_shapes.empty() && strikes(10)) continue;
      at(load->report.new_shapes.empty() ? latency() : 0ns, "load", [report = load->report, this] {
        effects::allocation_list more;
        // As the allocator does: what was decided so far is carried out before it asks on.
        policy_.on_load(
            report, now_,
            [&](const executor_shape& s) {
              dispatch(more);
              return hosts_.room_for(s.profile);
            },
            [&](const way_question& q) {
              dispatch(more);
              return hosts_.who_makes_way(q.shape.profile, q.count, q.leaving, q.may_go);
            },
            more);
        dispatch(more);
      });
    } else if (const auto* publish = std::get_if<effects::publish>(&effect)) {
      if (const auto* good = std::get_if<events::tasks_succeeded>(&publish->event))
        accepted_[good->stage] += good->count;
      else if (const auto* lost = std::get_if<events::map_output_lost>(&publish->event))
        --accepted_[lost->stage];
      else if (const auto* again = std::get_if<events::stage_restarted>(&publish->event)) {
        accepted_[again->stage] = 0;
        ++report_.restarted;
        say("stage " + std::to_string(again->stage.value) + " runs again as a whole: " + again->reason);
      } else if (const auto* failed = std::get_if<events::task_failed>(&publish->event)) {
        say("partition " + std::to_string(failed->partition) + " of stage " + std::to_string(failed->stage.value) +
            ", attempt " + std::to_string(failed->attempt) + ": " + std::string{to_string(failed->status)} + ", " +
            failed->message);
      } else if (const auto* begun = std::get_if<events::stage_submitted>(&publish->event)) {
        say("stage " + std::to_string(begun->stage.value) + " begins");
      } else if (std::holds_alternative<events::executor_excluded>(publish->event) ||
                 std::holds_alternative<events::node_excluded>(publish->event))
        ++report_.excluded;
    }
  }
  out.clear();
  if (auto fault = scheduler_.fault()) throw std::logic_error(*fault);
  if (options_.promise)
    if (auto broken = options_.promise(scheduler_)) throw std::logic_error(*broken);
}

void simulator::dispatch(effects::allocation_list& out) {
  for (const auto& effect : out) {
    if (const auto* c = std::get_if<effects::converge>(&effect)) {
      converge(c->wanted);
    } else if (const auto* ask = std::get_if<effects::ask_release>(&effect)) {
      const auto e = ask->executor;
      at(latency(), "release of executor " + std::to_string(e.value) + " is asked for", [=, this] {
        effects::list more;
        const auto answer = scheduler_.on_release_requested(e, now_, more);
        dispatch(more);
        if (strikes(5)) return; // the answer is lost
        at(latency(), "release answered", [=, this] {
          effects::allocation_list next;
          policy_.on_release_answer(e, answer.granted, answer.serving, next);
          dispatch(next);
        });
      });
    } else if (const auto* failure = std::get_if<effects::report_launch_failure>(&effect)) {
      scheduler_.on_launch_failed(failure->status.shape, failure->status.detail);
    }
  }
  out.clear();
}

void simulator::converge(const std::vector<executor_order>& wanted) {
  std::set<request_id> names;
  for (const auto& order : wanted) {
    names.insert(order.request);
    if (launches_.contains(order.request)) {
      if (order.parked) hosts_.park(order.request);
      continue;
    }
    auto& launch = launches_[order.request];
    const auto place = hosts_.place(order.request, order.shape.profile);
    if (!place || strikes(10)) {
      launch.gone = true;
      if (place) hosts_.free(order.request);
      continue;
    }
    executor_info info = executor_builder{}.started_for(order.shape.profile).request(order.request.value).make({}, 0);
    info.shape = order.identity();
    info.capacity = place->capacity;
    info.host = hosts_.hosts()[place->host].name;
    at(latency() + 50ms, "hello of request " + std::to_string(order.request.value), [=, this] {
      const auto& now = launches_.at(info.request);
      if (!now.gone && !now.stopping) admit(info);
    });
  }
  for (auto& [request, launch] : launches_)
    if (!launch.gone && !launch.stopping && !names.contains(request)) stop(request);
}

void simulator::stop(request_id r) {
  launches_.at(r).stopping = true;
  // Its room is free when it has ended.
  at(latency(), "request " + std::to_string(r.value) + " ends", [=, this] {
    auto& launch = launches_.at(r);
    launch.gone = true;
    hosts_.free(r);
    if (launch.executor) lose(launch.executor, false, true);
  });
}

void simulator::admit(executor_info info) {
  info.executor = {next_executor_++};
  info.epoch = dice_.next();
  info.blocks = {info.executor, info.epoch, info.host, 4000};
  if (info.request) launches_.at(info.request).executor = info.executor;
  say("executor " + std::to_string(info.executor.value) + " is admitted");
  members_.emplace(info.executor, std::make_unique<member>(info, dice_.once_in(4)));
  ++report_.executors;
  effects::list out;
  scheduler_.on_executor_added(info, now_, out);
  dispatch(out);
}

void simulator::lose(executor_id e, bool lost, bool ended) {
  auto& m = *members_.at(e);
  if (!m.alive) return;
  m.alive = false;
  m.haunts = !ended && dice_.once_in(2);
  if (!m.haunts) std::erase_if(open_rights_, [&](const auto& right) { return right.second.second == e; });
  const auto& info = m.self.info();
  if (info.request && !launches_.at(info.request).gone) {
    launches_.at(info.request).gone = true;
    hosts_.free(info.request);
  }
  executor_exit exit;
  if (lost && !m.haunts && dice_.once_in(2))
    exit.cause = dice_.once_in(2) ? exit_cause::memory_limit : exit_cause::exit_code;
  // It is dead at once; the driver hears of it later.
  at(lost ? latency() + duration{static_cast<std::int64_t>(dice_.below(2'000'000'000))} : latency(),
     "executor " + std::to_string(e.value) + (lost ? " is declared lost" : " has left"), [=, this] {
       effects::list out;
       scheduler_.on_executor_gone(e, members_.at(e)->self.info().epoch, "it died", lost, now_, out, exit,
                                   ended || exit.cause != exit_cause::unknown);
       dispatch(out);
     });
}

void simulator::withdraw(broadcast_id dataset) {
  effects::list out;
  scheduler_.on_broadcast_withdrawn(dataset, now_, out);
  dispatch(out);
}

void simulator::drop_some() {
  if (!datasets_.empty() && strikes(60)) {
    const auto dataset = datasets_[dice_.below(datasets_.size())];
    say("dataset " + std::to_string(dataset.number) + " is not needed any more");
    withdraw(dataset);
  }
  for (const auto& [id, m] : members_) {
    if (!m->alive || m->self.kept().empty() || !strikes(20)) continue;
    const auto [cache, partition] = *m->self.kept().begin();
    m->self.evict(cache, partition);
    deliver(id, m->self.report({}), "eviction from executor " + std::to_string(id.value));
  }
}

void simulator::tick() {
  effects::list out;
  scheduler_.on_tick(now_, out);
  dispatch(out);
  std::vector<launch_status> snapshot;
  for (const auto& [request, launch] : launches_)
    snapshot.push_back({request, {}, launch.gone ? launch_state::gone : launch_state::running, "exit code 1"});
  effects::allocation_list more;
  policy_.on_snapshot(snapshot, now_, more);
  dispatch(more);
  std::vector<executor_id> alive;
  for (const auto& [id, m] : members_)
    if (m->alive) alive.push_back(id);
  if (!alive.empty() && strikes(25)) {
    const auto victim = alive[dice_.below(alive.size())];
    say("executor " + std::to_string(victim.value) + " dies");
    lose(victim, true, false);
  }
  drop_some();
  if (strikes(40)) admit(executor_builder{}.cores(1).host("by hand").make({}, 0));
  for (const auto& [id, m] : members_) beat(id);
  // Nor is it over before somebody has noticed what got lost.
  const bool over = jobs_are_over() && std::none_of(members_.begin(), members_.end(),
                                                    [this](const auto& m) { return misses_messages(*m.second); });
  if (now_.time_since_epoch() > turmoil + aftermath && !over) {
    std::string hanging;
    for (const auto id : running_) {
      const auto p = scheduler_.progress(id, now_);
      hanging += " job " + std::to_string(id.value) + " (" + p->waiting_for + ")";
      say(to_text(*scheduler_.explain(id, now_)));
    }
    for (const auto& [id, m] : members_)
      if (misses_messages(*m)) hanging += " executor " + std::to_string(id.value) + " (messages got lost)";
    throw std::logic_error("there is no end of:" + hanging);
  }
  if (!over) at(calm() ? 1s : 200ms, {}, [this] { tick(); });
}

void simulator::check_end(const job_end& end) {
  const auto id = end.job;
  const auto name = "job " + std::to_string(id.value);
  if (running_.erase(id) == 0) throw std::logic_error(name + " ended twice, or before it was submitted");
  say(name + (end.failure ? " fails: " + end.failure.message : " succeeds"));
  if (end.failure) {
    ++(end.failure.code == ec::cancelled ? report_.cancelled : report_.failed);
    return;
  }
  ++report_.succeeded;
  check_outputs(id);
  // A gang that turns out to be needed no longer keeps nothing of what its tasks have made.
  for (const auto& s : end.progress.stages)
    if (accepted_[s.stage] != s.done && !(s.done == 0 && gangs_.contains(s.stage)) && !spared_.contains(s.stage))
      throw std::logic_error(name + ": " + std::to_string(accepted_[s.stage]) + " results were accepted for " +
                             std::to_string(s.done) + " tasks");
  const auto& last = end.progress.stages.back();
  if (!end.results) return; // a shuffle
  std::set<partition_index> elsewhere;
  for (const auto& location : end.results->elsewhere) elsewhere.insert(location.partition);
  if (end.results->values.size() != last.tasks) throw std::logic_error(name + " lacks results");
  for (partition_index p = 0; p < last.tasks; ++p)
    if (end.results->values[p] != (elsewhere.contains(p) ? std::string{} : std::to_string(p)))
      throw std::logic_error(name + " has a wrong result for partition " + std::to_string(p));
  at(latency(), "results of " + name + " are released", [=, this] {
    effects::list out;
    scheduler_.on_results_released(id, now_, out);
    dispatch(out);
  });
}

void simulator::check_rest() {
  if (!scheduler_.is_idle()) throw std::logic_error("something is left in the scheduler");
  for (const auto& [id, m] : members_) {
    if (!m->alive) continue;
    const auto name = "executor " + std::to_string(id.value);
    if (!m->self.kept().empty()) throw std::logic_error(name + " keeps what nobody needs");
    if (m->self.lease_count() > 0 || m->self.installed_count() > 0 || !m->self.book().is_idle())
      throw std::logic_error(name + " is not idle");
    if (!scheduler_.pool()[scheduler_.pool().find(id)].book.is_idle())
      throw std::logic_error("the book of " + name + " differs from its ledger");
  }
}

void simulator::empty_queue() {
  while (!queue_.empty()) {
    const auto next = queue_.top();
    queue_.pop();
    now_ = next.when;
    if (!next.what.empty()) say(next.what);
    ++report_.events;
    next.action();
  }
}

simulation_report simulator::run() {
  to_submit_ = static_cast<std::uint32_t>(dice_.between(1, 5));
  for (std::uint32_t i = 0; i < to_submit_; ++i)
    at(duration{static_cast<std::int64_t>(dice_.below(10'000'000'000))}, {}, [this] { submit(); });
  at(0ns, {}, [this] {
    effects::allocation_list out;
    policy_.on_start(
        now_, [&](const executor_shape& s) { return hosts_.room_for(s.profile); }, out);
    dispatch(out);
  });
  at(1ms, {}, [this] { tick(); });
  try {
    empty_queue();
    withdraw({program_of_jobs, 0}); // it has ended
    empty_queue();
    check_rest();
  } catch (const std::exception& e) {
    report_.fault = e.what();
  }
  report_.history = std::move(history_);
  report_.stale = scheduler_.stale_messages();
  return std::move(report_);
}

simulation_report simulate(std::uint64_t seed, const simulation_options& options) {
  return simulator{seed, options}.run();
}

} // namespace troupe::testing
