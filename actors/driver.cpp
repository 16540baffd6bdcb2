// Which message leads to what. What the driver knows and does: driver_state.

#include <troupe/actors/driver.hpp>

#include <troupe/actors/driver_state.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using namespace detail;

error stranger() { return make_error(ec::unauthenticated, "say hello first"); }

/// Passes a client's request on and its answer back. The scheduler takes such requests from this process alone; who
/// else may ask is decided here.
template <class Answer, class Question>
caf::result<boxed<Answer>> ask_scheduler(driver_pointer self, const boxed<Question>& question) {
  auto& s = state_of(self);
  auto promise = self->template make_response_promise<boxed<Answer>>();
  ask_untimed(self, s.scheduler, local(question))
      .then([promise](const local_message<Answer>& answer) mutable { promise.deliver(box(answer.shared())); },
            [promise](const caf::error& why) mutable { promise.deliver(why); });
  return promise;
}

local_driver_actor::behavior_type driver_behavior(driver_pointer self, driver_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  state.log = state.config.loggers("driver");
  state.desk = std::make_unique<hello_desk>(state.config.cluster_id, state.config.session_id, *state.config.secret);
  state.admitted = std::make_unique<gate>(self->node());
  state.history = std::make_unique<events::event_stream>(state.config.max_event_lag);
  auto hooks = logging_hooks(state.log, &state.surprises);
  hooks.on_down = [self](const caf::actor_addr& who, const caf::error&) { state_of(self).peer_gone(self, who); };
  harden(self, hooks);
  dag_scheduler_config scheduler;
  scheduler.core = state.config.scheduler;
  scheduler.driver = local_driver_actor{self};
  scheduler.session_id = state.config.session_id;
  scheduler.unix_nanoseconds = state.config.unix_nanoseconds;
  scheduler.forget_files = state.config.forget_files;
  scheduler.keep_printed = state.config.keep_printed;
  scheduler.loggers = state.config.loggers;
  scheduler.request_timeout = state.config.request_timeout;
  state.scheduler = spawn_dag_scheduler(self->system(), std::move(scheduler));
  watch(self, state.scheduler);
  if (!state.config.remote_services) state.start_services(self);
  state.last_tick = now_of(self);
  tell_after(self, local_driver_actor{self}, state.config.heartbeat_interval / 4, tick{});
  return {
      [self](const boxed<hello>& from) -> caf::result<boxed<hello_challenge>> {
        auto& s = state_of(self);
        auto challenge = s.desk->challenge(*from, now_of(self));
        if (!challenge) {
          s.log->warn("hello-refused reason=\"{}\"", challenge.error().message);
          return to_caf_error(challenge.error());
        }
        return box(std::move(*challenge));
      },
      [self](const boxed<executor_registration>& registration,
             const executor_actor& executor) -> caf::result<boxed<welcome>, dag_scheduler_actor> {
        auto promise = self->make_response_promise<boxed<welcome>, dag_scheduler_actor>();
        state_of(self).admit(self, *registration, executor, promise);
        return promise;
      },
      [self](const boxed<peer_registration>& peer, const client_actor& client) -> caf::result<boxed<welcome>> {
        auto& s = state_of(self);
        auto good = s.desk->check(peer->proof, peer->role, now_of(self));
        if (good && peer->role != peer_role::client) good = make_error(ec::refused, "it registers as another peer");
        if (!good) {
          s.log->warn("hello-refused name={} reason=\"{}\"", quote(peer->name), good.error().message);
          return to_caf_error(good.error());
        }
        s.log->info("client-admitted name={}", quote(peer->name));
        s.admitted->admit(client.node());
        s.clients.push_back({client, peer->program});
        watch(self, client);
        return box(s.make_welcome({}));
      },
      [self](const boxed<peer_registration>& peer) -> caf::result<boxed<welcome>, dag_scheduler_actor> {
        auto& s = state_of(self);
        auto good = s.desk->check(peer->proof, peer_role::services, now_of(self));
        if (good && (!s.config.remote_services || s.profiles))
          good =
              make_error(ec::refused, s.config.remote_services
                                          ? "another process runs this driver's allocator and resource profile manager"
                                          : "this driver runs its own allocator and resource profile manager");
        if (!good) {
          s.log->warn("hello-refused role=services name={} reason=\"{}\"", quote(peer->name), good.error().message);
          return to_caf_error(good.error());
        }
        s.log->info("services-admitted name={}", quote(peer->name));
        s.services = sender_node(self);
        auto promise = self->make_response_promise<boxed<welcome>, dag_scheduler_actor>();
        promise.deliver(box(s.make_welcome({})), dag_scheduler_actor{s.scheduler});
        return promise;
      },
      [self](const allocator_actor& allocator,
             const resource_profile_manager_actor& profiles) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.services || sender_node(self) != s.services || allocator.node() != s.services ||
            profiles.node() != s.services)
          return to_caf_error(stranger());
        s.services = caf::node_id{}; // good for one pair
        s.admitted->admit(allocator.node());
        s.allocator = allocator;
        s.profiles = profiles;
        watch(self, allocator);
        watch(self, profiles);
        tell(self, s.scheduler, local(allocator));
        for (auto& request : std::exchange(s.waiting, {})) s.submit(self, std::move(request));
        return box(acknowledged{});
      },
      [self](const boxed<job_submission>& submission, const client_actor& client) -> caf::result<boxed<job_accepted>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, submission)) return to_caf_error(stranger());
        auto promise = self->make_response_promise<boxed<job_accepted>>();
        s.submit(self, {submission, client, promise, now_of(self)});
        return promise;
      },
      [self](const boxed<cancel_job>& cancel) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, cancel)) return to_caf_error(stranger());
        return ask_scheduler<acknowledged>(self, cancel);
      },
      [self](const boxed<cancel_stage>& stage) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, stage)) return to_caf_error(stranger());
        return ask_scheduler<acknowledged>(self, stage);
      },
      [self](const boxed<cancel_group>& group) -> caf::result<boxed<cancelled_jobs>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, group)) return to_caf_error(stranger());
        return ask_scheduler<cancelled_jobs>(self, group);
      },
      [self](const boxed<release_results>& release) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, release)) tell(self, s.scheduler, local(release));
      },
      [self](const boxed<withdraw_broadcast>& withdrawn) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, withdrawn)) tell(self, s.scheduler, local(withdrawn));
      },
      [self](const boxed<status_query>& query) -> caf::result<boxed<cluster_status>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, query)) return to_caf_error(stranger());
        auto promise = self->make_response_promise<boxed<cluster_status>>();
        ask_untimed(self, s.scheduler, local(query))
            .then(
                [self, promise](const local_message<cluster_status>& answer) mutable {
                  auto& mine = state_of(self);
                  auto full = *answer;
                  full.cluster_id = mine.config.cluster_id;
                  full.session_id = mine.config.session_id;
                  full.master = mine.config.master;
                  full.dropped_messages += mine.admitted->dropped() + mine.surprises;
                  for (auto& e : full.executors) {
                    const auto it = mine.executors.find(e.info.executor);
                    if (it == mine.executors.end()) continue;
                    e.block_bytes = it->second.block_bytes;
                    if (mine.silence_of(it->second, now_of(self)) > 3 * mine.config.heartbeat_interval)
                      e.state = "silent";
                  }
                  promise.deliver(box(std::move(full)));
                },
                [promise](const caf::error& why) mutable { promise.deliver(why); });
        return promise;
      },
      [self](const boxed<explain_query>& query) -> caf::result<boxed<job_explanation>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, query)) return to_caf_error(stranger());
        return ask_scheduler<job_explanation>(self, query);
      },
      [self](const boxed<placement_query>& query) -> caf::result<boxed<placement_answer>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, query)) return to_caf_error(stranger());
        return ask_scheduler<placement_answer>(self, query);
      },
      [self](const boxed<goodbye>& leaving) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, leaving)) return to_caf_error(stranger());
        const auto* e = s.author(self, leaving->executor);
        if (e != nullptr && e->info.epoch == leaving->epoch)
          s.gone(self, leaving->executor, "said goodbye: " + leaving->reason, false, {}, true);
        else
          ++s.surprises;
        return box(acknowledged{});
      },
      [self](const boxed<subscribe_events>& wish, const client_actor& client) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, wish)) return;
        s.subscribe(self, *wish, client);
      },
      [self](const boxed<executor_heartbeat>& beat) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, beat)) return;
        auto* e = s.author(self, beat->executor);
        if (e == nullptr || e->info.epoch != beat->epoch || beat->number <= e->last_number) {
          ++s.surprises;
          return;
        }
        e->last_number = beat->number;
        e->last_beat = now_of(self);
        e->block_bytes = beat->block_bytes;
        e->running = beat->running;
        tell(self, s.scheduler, local(beat));
        // At once: what it may begin depends on it, and the next heartbeat of this driver may be far.
        tell(self, e->handle, box(driver_heartbeat{s.beats, beat->number}));
      },
      [self](const local_message<executor_gone>& given_up) {
        auto& s = state_of(self);
        const auto it = s.executors.find(given_up->executor);
        if (it != s.executors.end() && it->second.info.epoch == given_up->epoch)
          s.gone(self, given_up->executor, given_up->cause, given_up->lost);
      },
      [self](const local_message<event_batch>& batch) {
        auto& s = state_of(self);
        for (const auto& record : batch->records) s.publish(record.content, record.unix_nanoseconds);
        s.feed(self);
      },
      [self](const boxed<stop_session>& stop) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, stop)) return to_caf_error(stranger());
        auto promise = self->make_response_promise<boxed<acknowledged>>();
        s.stop(self, stop->reason, promise);
        return promise;
      },
      [self](tick) {
        auto& s = state_of(self);
        s.tick_passed(self);
        tell_after(self, local_driver_actor{self}, s.config.heartbeat_interval / 4, tick{});
      },
  };
}

} // namespace

local_driver_actor spawn_driver(caf::actor_system& system, driver_config config) {
  return system.spawn(driver_behavior, std::move(config));
}

} // namespace troupe
