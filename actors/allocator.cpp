#include <troupe/actors/allocator.hpp>

#include <algorithm>

#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/allocation/exit_book.hpp>

namespace troupe {
namespace {

class manual_backend : public executor_backend {
public:
  void converge(const std::vector<executor_order>&) override {}
  std::vector<launch_status> snapshot() override { return {}; }
  feasibility check(const executor_shape& shape) override {
    return {false, false,
            "executors of this cluster are started by hand: start one for the profile (" + to_string(shape.profile) +
                ")"};
  }
  std::uint32_t room_for(const executor_shape&) override { return 0; }
};

/// How long the end of an executor that is out of reach is waited for. Its keeper ends with it, after all that its
/// commands have left.
constexpr duration exit_wait = std::chrono::seconds{2};
/// Between looks at the backend while somebody waits for one.
constexpr duration next_look = std::chrono::milliseconds{5};

using allocator_pointer = stateful_pointer<local_allocator_actor, struct allocator_state>;

struct allocator_state {
  static constexpr const char* name = "troupe.allocator";
  allocator_config config;
  std::unique_ptr<allocation_policy> policy;
  std::unique_ptr<gate> admitted;
  std::shared_ptr<spdlog::logger> log;
  std::uint64_t surprises = 0;
  bool stopping = false;
  std::vector<caf::typed_response_promise<boxed<acknowledged>>> stop_promises;
  struct exit_question {
    request_id request;
    time_point since{};
    caf::typed_response_promise<boxed<exit_answer>> promise;
  };
  exit_book exits;
  std::vector<exit_question> exit_questions;
  std::uint32_t ticks_due = 0; ///< on their way

  /// Answers as they are when the effects so far have been carried out: they are, before the backend is asked.
  allocation_policy::room_function room_after(allocator_pointer self, effects::allocation_list& out) {
    return [this, self, &out](const executor_shape& shape) {
      dispatch(self, out);
      return config.backend->room_for(shape);
    };
  }
  allocation_policy::way_function way_after(allocator_pointer self, effects::allocation_list& out) {
    return [this, self, &out](const way_question& question) {
      dispatch(self, out);
      return config.backend->who_makes_way(question);
    };
  }

