#include <troupe/actors/dag_scheduler.hpp>

#include <set>
#include <unordered_map>

#include <troupe/messages/codec.hpp>
#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/execution/output_publisher.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {
namespace {

using scheduler_pointer = stateful_pointer<local_dag_scheduler_actor, struct scheduler_state>;

/// A look at everything costs as much as there are executors.
constexpr duration between_looks = std::chrono::milliseconds{10};

struct scheduler_state {
  static constexpr const char* name = "troupe.dag-scheduler";
  dag_scheduler_config config;
  std::unique_ptr<dag_scheduler> core;
  std::unique_ptr<gate> admitted;
  std::shared_ptr<spdlog::logger> log;
  std::uint64_t surprises = 0;
  allocator_actor allocator;
  std::unordered_map<executor_id, executor_actor> executors;
  std::unordered_map<job_id, client_actor> submitters;       ///< of jobs whose end was not told
  std::unique_ptr<output_publisher> publisher;               ///< of accepted attempts whose files this process sees
  std::unordered_map<job_id, effects::complete_job> closing; ///< ended, but files of theirs may still be moved
  std::unordered_map<job_id, caf::actor_addr> fetching;      ///< other processes that have not let go of results
  std::set<caf::actor_addr> watched;                         ///< clients; repeated watches would repeat the notice
  event_batch facts;                                         ///< not sent yet
  effects::list effects_buffer;                              ///< reused: no allocation per event
  time_point last_progress{};
  time_point last_look{};
  bool stopping = false;
  std::vector<caf::typed_response_promise<local_message<acknowledged>>> stop_promises;

