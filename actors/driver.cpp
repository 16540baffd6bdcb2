#include <troupe/actors/driver.hpp>

#include <algorithm>
#include <map>
#include <unordered_map>

#include <troupe/actors/event_stream.hpp>
#include <troupe/actors/hello.hpp>
#include <troupe/actors/resource_profile_manager.hpp>
#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/resources/quote.hpp>

namespace troupe {
namespace {

using driver_pointer = stateful_pointer<driver_actor, struct driver_state>;

/// Most profiles whose resolved form is remembered: a copy of what the profile manager owns.
constexpr std::size_t most_cached_profiles = 10'000;

struct known_executor {
  executor_info info;
  executor_actor handle;
  time_point last_beat{};
  std::uint64_t last_number = 0;
  std::uint64_t block_bytes = 0;
  std::uint32_t running = 0;
};

struct subscriber {
  client_actor handle;
  std::uint64_t next = 0;
  std::uint32_t credit = 0;
};

struct pending_submission {
  boxed<job_submission> submission;
  client_actor client;
  caf::typed_response_promise<boxed<job_accepted>> promise;
  time_point since{};
};

struct driver_state {
  static constexpr const char* name = "troupe.driver";
  driver_config config;
  std::unique_ptr<hello_desk> desk;
  std::unique_ptr<gate> admitted;
  std::unique_ptr<event_stream> events;
  std::shared_ptr<spdlog::logger> log;
  std::uint64_t surprises = 0;
  dag_scheduler_actor scheduler;
  allocator_actor allocator;
  resource_profile_manager_actor profiles;
  caf::node_id services; ///< welcomed, its actors not named yet
  std::map<executor_id, known_executor> executors;
  std::vector<client_actor> clients; ///< remote ones that were admitted
  std::vector<subscriber> subscribers;
  std::map<resource_profile, resolved_profile> cache;
  std::vector<pending_submission> waiting; ///< until the services have said hello
  std::uint64_t next_executor = 1;
  std::uint64_t beats = 0;
  time_point last_tick{};
  time_point last_beat{};
  bool stopping = false;

  driver_state() = default;
  driver_state(const driver_state&) = delete;
  driver_state& operator=(const driver_state&) = delete;
  /// What it spawned ends with it: nobody else knows these actors, and their clocks keep them alive.
  ~driver_state() {
    const auto end = [](const auto& actor) {
      if (actor) shut_down(actor);
    };
    end(scheduler);
    if (config.remote_services) return;
    end(allocator);
    end(profiles);
  }

