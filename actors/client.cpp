#include <troupe/actors/client.hpp>

#include <troupe/messages/type_ids.hpp>

namespace troupe {
namespace {

struct client_state {
  static constexpr const char* name = "troupe.client";
  client_config config;
  std::uint64_t surprises = 0;
};

client_actor::behavior_type behavior(stateful_pointer<client_actor, client_state> self, client_config config) {
  auto& state = state_of(self);
  state.config = std::move(config);
  harden(self, logging_hooks(state.config.loggers("client"), &state.surprises));
  return {
      [self](const boxed<job_progress>& progress) {
        if (auto& call = state_of(self).config.on_progress) call(progress);
      },
      [self](const boxed<job_end>& end) {
        if (auto& call = state_of(self).config.on_end) call(end);
      },
      [self](const boxed<event_batch>& batch) {
        if (auto& call = state_of(self).config.on_events) call(batch);
      },
  };
}

} // namespace

client_actor spawn_client(caf::actor_system& system, client_config config) {
  return system.spawn(behavior, std::move(config));
}

} // namespace troupe
