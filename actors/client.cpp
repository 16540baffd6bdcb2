#include <troupe/actors/client.hpp>

#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>

namespace troupe {
namespace {

struct client_state {
  static constexpr const char* name = "troupe.client";
  client_config config;
  std::unique_ptr<gate> admitted;
  std::uint64_t surprises = 0;
};

void answered(stateful_pointer<local_client_actor, client_state> self, const boxed<job_submission>& submission,
              const result<job_id>& job) {
  const auto& c = state_of(self).config;
  const bool wanted = !c.on_answer || c.on_answer(submission, job);
  if (wanted || !job) return;
  ask_untimed(self, c.driver, box(cancel_job{*job, "its submitter stopped waiting"}))
      .then([](const boxed<acknowledged>&) {}, [](const caf::error&) {});
  tell(self, c.driver, box(release_results{*job})); // it may have succeeded meanwhile
}

local_client_actor::behavior_type client_behavior(stateful_pointer<local_client_actor, client_state> self,
                                                  client_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  state.admitted = std::make_unique<gate>(self->node());
  auto hooks = logging_hooks(state.config.loggers("client"), &state.surprises);
  hooks.on_down = [self](const caf::actor_addr& who, const caf::error&) {
    const auto& c = state_of(self).config;
    if (c.driver && c.driver.address() == who && c.on_driver_gone) c.on_driver_gone();
  };
  harden(self, hooks);
  if (state.config.driver) {
    state.admitted->admit(state.config.driver.node());
    watch(self, state.config.driver);
  }
  return {
      [self](const local_message<job_submission>& given) {
        auto& s = state_of(self);
        if (!s.config.driver) return;
        const auto submission = box(given.shared());
        // Who waits for the answer has a clock of its own.
        ask_untimed(self, s.config.driver, submission, client_actor{local_client_actor{self}})
            .then(
                [self, submission](const boxed<job_accepted>& a) {
                  if (state_of(self).admitted->passes(self, a)) answered(self, submission, a->job);
                },
                [self, submission](const caf::error& why) {
                  answered(self, submission, from_caf_error(self->system(), why));
                });
      },
      [self](const boxed<job_progress>& progress) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, progress) && s.config.on_progress) s.config.on_progress(progress);
      },
      [self](const boxed<job_end>& end) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, end) && s.config.on_end) s.config.on_end(end);
      },
      [self](const boxed<event_batch>& batch) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, batch) && s.config.on_events) s.config.on_events(batch);
      },
      [self](const boxed<subscription_cut_off>& end) {
        auto& s = state_of(self);
        if (s.admitted->passes(self, end) && s.config.on_cut_off) s.config.on_cut_off(end);
      },
  };
}

} // namespace

local_client_actor spawn_client(caf::actor_system& system, client_config config) {
  return system.spawn(client_behavior, std::move(config));
}

} // namespace troupe