  void start_services(driver_pointer self);
  void admit(driver_pointer self, const executor_registration& registration, const executor_actor& handle,
             caf::typed_response_promise<boxed<welcome>, dag_scheduler_actor> promise);
  welcome make_welcome(executor_id id) const;
  void gone(driver_pointer self, executor_id id, const std::string& cause, bool lost);
  void submit(driver_pointer self, pending_submission request);
  void resolved(driver_pointer self, pending_submission request, const registered_profiles& answer);
  void forward(driver_pointer self, const pending_submission& request);
  void publish(events::any fact);
  void feed(driver_pointer self);
  void tick_passed(driver_pointer self);
  void peer_gone(driver_pointer self, const caf::actor_addr& who);
  known_executor* author(driver_pointer self, executor_id id);
  using stop_promise = caf::typed_response_promise<boxed<acknowledged>>;
  void stop(driver_pointer self, const std::string& reason, stop_promise promise);
  void stop_allocator(driver_pointer self, const std::string& reason, stop_promise promise);
  void stop_executors(driver_pointer self, const std::string& reason, stop_promise promise);
};

error stranger() { return make_error(ec::unauthenticated, "say hello first"); }

void driver_state::start_services(driver_pointer self) {
  resource_profile_manager_config manager;
  manager.defaults = config.defaults;
  manager.loggers = config.loggers;
  profiles = spawn_resource_profile_manager(self->system(), std::move(manager));
  watch(self, profiles);
  const auto spawn = [this, self](allocation_policy::options policy) {
    allocator_config a;
    a.policy = std::move(policy);
    a.backend = config.make_backend ? config.make_backend(driver_actor{self}) : make_manual_backend();
    a.scheduler = scheduler;
    a.loggers = config.loggers;
    a.request_timeout = config.request_timeout;
    allocator = spawn_allocator(self->system(), std::move(a));
    watch(self, allocator);
    tell(self, scheduler, allocator);
  };
  if (config.fixed_executors.empty()) return spawn(config.allocation);
  // Shapes have numbers only once their profiles are registered.
  register_profiles wanted;
  for (const auto& [profile, count] : config.fixed_executors) wanted.profiles.push_back(profile);
  ask(self, profiles, config.request_timeout, box(std::move(wanted)))
      .then(
          [this, spawn](const boxed<registered_profiles>& answer) {
            auto policy = config.allocation;
            for (std::size_t i = 0; i < answer->profiles.size(); ++i)
              policy.fixed.push_back(
                  {{answer->profiles[i].shape, answer->profiles[i].content}, config.fixed_executors[i].second});
            spawn(std::move(policy));
          },
          [this, self](const caf::error& why) {
            log->critical("the fixed executors of this cluster cannot be had: {}",
                          from_caf_error(self->system(), why).message);
          });
}

welcome driver_state::make_welcome(executor_id id) const {
  welcome answer;
  answer.session_id = config.session_id;
  answer.executor = id;
  answer.heartbeat_nanoseconds = static_cast<std::uint64_t>(config.heartbeat_interval.count());
  answer.timeout_nanoseconds = static_cast<std::uint64_t>(config.heartbeat_timeout.count());
  return answer;
}

void driver_state::admit(driver_pointer self, const executor_registration& registration, const executor_actor& handle,
                         caf::typed_response_promise<boxed<welcome>, dag_scheduler_actor> promise) {
  const auto refuse = [&](const error& why) {
    log->warn("hello-refused role=executor host={} pid={} reason=\"{}\"", detail::quote(registration.info.host),
              registration.info.pid, why.message);
    promise.deliver(to_caf_error(why));
  };
  const auto now = now_of(self);
  if (auto good = desk->check(registration.proof, peer_role::executor, now); !good) return refuse(good.error());
  if (stopping) return refuse(make_error(ec::refused, "the session is ending"));
  if (!registration.session_id.empty() && registration.session_id != config.session_id)
    return refuse(make_error(ec::refused, "it belongs to session " + registration.session_id + ", this driver runs " +
                                              config.session_id + ": restart the executor"));
  if (registration.info.epoch == 0) return refuse(make_error(ec::malformed, "an executor has no incarnation"));
  if (auto valid = validate(registration.info.capacity); !valid) return refuse(valid.error());
  if (auto valid = validate(registration.info.profile); !valid) return refuse(valid.error());
  known_executor record;
  record.info = registration.info;
  record.info.executor = executor_id{next_executor++};
  record.info.blocks.executor = record.info.executor;
  record.info.blocks.epoch = record.info.epoch;
  record.handle = handle;
  record.last_beat = now;
  admitted->admit(handle.node());
  watch(self, handle);
  const auto id = record.info.executor;
  // The welcome leaves before the dag scheduler can send the first orders.
  promise.deliver(box(make_welcome(id)), scheduler);
  tell(self, scheduler, box(record.info), handle);
  tell(self, handle, box(driver_heartbeat{++beats}));
  executors.emplace(id, std::move(record));
}

void driver_state::gone(driver_pointer self, executor_id id, const std::string& cause, bool lost) {
  const auto it = executors.find(id);
  if (it == executors.end()) return;
  admitted->dismiss(it->second.handle.node());
  tell(self, scheduler, box(executor_gone{id, it->second.info.epoch, cause, lost}));
  executors.erase(it);
}

void driver_state::submit(driver_pointer self, pending_submission request) {
  const auto refuse = [&](const error& why) { request.promise.deliver(to_caf_error(why)); };
  if (stopping) return refuse(make_error(ec::refused, "the session is ending"));
  if (!request.submission->job) return refuse(make_error(ec::invalid_argument, "the submission has no job"));
  if (auto valid = validate(*request.submission->job); !valid) return refuse(valid.error());
  if (!profiles) {
    waiting.push_back(std::move(request));
    return;
  }
  const auto& wanted = request.submission->job->profiles;
  const bool known = std::all_of(wanted.begin(), wanted.end(), [this](const auto& p) { return cache.contains(p); });
  if (known) return forward(self, request);
  ask(self, profiles, config.request_timeout, box(register_profiles{wanted}))
      .then([this, self, request](const boxed<registered_profiles>& answer) { resolved(self, request, *answer); },
            [request](const caf::error& why) mutable { request.promise.deliver(why); });
}

void driver_state::resolved(driver_pointer self, pending_submission request, const registered_profiles& answer) {
  const auto& asked = request.submission->job->profiles;
  if (answer.profiles.size() != asked.size()) {
    request.promise.deliver(to_caf_error(make_error(ec::internal, "the resource profile manager lost a profile")));
    return;
  }
  if (cache.size() + asked.size() > most_cached_profiles) cache.clear();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& one = answer.profiles[i];
    const bool seen =
        std::any_of(cache.begin(), cache.end(), [&](const auto& c) { return c.second.profile == one.profile; });
    if (!seen) publish(events::profile_added{one.profile, one.content});
    cache.insert_or_assign(asked[i], one);
  }
  forward(self, request);
}

void driver_state::forward(driver_pointer self, const pending_submission& request) {
  job_submission resolved{request.submission->job, {}};
  for (const auto& p : resolved.job->profiles) resolved.profiles.push_back(cache.at(p));
  auto promise = request.promise;
  ask_untimed(self, scheduler, box(std::move(resolved)), request.client)
      .then([promise](const boxed<job_accepted>& accepted) mutable { promise.deliver(accepted); },
            [promise](const caf::error& why) mutable { promise.deliver(why); });
}

void driver_state::publish(events::any fact) {
  events->append(std::move(fact), config.unix_nanoseconds ? config.unix_nanoseconds() : 0);
}

void driver_state::feed(driver_pointer self) {
  for (auto& s : subscribers) {
    if (s.credit == 0 || s.next > events->last()) continue;
    auto records = events->read(s.next, s.credit);
    if (records.empty()) continue;
    s.next = records.back().number + 1;
    s.credit -= static_cast<std::uint32_t>(records.size());
    tell(self, s.handle, box(event_batch{std::move(records)}));
  }
}

void driver_state::tick_passed(driver_pointer self) {
  const auto now = now_of(self);
  const auto interval = config.heartbeat_interval / 4;
  // Our own lateness is nobody's silence.
  const auto lateness = std::max(duration::zero(), now - last_tick - interval);
  last_tick = now;
  std::vector<executor_id> silent;
  for (auto& [id, e] : executors) {
    e.last_beat += std::min(lateness, now - e.last_beat);
    if (now - e.last_beat > config.heartbeat_timeout) silent.push_back(id);
  }
  for (const auto id : silent) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - executors.at(id).last_beat).count();
    log->warn("executor-silent executor={} for={}ms", id.value, ms);
    gone(self, id, "silent for " + std::to_string(ms) + "ms (troupe.executor.heartbeat-timeout)", true);
  }
  if (now - last_beat >= config.heartbeat_interval) {
    last_beat = now;
    const auto message = box(driver_heartbeat{++beats});
    for (const auto& [id, e] : executors) tell(self, e.handle, message);
  }
  for (auto it = waiting.begin(); it != waiting.end();) {
    if (now - it->since < config.request_timeout) {
      ++it;
      continue;
    }
    it->promise.deliver(to_caf_error(make_error(
        ec::unreachable, "the process that runs the allocator and the resource profile manager has not said hello")));
    it = waiting.erase(it);
  }
}

