#include <troupe/actors/executor.hpp>

#include <algorithm>
#include <atomic>
#include <thread>

#include <troupe/actors/hello.hpp>
#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/execution/executor_core.hpp>
#include <troupe/runtime/execution/executor_hold.hpp>
#include <troupe/runtime/scheduling/state_machine.hpp>

namespace troupe {
namespace {

using executor_pointer = stateful_pointer<local_executor_actor, struct executor_state>;

/// joining -> active -> leaving -> over; joining -> over. Leaving waits for the driver's answer to the goodbye, over
/// for the lease threads.
enum class phase { joining, active, leaving, over };

constexpr bool may_follow(phase from, phase to) noexcept {
  if (from == phase::joining) return to == phase::active || to == phase::over;
  return from < to;
}

error forged_answer() { return make_error(ec::unauthenticated, "another process has answered in the driver's place"); }

struct executor_state {
  static constexpr const char* name = "troupe.executor";
  executor_config config;
  std::unique_ptr<executor_core> core;
  std::unique_ptr<task_runner> runner;
  std::unique_ptr<takeover_worker> takeovers; ///< of a shuffle service
  std::unique_ptr<gate> admitted;
  std::shared_ptr<spdlog::logger> log;
  std::uint64_t surprises = 0;
  phase now_in = phase::joining;
  dag_scheduler_actor scheduler;
  std::string session; ///< to which it belongs; "" before it was admitted
  duration heartbeat_interval{};
  time_point last_beat{}; ///< of ours
  time_point last_word{}; ///< of the driver
  time_point last_tick{};
  duration late{}; ///< of all ticks together: time in which this process, and so its tasks, may not have run
  bool driver_out_of_reach = false; ///< its connection is closed
  bool was_stopped = false;         ///< the driver wants nothing of it any more
  bool was_given_up = false;        ///< the driver goes on without it
  executor_hold hold;               ///< until when it may begin anything
  bool holds = false;               ///< that this time has passed was logged
  std::uint64_t beats = 0;
  std::uint64_t reports = 0; ///< sent
  effects::execution_list effects_buffer;
  error reason;      ///< why it is over, or leaves
  bool clean = true; ///< all lease threads ended; written by `ending`, read after its join
  bool told = false; ///< `on_end` was called
  std::atomic<bool> ended = false;
  std::thread ending;

