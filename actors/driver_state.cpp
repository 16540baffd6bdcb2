#include <troupe/actors/driver_state.hpp>

#include <algorithm>

#include <troupe/actors/resource_profile_manager.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>
#include <troupe/runtime/resources/quote.hpp>

namespace troupe::detail {
namespace {

/// Most profiles whose resolved form is remembered: a copy of what the profile manager owns.
constexpr std::size_t most_cached_profiles = 10'000;
constexpr const char* connection_lost_cause = "connection lost";
/// For the allocator, which has to look only; it does not wait so long itself.
constexpr duration exit_patience = std::chrono::seconds{5};

/// An executor with less than it was started for would be given tasks, refuse them, and be given them again. Whose
/// tasks is another question: profiles share executors.
result<void> check_satisfies(const executor_info& info) {
  std::string missing;
  auto asked = info.profile;
  asked.task.clear();
  for (const auto& one : shortfalls(info.capacity, asked)) missing += (missing.empty() ? "" : ", ") + to_string(one);
  if (missing.empty()) return {};
  return make_error(ec::infeasible, "the executor has less than its profile says: it " + missing +
                                        "; give its machine what is missing, or ask for less");
}

error forged_answer() {
  return make_error(ec::unauthenticated, "another process has answered for the resource profile manager");
}

} // namespace

void driver_state::start_services(driver_pointer self) {
  resource_profile_manager_config manager;
  manager.defaults = config.defaults;
  manager.rules = config.rules;
  manager.overhead = config.overhead;
  manager.loggers = config.loggers;
  profiles = spawn_resource_profile_manager(self->system(), std::move(manager));
  watch(self, profiles);
  const auto spawn = [this, self](allocation_policy::options policy) {
    allocator_config a;
    a.policy = std::move(policy);
    a.backend =
        config.make_backend ? config.make_backend(driver_actor{local_driver_actor{self}}) : make_manual_backend();
    a.scheduler = scheduler;
    a.loggers = config.loggers;
    a.request_timeout = config.request_timeout;
    allocator = spawn_allocator(self->system(), std::move(a));
    watch(self, allocator);
    tell(self, scheduler, local(allocator));
  };
  if (config.fixed_executors.empty()) return spawn(config.allocation);
  // Shapes have numbers only once their profiles are registered.
  register_profiles wanted;
  for (const auto& [profile, count] : config.fixed_executors) {
    wanted.profiles.push_back(profile);
    wanted.profiles.back().build = 0; // the session's own: an equal one of a job stands for it
  }
  ask(self, profiles, config.request_timeout, box(std::move(wanted)))
      .then(
          [this, self, spawn](const boxed<registered_profiles>& answer) {
            if (!admitted->passes(self, answer)) return;
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
    log->warn("hello-refused role=executor host={} pid={} reason=\"{}\"", quote(registration.info.host),
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
  const auto request = registration.info.request;
  if (requests.contains(request))
    return refuse(make_error(ec::refused, "another executor has come for request " + std::to_string(request.value) +
                                              ": one that is started by hand names none"));
  if (auto valid = validate(registration.info.capacity); !valid) return refuse(valid.error());
  if (auto valid = validate(registration.info.profile); !valid) return refuse(valid.error());
  if (auto valid = check_satisfies(registration.info); !valid) return refuse(valid.error());
  known_executor record;
  record.info = registration.info;
  record.info.executor = executor_id{next_executor++};
  if (!record.info.request) record.info.shape = {};       // nobody asked for it as anything
  record.info.in_process = handle.node() == self->node(); // whatever it says
  record.info.blocks.executor = record.info.executor;
  record.info.blocks.epoch = record.info.epoch;
  record.handle = handle;
  record.last_beat = now;
  admitted->admit(handle.node());
  watch(self, handle);
  const auto id = record.info.executor;
  // The welcome leaves before the dag scheduler can send the first orders.
  promise.deliver(box(make_welcome(id)), dag_scheduler_actor{scheduler});
  tell(self, scheduler, local(record.info), handle);
  tell(self, handle, box(driver_heartbeat{++beats}));
  executors.emplace(id, std::move(record));
  if (request != request_id{}) requests.insert(request);
}

void driver_state::gone(driver_pointer self, executor_id id, const std::string& cause, bool lost,
                        const executor_exit& exit, bool ended) {
  const auto it = executors.find(id);
  if (it == executors.end()) return;
  admitted->dismiss(it->second.handle.node());
  tell(self, scheduler,
       local(executor_gone{id, it->second.info.epoch, cause, lost, false, exit,
                           ended || exit.cause != exit_cause::unknown}));
  requests.erase(it->second.info.request);
  executors.erase(it);
}

/// Whoever started it sees soon how it has ended, and only then can anybody be told why what ran there has failed.
void driver_state::connection_lost(driver_pointer self, executor_id id) {
  auto& e = executors.at(id);
  const auto request = e.info.request;
  if (e.out_of_reach) return;
  if (!request || !allocator || stopping) return gone(self, id, connection_lost_cause, true);
  e.out_of_reach = true;
  tell(self, scheduler, local(executor_gone{id, e.info.epoch, connection_lost_cause, true, true, {}}));
  const auto over = [this, self, id, epoch = e.info.epoch](const executor_exit& exit) {
    const auto it = executors.find(id);
    if (it == executors.end() || it->second.info.epoch != epoch) return;
    const auto cause = to_string(exit);
    gone(self, id, cause.empty() ? connection_lost_cause : cause, true, exit);
  };
  ask(self, allocator, exit_patience, box(exit_query{request}))
      .then(
          [this, self, over](const boxed<exit_answer>& answer) {
            over(admitted->passes(self, answer) ? answer->exit : executor_exit{});
          },
          [over](const caf::error&) { over({}); });
}

void driver_state::submit(driver_pointer self, pending_submission request) {
  const auto refuse = [&](const error& why) { request.promise.deliver(to_caf_error(why)); };
  if (stopping) return refuse(make_error(ec::refused, "the session is ending"));
  if (!request.submission->job) return refuse(make_error(ec::invalid_argument, "the submission has no job"));
  if (auto valid = validate(*request.submission->job); !valid) return refuse(valid.error());
  const auto& job = *request.submission->job;
  if (std::any_of(job.stages.begin(), job.stages.end(), [](const stage_spec& s) { return s.barrier; }))
    if (auto ok = exact::check_barrier_supported(config.rules); !ok) return refuse(ok.error());
  if (!profiles) {
    waiting.push_back(std::move(request));
    return;
  }
  register_profiles wanted;
  if (config.rules.is_exact()) wanted.submitter = to_string(request.client.node());
  wanted.meetings = meetings_of(job, config.rules);
  std::vector<resolved_profile> known;
  for (const auto& profile : job.profiles)
    if (const auto it = cache.find(key_of(wanted.submitter, profile)); it != cache.end()) known.push_back(it->second);
  if (known.size() == job.profiles.size() && wanted.meetings.empty())
    return forward(self, request, request.submission->job, std::move(known));
  wanted.profiles = job.profiles;
  wanted.on_profile_change = job.on_profile_change;
  ask(self, profiles, config.request_timeout, box(std::move(wanted)))
      .then(
          [this, self, request](const boxed<registered_profiles>& answer) mutable {
            if (admitted->passes(self, answer))
              resolved(self, request, *answer);
            else
              request.promise.deliver(to_caf_error(forged_answer()));
          },
          [request](const caf::error& why) mutable { request.promise.deliver(why); });
}

driver_state::profile_key driver_state::key_of(const std::string& submitter, const resource_profile& profile) const {
  if (!config.rules.is_exact()) return {{}, 0, profile};
  return {submitter, profile.build, profile};
}

void driver_state::resolved(driver_pointer self, pending_submission request, const registered_profiles& answer) {
  const auto& asked = *request.submission->job;
  const auto meetings = std::count_if(asked.stages.begin(), asked.stages.end(),
                                      [](const stage_spec& stage) { return !stage.carried.empty(); });
  if (answer.profiles.size() != asked.profiles.size() + static_cast<std::size_t>(meetings)) {
    request.promise.deliver(to_caf_error(make_error(ec::internal, "the resource profile manager lost a profile")));
    return;
  }
  for (const auto& one : answer.profiles) announce(one);
  if (cache.size() + asked.profiles.size() > most_cached_profiles) cache.clear();
  const auto submitter = config.rules.is_exact() ? to_string(request.client.node()) : std::string{};
  for (std::size_t i = 0; i < asked.profiles.size(); ++i)
    cache.insert_or_assign(key_of(submitter, asked.profiles[i]), answer.profiles[i]);
  if (meetings == 0) return forward(self, request, request.submission->job, answer.profiles);
  // What became of profiles that met takes its place beside those of the job.
  auto job = std::make_shared<job_spec>(asked);
  for (auto& stage : job->stages) {
    if (stage.carried.empty()) continue;
    stage.carried.clear();
    stage.profile = static_cast<std::uint32_t>(job->profiles.size());
    job->profiles.push_back(answer.profiles[job->profiles.size()].content);
  }
  forward(self, request, std::move(job), answer.profiles);
}

void driver_state::forward(driver_pointer self, const pending_submission& request, std::shared_ptr<const job_spec> job,
                           std::vector<resolved_profile> profiles_of_job) {
  job_submission resolved{std::move(job), std::move(profiles_of_job)};
  auto promise = request.promise;
  ask_untimed(self, scheduler, local(std::move(resolved)), request.client)
      .then([promise](const local_message<job_accepted>& accepted) mutable { promise.deliver(box(accepted.shared())); },
            [promise](const caf::error& why) mutable { promise.deliver(why); });
}

/// With what its tasks may run as instead, or with more memory: whatever may run has been announced.
void driver_state::announce(const resolved_profile& profile) {
  if (!announced.insert(profile.profile).second) return;
  publish(events::profile_added{profile.profile, profile.content});
  for (const auto& other : profile.alternatives) announce(other);
  for (const auto& other : profile.escalations) announce(other);
}

void driver_state::publish(events::any fact, std::int64_t decided) {
  if (decided == 0 && config.unix_nanoseconds) decided = config.unix_nanoseconds();
  const auto& record = history->append(std::move(fact), decided);
  if (config.on_event) config.on_event(record);
}

void driver_state::subscribe(driver_pointer self, const subscribe_events& wish, const client_actor& client) {
  auto it = std::find_if(subscribers.begin(), subscribers.end(), [&](const auto& s) { return s.second == client; });
  if (it == subscribers.end()) {
    it = subscribers.emplace(next_subscriber++, client).first;
    watch(self, client);
  }
  history->subscribe(it->first, wish.from, wish.credit);
  feed(self);
}

void driver_state::feed(driver_pointer self) {
  for (auto& news : history->deliver()) {
    const auto to = subscribers.find(news.subscriber);
    if (!news.records.empty()) {
      tell(self, to->second, box(event_batch{std::move(news.records), news.skipped}));
      continue;
    }
    log->warn("subscriber-cut-off client={} last={} (troupe.events.max-lag)", to_string(to->second.address()),
              news.last);
    tell(self, to->second, box(subscription_cut_off{news.last}));
    subscribers.erase(to);
  }
}

duration driver_state::lateness_at(time_point now) const {
  return std::max(duration::zero(), now - last_tick - config.heartbeat_interval / 4);
}

duration driver_state::silence_of(const known_executor& executor, time_point now) const {
  const auto since = now - executor.last_beat;
  return since - std::min(lateness_at(now), since);
}

void driver_state::tick_passed(driver_pointer self) {
  const auto now = now_of(self);
  const auto lateness = lateness_at(now);
  last_tick = now;
  std::vector<executor_id> silent;
  for (auto& [id, e] : executors) {
    e.last_beat += std::min(lateness, now - e.last_beat);
    if (now - e.last_beat > config.heartbeat_timeout && !e.out_of_reach) silent.push_back(id);
  }
  for (const auto id : silent) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - executors.at(id).last_beat).count();
    log->warn("executor-silent executor={} for={}ms", id.value, ms);
    gone(self, id, "silent for " + std::to_string(ms) + "ms (troupe.executor.heartbeat-timeout)", true);
  }
  if (now - last_beat >= config.heartbeat_interval) {
    last_beat = now;
    ++beats;
    for (const auto& [id, e] : executors) tell(self, e.handle, box(driver_heartbeat{beats, e.last_number}));
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
    if (e.handle.address() == who) return connection_lost(self, id);
  std::erase_if(subscribers, [&](const auto& s) {
    if (s.second.address() != who) return false;
    history->forget(s.first);
    return true;
  });
  if (const auto it = std::find_if(clients.begin(), clients.end(),
                                   [&](const known_client& c) { return c.handle.address() == who; });
      it != clients.end()) {
    log->info("client-gone");
    admitted->dismiss(it->handle.node());
    if (it->program != 0) tell(self, scheduler, local(withdraw_broadcast{{it->program, 0}}));
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
void driver_state::stop(driver_pointer self, const std::string& reason, const stop_promise& promise) {
  log->info("stop reason=\"{}\"", reason);
  stopping = true;
  const auto next = [this, self, reason, promise] { stop_allocator(self, reason, promise); };
  ask(self, scheduler, config.request_timeout, local(stop_session{reason}))
      .then([next](const local_message<acknowledged>&) { next(); }, [next](const caf::error&) { next(); });
}

void driver_state::stop_allocator(driver_pointer self, const std::string& reason, const stop_promise& promise) {
  if (!allocator) return stop_executors(self, reason, promise);
  const auto next = [this, self, reason, promise] { stop_executors(self, reason, promise); };
  ask(self, allocator, config.request_timeout, box(stop_session{reason}))
      .then([next](const boxed<acknowledged>&) { next(); }, [next](const caf::error&) { next(); });
}

void driver_state::stop_executors(driver_pointer self, const std::string& reason, const stop_promise& promise) {
  if (executors.empty()) return collect_history(self, reason, promise);
  const auto left = std::make_shared<std::size_t>(executors.size());
  auto next = [this, self, reason, left, promise] {
    if (--*left == 0) collect_history(self, reason, promise);
  };
  for (const auto& [id, e] : executors)
    ask(self, e.handle, config.heartbeat_interval, box(stop_session{reason}))
        .then([next](const boxed<acknowledged>&) { next(); }, [next](const caf::error&) { next(); });
}

/// The scheduler tells what it has seen of the last executors before it answers.
void driver_state::collect_history(driver_pointer self, const std::string& reason, stop_promise promise) {
  auto over = [promise]() mutable { promise.deliver(box(acknowledged{})); };
  ask(self, scheduler, config.request_timeout, local(stop_session{reason}))
      .then([over](const local_message<acknowledged>&) mutable { over(); },
            [over](const caf::error&) mutable { over(); });
}

} // namespace troupe::detail