void driver_state::peer_gone(driver_pointer self, const caf::actor_addr& who) {
  const auto is = [&](const auto& actor) { return actor && actor.address() == who; };
  if (is(scheduler) || (!config.remote_services && (is(allocator) || is(profiles)))) {
    // Jobs would wait for ever. The end of the driver is what everybody who waits for one watches.
    const auto* lost = is(scheduler) ? "dag scheduler" : is(allocator) ? "allocator" : "resource profile manager";
    log->critical("ends: its {} is gone", lost);
    self->quit(to_caf_error(make_error(ec::internal, std::string{"the "} + lost + " is gone")));
    return;
  }
  for (const auto& [id, e] : executors)
    if (e.handle.address() == who) return gone(self, id, "connection lost", true);
  std::erase_if(subscribers, [&](const subscriber& s) { return s.handle.address() == who; });
  if (const auto it =
          std::find_if(clients.begin(), clients.end(), [&](const client_actor& c) { return c.address() == who; });
      it != clients.end()) {
    log->info("client-gone");
    admitted->dismiss(it->node());
    clients.erase(it);
    return;
  }
  if (is(allocator) || is(profiles)) {
    log->error("services-gone: submissions wait until they are back");
    if (allocator) admitted->dismiss(allocator.node());
    allocator = nullptr;
    profiles = nullptr;
    cache.clear();
  }
}