  ~executor_state() {
    if (ending.joinable()) ending.join();
    if (told) return;
    // A defect has ended the actor, or its system is going.
    takeovers.reset();
    clean = !runner || runner->shutdown(config.shutdown_grace);
    if (clean) clear_up();
    if (config.on_end) config.on_end(make_error(ec::internal, "the executor failed; see its log"), clean);
    runner.reset(); // waits for the last task, which uses what is destroyed after this
    if (!clean) clear_up();
  }
  void clear_up() {
    if (const auto once = std::exchange(config.clear_up, {})) once();
  }
  void join(executor_pointer self);
  void register_at_driver(executor_pointer self, const hello_proof& proof, const error& hopeless);
  void start_runner(executor_pointer self, executor_id id);
  void dispatch(executor_pointer self);
  void report(executor_pointer self, executor_report&& content);
  void tell_of_overdue(executor_pointer self, time_point now);
  void tell_of_takeovers(executor_pointer self);
  void beat(executor_pointer self, time_point now);
  void tick_passed(executor_pointer self);
  void judge_silence(executor_pointer self, time_point now);
  void heard_of_driver(executor_pointer self, const driver_heartbeat& beat);
  void begin_no_more();
  void end_late_stages(const executor_orders& orders);
  void leave(executor_pointer self, error why);
  void say_goodbye(executor_pointer self);
  void finish(executor_pointer self, error why);
  void end(executor_pointer self);
  void wait_for_tasks(executor_pointer self);
};

void executor_state::join(executor_pointer self) {
  auto opening = std::make_shared<hello_opening>(peer_role::executor, config.cluster_id);
  ask(self, config.driver, config.request_timeout, box(opening->message()))
      .then(
          [this, self, opening](const boxed<hello_challenge>& challenge) {
            if (now_in != phase::joining) return; // told to end meanwhile
            if (!admitted->passes(self, challenge)) return finish(self, forged_answer());
            auto proof = opening->answer(*challenge, *config.secret);
            if (!proof && proof.error().code == ec::unauthenticated)
              register_at_driver(self, opening->surrender(*challenge), proof.error());
            else if (!proof)
              finish(self, proof.error());
            else
              register_at_driver(self, *proof, {});
          },
          [this, self](const caf::error& why) { finish(self, from_caf_error(self->system(), why)); });
}

/// `hopeless`: the driver will refuse, and this is why; it is asked all the same so that it logs that somebody tried.
void executor_state::register_at_driver(executor_pointer self, const hello_proof& proof, const error& hopeless) {
  executor_registration registration;
  registration.proof = proof;
  registration.info = config.info;
  registration.session_id = session;
  if (runner) registration.running = runner->running();
  registration.blocks = config.blocks->held();
  const auto sent = now_of(self);
  ask(self, config.driver, config.request_timeout, box(std::move(registration)),
      executor_actor{local_executor_actor{self}})
      .then(
          [this, self, hopeless, sent](const boxed<welcome>& answer, const dag_scheduler_actor& to) {
            if (now_in != phase::joining) return;
            if (!admitted->passes(self, answer) || to.node() != config.driver.node())
              return finish(self, forged_answer());
            if (hopeless) return finish(self, hopeless); // an impostor admits everybody
            scheduler = to;
            admitted->admit(to.node());
            session = answer->session_id;
            core->set_id(answer->executor);
            start_runner(self, answer->executor);
            heartbeat_interval = duration{static_cast<std::int64_t>(answer->heartbeat_nanoseconds)};
            transition("executor", now_in, phase::active);
            last_word = now_of(self);
            hold.begin(sent, config.driver_timeout, heartbeat_interval,
                       duration{static_cast<std::int64_t>(answer->timeout_nanoseconds)});
            runner->may_begin_until(hold.until());
            log->info("admitted executor={} session={}", answer->executor.value, answer->session_id);
            if (config.on_admitted) config.on_admitted(answer->executor);
          },
          [this, self, hopeless](const caf::error& why) {
            finish(self, hopeless ? hopeless : from_caf_error(self->system(), why));
          });
}

/// Tasks are told the executor's id, so nothing can run before it is known.
void executor_state::start_runner(executor_pointer self, executor_id id) {
  auto options = config.runner;
  options.executor = id;
  options.session = session;
  options.blocks = config.blocks.get();
  options.profile = config.info.profile;
  options.cores = config.info.capacity.cores;
  options.hand_over = !config.info.blocks.host.empty() && !is_loopback(config.info.blocks.host);
  options.on_outcomes = [me = local_executor_actor{self}](std::shared_ptr<const outcome_batch> outcomes) {
    tell_as(me, me, local_message{std::move(outcomes)});
  };
  options.on_arrival = [me = local_executor_actor{self}](barrier_arrival arrival) {
    tell_as(me, me, local(std::move(arrival)));
  };
  options.on_publications = [me = local_executor_actor{self}](publications ends) {
    tell_as(me, me, local(std::move(ends)));
  };
  options.on_publishing_ended = [me = local_executor_actor{self}](bool all) {
    tell_as(me, me, local(publishing_ended{all}));
  };
  runner = std::make_unique<task_runner>(std::move(options));
  if (config.take_over) takeovers = std::make_unique<takeover_worker>(config.take_over);
}

void executor_state::dispatch(executor_pointer self) {
  executor_report refused;
  bool stop = false;
  bool unbegun = false;
  for (auto& effect : effects_buffer) {
    if (auto* r = std::get_if<effects::run_batch>(&effect)) {
      runner->run(std::shared_ptr<const task_batch>{r->orders, &r->orders->batches[r->index]});
    } else if (auto* o = std::get_if<effects::open_lease>(&effect)) {
      runner->open_lease(o->grant);
    } else if (auto* c = std::get_if<effects::close_lease>(&effect)) {
      runner->close_lease(c->lease);
    } else if (auto* i = std::get_if<effects::install_stage>(&effect)) {
      runner->install(i->stage);
    } else if (auto* g = std::get_if<effects::remove_stage>(&effect)) {
      runner->remove(g->stage, g->is_late);
      unbegun = true;
      config.blocks->remove(g->stage);
    } else if (auto* k = std::get_if<effects::kill_attempt>(&effect)) {
      runner->kill(k->which);
      unbegun = true;
    } else if (auto* b = std::get_if<effects::recall_lease>(&effect)) {
      runner->give_back(b->lease);
      unbegun = true;
    } else if (auto* l = std::get_if<effects::forget_executor>(&effect)) {
      if (config.runner.shuffles) config.runner.shuffles->forget(l->executor);
    } else if (auto* t = std::get_if<effects::take_over_blocks>(&effect)) {
      log->info("takes-over executor={} blocks={}", t->what.from.executor.value, t->what.blocks.size());
      if (takeovers) takeovers->start(std::move(t->what));
    } else if (auto* d = std::get_if<effects::drop_broadcast>(&effect)) {
      if (config.runner.broadcasts) config.runner.broadcasts->drop(d->broadcast);
    } else if (auto* n = std::get_if<effects::drop_output>(&effect)) {
      config.blocks->remove(output_key(n->block.stage, n->block.partition, n->block.attempt));
    } else if (auto* u = std::get_if<effects::drop_kept>(&effect)) {
      config.blocks->remove(u->cache);
    } else if (auto* copy = std::get_if<effects::drop_copy>(&effect)) {
      config.blocks->remove(cached_key(copy->what.cache, copy->what.partition));
    } else if (auto* a = std::get_if<effects::drop_attempts>(&effect)) {
      runner->drop_attempts(a->job);
    } else if (auto* w = std::get_if<effects::release_barrier>(&effect)) {
      runner->release(w->what);
    } else if (auto* p = std::get_if<effects::publish_attempt>(&effect)) {
      runner->publish(std::move(p->right));
    } else if (auto* f = std::get_if<effects::send_refusal>(&effect)) {
      log->warn("refused lease={} stage={} reason=\"{}\"", f->what.lease.value, f->what.stage.value, f->what.reason);
      refused.refusals.push_back(std::move(f->what));
    } else {
      stop = true;
    }
  }
  effects_buffer.clear();
  // Attempts that were still queued end without a thread that would report them.
  if (unbegun) runner->flush();
  if (!refused.refusals.empty()) report(self, std::move(refused));
  was_stopped = was_stopped || stop;
  if (stop) finish(self, {});
}

void executor_state::report(executor_pointer self, executor_report&& content) {
  content.executor = core->info().executor;
  content.epoch = core->info().epoch;
  content.orders_seen = core->orders_seen();
  for (const auto& key : config.blocks->take_evicted())
    content.evicted.push_back({cache_id{key.source}, key.partition});
  ++reports;
  tell(self, scheduler, box(std::move(content)));
}

/// Whoever decides about this executor hears of tasks that do not end.
void executor_state::tell_of_overdue(executor_pointer self, time_point now) {
  executor_report content;
  content.overdue = runner->overdue(now - late);
  for (const auto& a : content.overdue)
    log->error("attempt-overdue job={} stage={} name=\"{}\" partition={} attempt={}: it still runs {}ms after it was "
               "cancelled (troupe.task.kill-grace)",
               a.job.value, a.stage.value, a.stage_name, a.partition, a.attempt, a.waited_nanoseconds / 1'000'000);
  if (!content.overdue.empty()) report(self, std::move(content));
}

void executor_state::tell_of_takeovers(executor_pointer self) {
  if (!takeovers) return;
  executor_report content;
  content.taken_over = takeovers->take_done();
  for (const auto& taken : content.taken_over)
    log->info("took-over executor={} blocks={}", taken.from.executor.value, taken.blocks.size());
  if (!content.taken_over.empty()) report(self, std::move(content));
}

void executor_state::beat(executor_pointer self, time_point now) {
  last_beat = now;
  const auto load = runner->current_load();
  executor_heartbeat message;
  message.executor = core->info().executor;
  message.epoch = core->info().epoch;
  message.number = ++beats;
  hold.beat_sent(beats, now);
  message.orders_seen = core->orders_seen();
  message.reports_sent = reports;
  message.running = load.running;
  message.queued = load.queued;
  message.block_bytes = config.blocks->bytes();
  tell(self, config.driver, box(message));
}

void executor_state::tick_passed(executor_pointer self) {
  const auto now = now_of(self);
  // Our own lateness is not the driver's silence.
  const auto lateness = std::max(duration::zero(), now - last_tick - config.tick_interval);
  last_tick = now;
  late += lateness;
  // What it still publishes may take a while, and it is not silent meanwhile.
  if (now_in == phase::leaving && now - last_beat >= heartbeat_interval) beat(self, now);
  if (now_in != phase::active) return;
  last_word += std::min(lateness, now - last_word);
  runner->flush();
  tell_of_overdue(self, now);
  tell_of_takeovers(self);
  if (now - last_beat >= heartbeat_interval) beat(self, now);
  judge_silence(self, now);
}

/// Its own lateness puts off its end, as its driver may have spoken meanwhile; it does not put off its holding still.
void executor_state::judge_silence(executor_pointer self, time_point now) {
  const auto silent = now - last_word;
  const auto ms = [](duration d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); };
  // A driver that is there is silent between its heartbeats.
  const auto patience = std::max(config.driver_timeout, config.abandon_timeout) + heartbeat_interval;
  const auto limit = driver_out_of_reach ? config.driver_timeout : patience;
  if (silent > limit)
    return finish(self,
                  make_error(ec::unreachable, "the driver has been silent for " + std::to_string(ms(silent)) +
                                                  (driver_out_of_reach ? "ms, its connection is closed "
                                                                         "(troupe.executor.driver-timeout)"
                                                                       : "ms (troupe.executor.abandon-timeout)")));
  if (holds || now < hold.until()) return;
  holds = true;
  log->warn("holds: for {}ms the driver has not said that it hears of this executor (troupe.executor.driver-timeout)",
            ms(now - hold.until() + hold.time()));
  beat(self, now); // a driver that is there answers
}

void executor_state::heard_of_driver(executor_pointer self, const driver_heartbeat& beat) {
  last_word = now_of(self);
  if (now_in != phase::active || !hold.heard(beat.heard)) return;
  runner->may_begin_until(hold.until());
  if (!holds || last_word >= hold.until()) return;
  holds = false;
  log->info("goes-on");
}

void executor_state::begin_no_more() {
  hold.end();
  if (runner) runner->may_begin_until(hold.until());
}

/// A session ends with its last job, and the word to leave may overtake the orders that say why that has ended. They
/// are there before the answer to the goodbye, with which the commands end.
void executor_state::end_late_stages(const executor_orders& orders) {
  for (const auto stage : orders.late_stages) runner->remove(stage, true);
}

/// Leaves on its own account: the driver hears of it first, if it can be reached.
void executor_state::leave(executor_pointer self, error why) {
  if (now_in == phase::leaving) return; // as when each process of a service is told to end, and passes it on
  if (now_in != phase::active) return finish(self, std::move(why));
  transition("executor", now_in, phase::leaving);
  reason = std::move(why);
  begin_no_more();
  runner->end_publishing(); // a goodbye says that it publishes nothing more
}

void executor_state::say_goodbye(executor_pointer self) {
  const auto over = [this, self] { finish(self, reason); };
  ask(self, config.driver, config.shutdown_grace,
      box(goodbye{core->info().executor, core->info().epoch, reason ? reason.message : "it was asked to end"}))
      .then([over](const boxed<acknowledged>&) { over(); }, [over](const caf::error&) { over(); });
}

void executor_state::finish(executor_pointer self, error why) {
  if (now_in == phase::over) return;
  transition("executor", now_in, phase::over);
  if (why)
    log->error("ends reason=\"{}\"", why.message);
  else
    log->info("ends");
  reason = std::move(why);
  begin_no_more();
  // Waiting for tasks to end takes a while and an actor must not wait.
  if (runner) runner->end_publishing();
  // A driver that lives on publishes what it has accepted, and removes the rest where it sees it.
  const bool alone = !was_given_up && (was_stopped || driver_out_of_reach || reason.code == ec::unreachable);
  ending = std::thread{[this, alone, me = local_executor_actor{self}] {
    takeovers.reset();
    clean = !runner || runner->shutdown(config.shutdown_grace);
    if (runner && alone) runner->discard_outputs();
    if (clean) clear_up(); // whatever its end
    ended = true;
    tell_as(me, me, tick{});
  }};
}

void executor_state::end(executor_pointer self) {
  ending.join();
  if (!told && config.on_end) config.on_end(reason, clean);
  told = true;
  if (clean) return self->quit();
  if (config.info.in_process) wait_for_tasks(self); // any other process ends now
}

/// A thread cannot be ended from outside, and what its task uses must be there as long: the folders, the runner, this
/// actor, and the actor system with it.
void executor_state::wait_for_tasks(executor_pointer self) {
  std::string which;
  for (const auto& a : runner->running())
    which += (which.empty() ? "" : ", ") + std::to_string(a.stage.value) + "/" + std::to_string(a.partition);
  log->warn("waits tasks=\"{}\" (stage/partition): they were asked to end and still run; a native task ends itself, "
            "where it looks at cancelled(). The actor system cannot go before",
            which);
  ended = false;
  ending = std::thread{[this, me = local_executor_actor{self}] {
    runner->await_end();
    clear_up();
    clean = true;
    ended = true;
    tell_as(me, me, tick{});
  }};
}

local_executor_actor::behavior_type executor_behavior(executor_pointer self, executor_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  state.log = state.config.loggers("executor");
  state.core = std::make_unique<executor_core>(state.config.info);
  state.admitted = std::make_unique<gate>(self->node());
  state.admitted->admit(state.config.driver.node());
  state.last_tick = now_of(self);
  const local_executor_actor me{self};
  auto hooks = logging_hooks(state.log, &state.surprises);
  hooks.on_down = [self](const caf::actor_addr& who, const caf::error&) {
    auto& s = state_of(self);
    if (who != s.config.driver.address()) return;
    if (s.now_in == phase::over)
      s.log->info("driver-gone"); // as it has said
    else
      s.log->warn("driver-out-of-reach");
    s.driver_out_of_reach = true;
    s.begin_no_more(); // it is declared lost at once
  };
  hooks.on_exit = [self](const caf::actor_addr&, const caf::error&) {
    state_of(self).leave(self, {});
    return false; // it quits when it is over
  };
  harden(self, hooks);
  watch(self, state.config.driver);
  state.join(self);
  tell_after(self, me, state.config.tick_interval, tick{});
  return {
      [self](const boxed<executor_orders>& orders) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, orders)) return;
        if (s.now_in == phase::leaving) s.end_late_stages(*orders);
        if (s.now_in != phase::active) return;
        s.core->on_orders(orders.shared(), s.effects_buffer);
        s.dispatch(self);
      },
      [self](const boxed<driver_heartbeat>& beat) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, beat)) s.heard_of_driver(self, *beat);
      },
      [self](const local_message<outcome_batch>& outcomes) {
        auto& s = state_of(self);
        if (s.now_in != phase::active && s.now_in != phase::leaving) return;
        s.core->on_outcomes(*outcomes, s.effects_buffer);
        executor_report content;
        content.outcomes.push_back(outcomes.shared());
        s.report(self, std::move(content));
        s.dispatch(self);
      },
      [self](const local_message<barrier_arrival>& arrival) {
        auto& s = state_of(self);
        if (s.now_in != phase::active) return;
        executor_report content;
        content.arrivals.push_back(*arrival);
        s.report(self, std::move(content));
      },
      [self](const local_message<publications>& ended) {
        auto& s = state_of(self);
        if (s.now_in != phase::active && s.now_in != phase::leaving) return;
        executor_report content;
        content.publications = ended->ends;
        s.report(self, std::move(content));
      },
      [self](const local_message<publishing_ended>& ended) {
        auto& s = state_of(self);
        if (s.now_in != phase::leaving) return;
        if (ended->clean)
          s.say_goodbye(self);
        else
          s.finish(self, s.reason); // the driver has to take it for lost
      },
      [self](const boxed<stop_session>& stop) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, stop))
          return to_caf_error(make_error(ec::unauthenticated, "only the driver stops it"));
        s.log->info("stop reason=\"{}\"", stop->reason);
        auto promise = self->make_response_promise<boxed<acknowledged>>();
        promise.deliver(box(acknowledged{}));
        s.was_stopped = true;
        s.finish(self,
                 stop->given_up ? make_error(ec::unreachable, "the driver has given it up: " + stop->reason) : error{});
        return promise;
      },
      [self](tick) {
        auto& s = state_of(self);
        if (s.now_in == phase::over) {
          if (s.ended && s.ending.joinable()) s.end(self);
          return;
        }
        s.tick_passed(self);
        if (s.now_in != phase::over) tell_after(self, local_executor_actor{self}, s.config.tick_interval, tick{});
      },
  };
}

} // namespace

local_executor_actor spawn_executor(caf::actor_system& system, executor_config config) {
  return system.spawn(executor_behavior, std::move(config));
}

} // namespace troupe
