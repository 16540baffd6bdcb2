#include <troupe/actors/resource_profile_manager.hpp>

#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>

namespace troupe {
namespace {

struct manager_state {
  static constexpr const char* name = "troupe.resource-profile-manager";
  manager_state() = default;
  std::unique_ptr<profile_registry> registry;
  std::unique_ptr<gate> admitted;
  std::shared_ptr<spdlog::logger> log;
  std::uint64_t surprises = 0;

  caf::result<boxed<registered_profiles>> add(const register_profiles& wanted) {
    registered_profiles answer;
    for (const auto& profile : wanted.profiles) {
      if (profile == resource_profile{}) {
        const auto* defaults = registry->find(default_profile_id);
        answer.profiles.push_back({defaults->profile, defaults->shape, defaults->content});
        continue;
      }
      auto done = registry->register_profile(profile);
      if (!done) return to_caf_error(done.error());
      if (done->is_new) {
        log->info("profile-added profile={} shape={} content=\"{}\"", done->profile.value, done->shape.value,
                  to_string(done->content));
        for (const auto& note : done->notes) log->warn("profile-note profile={} {}", done->profile.value, note);
      }
      answer.profiles.push_back({done->profile, done->shape, std::move(done->content)});
    }
    return box(std::move(answer));
  }
};

resource_profile_manager_actor::behavior_type
behavior(stateful_pointer<resource_profile_manager_actor, manager_state> self, resource_profile_manager_config config) {
  auto& state = state_of(self);
  state.log = config.loggers("resource-profile-manager");
  state.registry = std::make_unique<profile_registry>(std::move(config.defaults), config.overhead);
  state.admitted = std::make_unique<gate>(self->node());
  state.admitted->admit(config.driver_node);
  harden(self, logging_hooks(state.log, &state.surprises));
  return {
      [self](const boxed<register_profiles>& wanted) -> caf::result<boxed<registered_profiles>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self))
          return to_caf_error(make_error(ec::unauthenticated, "say hello to the driver first"));
        return s.add(*wanted);
      },
  };
}

} // namespace

resource_profile_manager_actor spawn_resource_profile_manager(caf::actor_system& system,
                                                              resource_profile_manager_config config) {
  return system.spawn(behavior, std::move(config));
}

} // namespace troupe