/// The executor whose id the message in hand names, unless another peer wrote it; null where there is none.
known_executor* driver_state::author(driver_pointer self, executor_id id) {
  const auto it = executors.find(id);
  return it != executors.end() && it->second.handle.node() == sender_node(self) ? &it->second : nullptr;
}

/// Jobs first, then what started the executors, then the executors that are left.
void driver_state::stop(driver_pointer self, const std::string& reason, stop_promise promise) {
  log->info("stop reason=\"{}\"", reason);
  stopping = true;
  const auto next = [this, self, reason, promise] { stop_allocator(self, reason, promise); };
  ask(self, scheduler, config.request_timeout, box(stop_session{reason}))
      .then([next](const boxed<acknowledged>&) { next(); }, [next](const caf::error&) { next(); });
}

void driver_state::stop_allocator(driver_pointer self, const std::string& reason, stop_promise promise) {
  if (!allocator) return stop_executors(self, reason, promise);
  const auto next = [this, self, reason, promise] { stop_executors(self, reason, promise); };
  ask(self, allocator, config.request_timeout, box(stop_session{reason}))
      .then([next](const boxed<acknowledged>&) { next(); }, [next](const caf::error&) { next(); });
}

void driver_state::stop_executors(driver_pointer self, const std::string& reason, stop_promise promise) {
  if (executors.empty()) {
    promise.deliver(box(acknowledged{}));
    return;
  }
  const auto left = std::make_shared<std::size_t>(executors.size());
  auto next = [left, promise]() mutable {
    if (--*left == 0) promise.deliver(box(acknowledged{}));
  };
  for (const auto& [id, e] : executors)
    ask(self, e.handle, config.heartbeat_interval, box(stop_session{reason}))
        .then([next](const boxed<acknowledged>&) mutable { next(); }, [next](const caf::error&) mutable { next(); });
}

/// Passes a client's request on and its answer back. In the driver's own name, not delegated: the scheduler obeys its
/// own process alone, and who else may ask is decided here.
template <class Answer, class Question>
caf::result<boxed<Answer>> ask_scheduler(driver_pointer self, const boxed<Question>& question) {
  auto& s = state_of(self);
  auto promise = self->template make_response_promise<boxed<Answer>>();
  ask_untimed(self, s.scheduler, question)
      .then([promise](const boxed<Answer>& answer) mutable { promise.deliver(answer); },
            [promise](const caf::error& why) mutable { promise.deliver(why); });
  return promise;
}