  /// Carries out what the core asked for and leaves the list empty.
  void dispatch(scheduler_pointer self, effects::list& out);
  static publication_task publication_task_of(const effects::staged_attempt& what);
  void close_outputs(effects::complete_job& done);
  void outputs_are_closed(scheduler_pointer self, job_id job, bool clean);
  void log_exclusion(const events::any& event) const;
  void complete(scheduler_pointer self, effects::complete_job& done);
  void ask_allocator(scheduler_pointer self, std::vector<executor_shape> shapes);
  void flush_facts(scheduler_pointer self);
  void report_progress(scheduler_pointer self, time_point now);
  void submitter_gone(scheduler_pointer self, const caf::actor_addr& who);
  void look(scheduler_pointer self);
  void tick_passed(scheduler_pointer self);
  cluster_status status(const status_query& query, time_point now) const;
};

namespace {

/// What comes with every job that goes well waits for more of its kind, until the next tick at the latest: a job of one
/// task would else take a fifth longer. All else is handed on at once, so that whoever looks why a driver died finds
/// the last failure in its file.
struct may_wait {
  bool operator()(const events::tasks_succeeded&) const { return true; }
  bool operator()(const events::lease_granted&) const { return true; }
  bool operator()(const events::lease_released&) const { return true; }
  bool operator()(const events::job_submitted&) const { return true; }
  bool operator()(const events::stage_submitted&) const { return true; }
  bool operator()(const events::stage_completed& e) const { return !e.failure; }
  bool operator()(const events::job_ended& e) const { return !e.failure; }
  template <class Event>
  bool operator()(const Event&) const {
    return false;
  }
};

} // namespace

publication_task scheduler_state::publication_task_of(const effects::staged_attempt& what) {
  publication_task out{what.stage, what.partition, what.attempt, what.executor, {}, {}};
  out.output_directory = std::get<command_program>(*what.program).output_directory;
  if (auto names = decode_outputs((*what.arguments)[what.partition])) out.outputs = std::move(*names);
  return out;
}

/// The submitter hears of the end when nothing of the job is moved any more.
void scheduler_state::close_outputs(effects::complete_job& done) {
  auto staged = std::move(done.staged);
  const auto job = done.end.job;
  closing.emplace(job, std::move(done));
  publisher->close(job, std::move(staged));
}

/// @param clean false: something of it was still being published when patience was over
void scheduler_state::outputs_are_closed(scheduler_pointer self, job_id job, bool clean) {
  const auto found = closing.find(job);
  if (found == closing.end()) return;
  auto done = std::move(found->second);
  closing.erase(found);
  if (!clean) {
    const std::string late = "an output of it was still being published, and may appear later";
    log->error("outputs-not-closed job={} {}", job.value, late);
    if (done.end.failure) done.end.failure.message += "; " + late;
  }
  complete(self, done);
}

void scheduler_state::dispatch(scheduler_pointer self, effects::list& out) {
  bool hurry = false;
  const auto decided = out.empty() || !config.unix_nanoseconds ? 0 : config.unix_nanoseconds();
  for (auto& effect : out) {
    if (auto* s = std::get_if<effects::send_orders>(&effect)) {
      if (const auto it = executors.find(s->executor); it != executors.end())
        tell(self, it->second, box(std::move(s->orders)));
    } else if (auto* p = std::get_if<effects::publish>(&effect)) {
      log_exclusion(p->event);
      hurry = hurry || !std::visit(may_wait{}, p->event);
      facts.records.push_back({0, decided, std::move(p->event)});
    } else if (auto* c = std::get_if<effects::complete_job>(&effect)) {
      if (c->staged.empty())
        complete(self, *c);
      else
        close_outputs(*c);
    } else if (auto* staged = std::get_if<effects::publish_staged>(&effect)) {
      publisher->publish(publication_task_of(staged->what));
    } else if (auto* d = std::get_if<effects::discard_staged>(&effect)) {
      publisher->discard(publication_task_of(d->what));
    } else if (auto* f = std::get_if<effects::forget_job>(&effect)) {
      if (config.forget_files) publisher->later([forget = config.forget_files, job = f->job] { forget(job); });
    } else if (auto* k = std::get_if<effects::keep_printed>(&effect)) {
      if (config.keep_printed) publisher->later([keep = config.keep_printed, what = std::move(*k)] { keep(what); });
    } else if (auto* a = std::get_if<effects::ask_feasibility>(&effect)) {
      ask_allocator(self, std::move(a->shapes));
    } else if (auto* g = std::get_if<effects::give_up_executor>(&effect)) {
      log->warn("executor-given-up executor={} cause=\"{}\"", g->executor.value, g->cause);
      tell(self, config.driver, local(executor_gone{g->executor, g->epoch, std::move(g->cause), g->lost}));
    } else if (auto* l = std::get_if<effects::report_load>(&effect)) {
      if (allocator) tell(self, allocator, box(std::move(l->report)));
    }
  }
  out.clear();
  if (hurry || facts.records.size() >= 256) flush_facts(self);
}

void scheduler_state::log_exclusion(const events::any& event) const {
  if (const auto* e = std::get_if<events::executor_excluded>(&event))
    log->warn("executor-excluded executor={} host={} profile={} failed-tasks={} last=\"{}\"", e->executor.value,
              e->host, e->profile.value, e->failed_tasks, e->failure);
  else if (const auto* r = std::get_if<events::executor_readmitted>(&event))
    log->info("executor-readmitted executor={} profile={} cause=\"{}\"", r->executor.value, r->profile.value, r->cause);
  else if (const auto* n = std::get_if<events::node_excluded>(&event))
    log->warn("node-excluded host={} profile={} executors={} last=\"{}\"", n->host, n->profile.value,
              n->excluded_executors, n->failure);
  else if (const auto* m = std::get_if<events::node_readmitted>(&event))
    log->info("node-readmitted host={} profile={} cause=\"{}\"", m->host, m->profile.value, m->cause);
  else if (const auto* u = std::get_if<events::stage_unschedulable>(&event))
    log->warn("stage-unschedulable job={} {}", u->job.value, u->reason);
}

/// Values of one job that travel in one message, with room for what goes beside them.
constexpr std::size_t most_remote_results = wire_limits::message - (std::size_t{1} << 20);

void scheduler_state::complete(scheduler_pointer self, effects::complete_job& done) {
  const auto id = done.end.job;
  if (const auto it = submitters.find(id); it != submitters.end()) {
    const auto client = std::move(it->second);
    submitters.erase(it);
    if (client.node() != self->node()) {
      // Its end releases them. That of a client of this process does not: it may end before what it has learnt is used.
      if (done.end.results && !done.end.results->elsewhere.empty()) fetching.emplace(id, client.address());
      if (drop_what_cannot_travel(done.end, most_remote_results))
        tell(self, local_dag_scheduler_actor{self},
             local(release_results{id})); // later: these effects are not sent yet
    }
    tell(self, client, box(done.end));
  }
  const auto& failure = done.end.failure.message;
  log->info("job-ended job={} state={}{}{}", id.value, to_string(done.end.progress.state), failure.empty() ? "" : " ",
            failure);
  if (stopping && submitters.empty()) {
    for (auto& promise : stop_promises) promise.deliver(local(acknowledged{}));
    stop_promises.clear();
  }
}

void scheduler_state::ask_allocator(scheduler_pointer self, std::vector<executor_shape> shapes) {
  if (!allocator) return; // the time-out decides
  const auto asked = shapes;
  ask(self, allocator, config.request_timeout, box(feasibility_query{std::move(shapes)}))
      .then(
          [this, self, asked](const boxed<feasibility_answer>& answer) {
            if (!admitted->passes(self, answer)) return;
            effects::list out;
            for (std::size_t i = 0; i < asked.size() && i < answer->answers.size(); ++i)
              core->on_feasibility(asked[i].shape, answer->answers[i], now_of(self), out);
            dispatch(self, out);
          },
          [this, self](const caf::error& why) { log->warn("feasibility-unknown {}", describe(self->system(), why)); });
}

void scheduler_state::flush_facts(scheduler_pointer self) {
  if (facts.records.empty()) return;
  tell(self, config.driver, local(std::exchange(facts, {})));
}

void scheduler_state::report_progress(scheduler_pointer self, time_point now) {
  for (const auto& [job, client] : submitters)
    if (auto progress = core->progress(job, now)) tell(self, client, box(std::move(*progress)));
}

void scheduler_state::submitter_gone(scheduler_pointer self, const caf::actor_addr& who) {
  watched.erase(who);
  std::vector<job_id> orphans;
  for (const auto& [job, client] : submitters)
    if (client.address() == who) orphans.push_back(job);
  log->info("submitter-gone jobs={}", orphans.size());
  effects::list out;
  for (const auto job : orphans) {
    submitters.erase(job); // nobody to tell
    core->on_job_cancelled(job, "its submitter is gone", now_of(self), out);
    if (closing.contains(job)) core->on_results_released(job, now_of(self), out); // nobody will fetch them
  }
  std::erase_if(fetching, [&](const auto& entry) {
    if (entry.second != who) return false;
    core->on_results_released(entry.first, now_of(self), out);
    return true;
  });
  dispatch(self, out);
}

/// After a change that others should hear of at once. A thousand of them in a row cost a few looks.
void scheduler_state::look(scheduler_pointer self) {
  if (now_of(self) - last_look >= between_looks) tick_passed(self);
}

void scheduler_state::tick_passed(scheduler_pointer self) {
  const auto now = now_of(self);
  last_look = now;
  core->on_tick(now, effects_buffer);
  dispatch(self, effects_buffer);
  flush_facts(self);
  // What the core has dropped since.
  if (fetching.size() > config.core.held_jobs)
    std::erase_if(fetching, [&](const auto& entry) { return !core->progress(entry.first, now); });
  if (now - last_progress >= config.progress_interval) {
    last_progress = now;
    report_progress(self, now);
  }
}

cluster_status scheduler_state::status(const status_query& query, time_point now) const {
  cluster_status answer;
  if (query.jobs) answer.jobs = core->all_progress(now);
  if (query.executors)
    for (const auto& e : core->executors()) {
      executor_status s;
      s.info = *e.info;
      s.state = e.draining ? "draining" : "active";
      if (e.excluded > 0)
        s.state += ", excluded from " + std::to_string(e.excluded) + (e.excluded == 1 ? " profile" : " profiles");
      s.leases = e.leases;
      s.running = e.running;
      s.tasks_done = e.tasks_done;
      s.kept = e.kept;
      answer.executors.push_back(std::move(s));
    }
  answer.dropped_messages = admitted->dropped() + core->stale_messages() + surprises;
  return answer;
}

local_dag_scheduler_actor::behavior_type dag_scheduler_behavior(scheduler_pointer self, dag_scheduler_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  state.log = state.config.loggers("dag-scheduler");
  state.core = std::make_unique<dag_scheduler>(state.config.core);
  state.admitted = std::make_unique<gate>(self->node());
  auto hooks = logging_hooks(state.log, &state.surprises);
  hooks.on_down = [self](const caf::actor_addr& who, const caf::error&) { state_of(self).submitter_gone(self, who); };
  harden(self, hooks);
  output_publisher::options publishing;
  publishing.session = state.config.session_id;
  publishing.on_ends = [me = local_dag_scheduler_actor{self}](publications ends) {
    tell_as(me, me, local(std::move(ends)));
  };
  publishing.on_closed = [me = local_dag_scheduler_actor{self}](job_id job, bool clean) {
    tell_as(me, me, local(outputs_closed{job, clean}));
  };
  state.publisher = std::make_unique<output_publisher>(std::move(publishing));
  tell_after(self, local_dag_scheduler_actor{self}, state.config.tick_interval, tick{});
  return {
      [self](const local_message<executor_info>& info, const executor_actor& executor) {
        auto& s = state_of(self);
        s.admitted->admit(executor.node());
        s.executors[info->executor] = executor;
        s.log->info("executor-added executor={} host={} pid={} slots={} profile=\"{}\"", info->executor.value,
                    info->host, info->pid, info->slots, to_string(info->profile));
        s.core->on_executor_added(*info, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        s.look(self);
      },
      [self](const local_message<executor_gone>& gone) {
        auto& s = state_of(self);
        const auto it = s.executors.find(gone->executor);
        if (it == s.executors.end()) return;
        if (gone->announced) {
          s.core->on_executor_out_of_reach(gone->executor, gone->epoch, now_of(self), s.effects_buffer);
          s.dispatch(self, s.effects_buffer);
          return;
        }
        s.admitted->dismiss(it->second.node());
        const auto handle = it->second;
        s.executors.erase(it);
        s.log->info("executor-removed executor={} lost={} cause=\"{}\"", gone->executor.value, gone->lost, gone->cause);
        s.core->on_executor_gone(gone->executor, gone->epoch, gone->cause, gone->lost, now_of(self), s.effects_buffer,
                                 gone->exit, gone->ended);
        s.dispatch(self, s.effects_buffer);
        // Where it lives after all, it need not wait until it despairs of this driver. Not before the core has taken
        // back what it had given it.
        if (gone->lost && !gone->ended)
          ask(self, handle, s.config.request_timeout, box(stop_session{gone->cause, true}))
              .then([](const boxed<acknowledged>&) {}, [](const caf::error&) {});
        s.look(self);
      },
      [self](const boxed<executor_report>& report) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, report)) return;
        // Of an executor that is gone: the core knows it for stale.
        if (const auto it = s.executors.find(report->executor);
            it != s.executors.end() && it->second.node() != sender_node(self)) {
          ++s.surprises;
          return;
        }
        s.core->on_report(*report, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
      },
      [self](const local_message<executor_heartbeat>& beat) {
        auto& s = state_of(self);
        s.core->on_heartbeat(*beat, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
      },
      [self](const local_message<publications>& ended) {
        auto& s = state_of(self);
        s.core->on_publications(ended->ends, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
      },
      [self](const local_message<outputs_closed>& closed) {
        state_of(self).outputs_are_closed(self, closed->job, closed->clean);
      },
      [self](const local_message<allocator_actor>& given) {
        auto& s = state_of(self);
        const auto& allocator = *given;
        if (s.allocator) s.admitted->dismiss(s.allocator.node());
        s.allocator = allocator;
        s.admitted->admit(allocator.node());
        s.core->on_allocator_added(now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        s.look(self);
      },
      [self](const local_message<job_submission>& submission,
             const client_actor& client) -> caf::result<local_message<job_accepted>> {
        auto& s = state_of(self);
        if (s.stopping) return to_caf_error(make_error(ec::refused, "the session is ending and takes no new job"));
        if (!submission->job || submission->profiles.size() != submission->job->profiles.size())
          return to_caf_error(make_error(ec::invalid_argument, "the submission does not name its profiles"));
        if (auto valid = validate(*submission->job); !valid) return to_caf_error(valid.error());
        const auto now = now_of(self);
        const auto id = s.core->on_job_submitted(submission->job, submission->profiles, now, s.effects_buffer);
        s.log->info("job-submitted job={} name=\"{}\" stages={}", id.value, submission->job->name,
                    submission->job->stages.size());
        if (s.watched.insert(client.address()).second) watch(self, client);
        s.submitters.emplace(id, client);
        // The acceptance goes first, so that a submitter knows the job before it hears of its end.
        auto promise = self->make_response_promise<local_message<job_accepted>>();
        promise.deliver(local(job_accepted{id}));
        s.dispatch(self, s.effects_buffer);
        return promise;
      },
      [self](const local_message<cancel_job>& cancel) -> caf::result<local_message<acknowledged>> {
        auto& s = state_of(self);
        const bool known = s.core->on_job_cancelled(cancel->job, cancel->reason, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        if (!known)
          return to_caf_error(make_error(ec::not_found, "there is no job " + std::to_string(cancel->job.value)));
        return local(acknowledged{});
      },
      [self](const local_message<cancel_stage>& cancel) -> caf::result<local_message<acknowledged>> {
        auto& s = state_of(self);
        auto done =
            s.core->on_stage_cancelled(cancel->job, cancel->stage, cancel->reason, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        if (!done) return to_caf_error(done.error());
        return local(acknowledged{});
      },
      [self](const local_message<cancel_group>& cancel) -> caf::result<local_message<cancelled_jobs>> {
        auto& s = state_of(self);
        auto ended = s.core->on_group_cancelled(cancel->group, cancel->reason, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        if (!ended) return to_caf_error(ended.error());
        return local(cancelled_jobs{std::move(*ended)});
      },
      [self](const boxed<release_request>& request) -> caf::result<boxed<release_answer>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, request))
          return to_caf_error(make_error(ec::unauthenticated, "say hello to the driver first"));
        auto answer = s.core->on_release_requested(request->executor, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        return box(release_answer{request->executor, answer.granted, answer.serving, std::move(answer.reason)});
      },
      [self](const boxed<launch_report>& report) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, report)) return;
        // Those that were started together count as one.
        std::map<shape_id, const launch_status*> last;
        for (const auto& status : report->statuses) {
          auto& known = last[status.shape];
          if (known == nullptr || is_certain(*known)) known = &status;
        }
        for (const auto& [shape, status] : last) s.core->on_launch_failed(shape, status->detail, is_certain(*status));
      },
      [self](const boxed<allocation_report>& report) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, report)) s.core->on_allocation(report->shapes);
      },
      [self](const boxed<event_batch>& batch) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, batch)) return;
        for (const auto& record : batch->records) s.facts.records.push_back({0, 0, record.content});
        s.flush_facts(self);
      },
      [self](const local_message<release_results>& release) {
        auto& s = state_of(self);
        s.fetching.erase(release->job);
        s.core->on_results_released(release->job, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
      },
      [self](const local_message<withdraw_broadcast>& withdrawn) {
        auto& s = state_of(self);
        s.core->on_broadcast_withdrawn(withdrawn->broadcast, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
      },
      [self](const local_message<status_query>& query) -> caf::result<local_message<cluster_status>> {
        auto& s = state_of(self);
        return local(s.status(*query, now_of(self)));
      },
      [self](const local_message<explain_query>& query) -> caf::result<local_message<job_explanation>> {
        auto& s = state_of(self);
        auto found = s.core->explain(query->job, now_of(self));
        if (!found)
          return to_caf_error(make_error(ec::not_found, "there is no job " + std::to_string(query->job.value)));
        return local(std::move(*found));
      },
      [self](const local_message<placement_query>& query) -> caf::result<local_message<placement_answer>> {
        auto& s = state_of(self);
        auto found = s.core->placements(query->job);
        if (!found)
          return to_caf_error(make_error(ec::not_found, "there is no job " + std::to_string(query->job.value)));
        return local(placement_answer{std::move(*found)});
      },
      [self](const local_message<stop_session>& stop) -> caf::result<local_message<acknowledged>> {
        auto& s = state_of(self);
        s.stopping = true;
        std::vector<job_id> open;
        for (const auto& [job, client] : s.submitters) open.push_back(job);
        for (const auto job : open) s.core->on_job_cancelled(job, stop->reason, now_of(self), s.effects_buffer);
        s.dispatch(self, s.effects_buffer);
        s.flush_facts(self);
        if (s.submitters.empty()) return local(acknowledged{});
        auto promise = self->make_response_promise<local_message<acknowledged>>();
        s.stop_promises.push_back(promise);
        return promise;
      },
      [self](tick) {
        auto& s = state_of(self);
        s.tick_passed(self);
        tell_after(self, local_dag_scheduler_actor{self}, s.config.tick_interval, tick{});
      },
  };
}

} // namespace

local_dag_scheduler_actor spawn_dag_scheduler(caf::actor_system& system, dag_scheduler_config config) {
  return system.spawn(dag_scheduler_behavior, std::move(config));
}

} // namespace troupe