  void dispatch(allocator_pointer self, effects::allocation_list& out);
  void tick_passed(allocator_pointer self);
  void tick_in(allocator_pointer self, duration delay);
  void answer_about_exits(time_point now);
};

void allocator_state::dispatch(allocator_pointer self, effects::allocation_list& out) {
  event_batch facts;
  launch_report failures;
  for (auto& effect : out) {
    if (auto* c = std::get_if<effects::converge>(&effect)) {
      config.backend->converge(c->wanted);
    } else if (auto* a = std::get_if<effects::ask_release>(&effect)) {
      const auto executor = a->executor;
      ask(self, config.scheduler, config.request_timeout, box(release_request{executor}))
          .then(
              [this, self](const boxed<release_answer>& answer) {
                log->info("release executor={} granted={} serving={} {}", answer->executor.value, answer->granted,
                          answer->serving, answer->reason);
                effects::allocation_list more;
                policy->on_release_answer(answer->executor, answer->granted, answer->serving, more);
                dispatch(self, more);
              },
              [this, self, executor](const caf::error& why) {
                log->warn("release executor={} failed: {}", executor.value, describe(self->system(), why));
                effects::allocation_list more;
                policy->on_release_answer(executor, false, false, more);
                dispatch(self, more);
              });
    } else if (auto* f = std::get_if<effects::report_launch_failure>(&effect)) {
      log->warn("launch-failed request={} shape={} {}", f->status.request.value, f->status.shape.value,
                f->status.detail);
      failures.statuses.push_back(std::move(f->status));
    } else if (auto* s = std::get_if<effects::report_shapes>(&effect)) {
      tell(self, config.scheduler, box(allocation_report{std::move(s->shapes)}));
    } else if (auto* r = std::get_if<effects::announce_request>(&effect)) {
      log->info("executor-requested request={} shape={}", r->request.value, r->shape.shape.value);
      facts.records.push_back(
          {0, 0, events::executor_requested{r->request, r->shape.shape, to_string(r->shape.profile)}});
    }
  }
  out.clear();
  if (!failures.statuses.empty()) tell(self, config.scheduler, box(std::move(failures)));
  if (!facts.records.empty()) tell(self, config.scheduler, box(std::move(facts)));
}

void allocator_state::tick_passed(allocator_pointer self) {
  const auto statuses = config.backend->snapshot();
  exits.on_snapshot(statuses);
  answer_about_exits(now_of(self));
  if (stopping) {
    const bool over = std::all_of(statuses.begin(), statuses.end(), [](const launch_status& s) {
      return s.state == launch_state::gone || s.state == launch_state::refused;
    });
    if (over) {
      for (auto& promise : stop_promises) promise.deliver(box(acknowledged{}));
      stop_promises.clear();
    }
    return;
  }
  effects::allocation_list out;
  policy->on_snapshot(statuses, now_of(self), out);
  dispatch(self, out);
}

void allocator_state::answer_about_exits(time_point now) {
  std::erase_if(exit_questions, [&](exit_question& q) {
    const auto exit = exits.find(q.request);
    if (!exit && now - q.since < exit_wait) return false;
    if (exit) log->info("executor-exit request={} {}", q.request.value, to_string(*exit));
    q.promise.deliver(box(exit_answer{q.request, exit.value_or(executor_exit{})}));
    return true;
  });
}

void allocator_state::tick_in(allocator_pointer self, duration delay) {
  ++ticks_due;
  tell_after(self, local_allocator_actor{self}, delay, tick{});
}

local_allocator_actor::behavior_type allocator_behavior(allocator_pointer self, allocator_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  state.log = state.config.loggers("allocator");
  state.policy = std::make_unique<allocation_policy>(state.config.policy);
  state.admitted = std::make_unique<gate>(self->node());
  state.admitted->admit(state.config.driver_node);
  harden(self, logging_hooks(state.log, &state.surprises));
  effects::allocation_list out;
  state.policy->on_start(now_of(self), state.room_after(self, out), out);
  state.dispatch(self, out);
  state.tick_in(self, state.config.tick_interval);
  return {
      [self](const boxed<load_report>& report) {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, report) || s.stopping) return;
        effects::allocation_list more;
        s.policy->on_load(*report, now_of(self), s.room_after(self, more), s.way_after(self, more), more);
        s.dispatch(self, more);
      },
      [self](const boxed<feasibility_query>& query) -> caf::result<boxed<feasibility_answer>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, query))
          return to_caf_error(make_error(ec::unauthenticated, "say hello to the driver first"));
        feasibility_answer answer;
        for (const auto& shape : query->shapes)
          answer.answers.push_back(s.policy->check(shape, [&] { return s.config.backend->check(shape); }));
        return box(std::move(answer));
      },
      [self](const boxed<exit_query>& query) -> caf::result<boxed<exit_answer>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, query))
          return to_caf_error(make_error(ec::unauthenticated, "say hello to the driver first"));
        auto promise = self->make_response_promise<boxed<exit_answer>>();
        s.exit_questions.push_back({query->request, now_of(self), promise});
        s.tick_passed(self);
        // Beside the one that is due in any case.
        if (!s.exit_questions.empty() && s.ticks_due < 2) s.tick_in(self, next_look);
        return promise;
      },
      [self](const boxed<stop_session>& stop) -> caf::result<boxed<acknowledged>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, stop))
          return to_caf_error(make_error(ec::unauthenticated, "say hello to the driver first"));
        s.log->info("stop reason=\"{}\"", stop->reason);
        s.stopping = true;
        s.config.backend->converge({});
        auto promise = self->make_response_promise<boxed<acknowledged>>();
        s.stop_promises.push_back(promise);
        ++s.ticks_due;
        tell(self, local_allocator_actor{self}, tick{});
        return promise;
      },
      [self](tick) {
        auto& s = state_of(self);
        s.tick_passed(self);
        --s.ticks_due;
        const bool hurry = s.stopping || !s.exit_questions.empty();
        if (s.stopping && s.stop_promises.empty() && s.exit_questions.empty()) return;
        if (s.ticks_due == 0 || (hurry && s.ticks_due < 2)) s.tick_in(self, hurry ? next_look : s.config.tick_interval);
      },
  };
}

} // namespace

local_allocator_actor spawn_allocator(caf::actor_system& system, allocator_config config) {
  return system.spawn(allocator_behavior, std::move(config));
}

std::shared_ptr<executor_backend> make_manual_backend() { return std::make_shared<manual_backend>(); }

} // namespace troupe