driver_actor::behavior_type behavior(driver_pointer self, driver_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  state.log = state.config.loggers("driver");
  state.desk = std::make_unique<hello_desk>(state.config.cluster_id, state.config.session_id, *state.config.secret);
  state.admitted = std::make_unique<gate>(self->node());
  state.events = std::make_unique<event_stream>(state.config.retained_events);
  auto hooks = logging_hooks(state.log, &state.surprises);
  hooks.on_down = [self](const caf::actor_addr& who, const caf::error&) { state_of(self).peer_gone(self, who); };
  harden(self, std::move(hooks));
  dag_scheduler_config scheduler;
  scheduler.core = state.config.scheduler;
  scheduler.driver = driver_actor{self};
  scheduler.loggers = state.config.loggers;
  scheduler.request_timeout = state.config.request_timeout;
  state.scheduler = spawn_dag_scheduler(self->system(), std::move(scheduler));
  watch(self, state.scheduler);
  if (!state.config.remote_services) state.start_services(self);
  state.last_tick = now_of(self);
  tell_after(self, driver_actor{self}, state.config.heartbeat_interval / 4, tick{});
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
          s.log->warn("hello-refused name={} reason=\"{}\"", detail::quote(peer->name), good.error().message);
          return to_caf_error(good.error());
        }
        s.log->info("client-admitted name={}", detail::quote(peer->name));
        s.admitted->admit(client.node());
        s.clients.push_back(client);
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
          s.log->warn("hello-refused role=services name={} reason=\"{}\"", detail::quote(peer->name),
                      good.error().message);
          return to_caf_error(good.error());
        }
        s.log->info("services-admitted name={}", detail::quote(peer->name));
        s.services = sender_node(self);
        auto promise = self->make_response_promise<boxed<welcome>, dag_scheduler_actor>();
        promise.deliver(box(s.make_welcome({})), s.scheduler);
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
        tell(self, s.scheduler, allocator);
        for (auto& request : std::exchange(s.waiting, {})) s.submit(self, std::move(request));
        return box(acknowledged{});
      },
      [self](const boxed<job_submission>& submission, const client_actor& client) -> caf::result<boxed<job_accepted>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return to_caf_error(stranger());
        auto promise = self->make_response_promise<boxed<job_accepted>>();
        s.submit(self, {submission, client, promise, now_of(self)});
        return promise;
      },
      [self](const boxed<cancel_job>& cancel) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return to_caf_error(stranger());
        return ask_scheduler<acknowledged>(self, cancel);
      },
      [self](const boxed<release_results>& release) {
        auto& s = state_of(self);
        if (s.admitted->passes(self)) tell(self, s.scheduler, release);
      },
      [self](const boxed<status_query>& query) -> caf::result<boxed<cluster_status>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return to_caf_error(stranger());
        auto promise = self->make_response_promise<boxed<cluster_status>>();
        ask_untimed(self, s.scheduler, query)
            .then(
                [self, promise](const boxed<cluster_status>& answer) mutable {
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
                    if (now_of(self) - it->second.last_beat > 3 * mine.config.heartbeat_interval) e.state = "silent";
                  }
                  promise.deliver(box(std::move(full)));
                },
                [promise](const caf::error& why) mutable { promise.deliver(why); });
        return promise;
      },
      [self](const boxed<placement_query>& query) -> caf::result<boxed<placement_answer>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return to_caf_error(stranger());
        return ask_scheduler<placement_answer>(self, query);
      },
      [self](const boxed<goodbye>& leaving) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return to_caf_error(stranger());
        const auto* e = s.author(self, leaving->executor);
        if (e != nullptr && e->info.epoch == leaving->epoch)
          s.gone(self, leaving->executor, "said goodbye: " + leaving->reason, false);
        else
          ++s.surprises;
        return box(acknowledged{});
      },
      [self](const boxed<subscribe_events>& wish, const client_actor& client) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return;
        auto it = std::find_if(s.subscribers.begin(), s.subscribers.end(),
                               [&](const subscriber& known) { return known.handle == client; });
        if (it == s.subscribers.end()) {
          it = s.subscribers.insert(s.subscribers.end(), {client, s.events->last() + 1, 0});
          watch(self, client);
        }
        if (wish->from > 0) it->next = wish->from;
        it->credit = wish->credit;
        s.feed(self);
      },
      [self](const boxed<executor_heartbeat>& beat) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return;
        auto* e = s.author(self, beat->executor);
        if (e == nullptr || e->info.epoch != beat->epoch || beat->number <= e->last_number) {
          ++s.surprises;
          return;
        }
        e->last_number = beat->number;
        e->last_beat = now_of(self);
        e->block_bytes = beat->block_bytes;
        e->running = beat->running;
        tell(self, s.scheduler, beat);
      },
      [self](const boxed<executor_gone>& given_up) {
        auto& s = state_of(self);
        if (!s.admitted->is_local(self)) return;
        const auto it = s.executors.find(given_up->executor);
        if (it != s.executors.end() && it->second.info.epoch == given_up->epoch)
          s.gone(self, given_up->executor, given_up->cause, given_up->lost);
      },
      [self](const boxed<event_batch>& batch) {
        auto& s = state_of(self);
        if (!s.admitted->is_local(self)) return;
        for (const auto& record : batch->records) s.publish(record.content);
        s.feed(self);
      },
      [self](const boxed<stop_session>& stop) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self)) return to_caf_error(stranger());
        auto promise = self->make_response_promise<boxed<acknowledged>>();
        s.stop(self, stop->reason, promise);
        return promise;
      },
      [self](tick) {
        auto& s = state_of(self);
        if (!s.admitted->is_local(self)) return; // each tick winds the clock again
        s.tick_passed(self);
        tell_after(self, driver_actor{self}, s.config.heartbeat_interval / 4, tick{});
      },
  };
}

} // namespace

driver_actor spawn_driver(caf::actor_system& system, driver_config config) {
  return system.spawn(behavior, std::move(config));
}

} // namespace troupe
