#include <troupe/actors/resource_profile_manager.hpp>

#include <troupe/messages/gate.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/resources/exact_rules.hpp>
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

  void write_notes(const profile_registration& done) {
    for (const auto& note : done.notes) log->warn("profile-note profile={} {}", done.profile.value, note);
  }

  void write_down(const profile_registration& done) {
    for (const auto& alternative : done.alternatives) write_down(alternative);
    if (!done.is_new) return;
    log->info("profile-added profile={} shape={} content=\"{}\"", done.profile.value, done.shape.value,
              registry->rules().is_exact() ? exact::to_string(done.content, done.profile) : to_string(done.content));
    write_notes(done);
  }

  caf::result<boxed<registered_profiles>> add(const register_profiles& wanted) {
    registered_profiles answer;
    std::vector<profile_registration> known;
    for (const auto& profile : wanted.profiles) {
      auto done = registry->register_profile(profile, wanted.submitter);
      if (!done) return to_caf_error(done.error());
      write_down(*done);
      answer.profiles.push_back(resolved(*done));
      known.push_back(*std::move(done));
    }
    for (const auto& meeting : wanted.meetings) {
      std::vector<profile_use> uses;
      for (const auto& carried : meeting) {
        if (carried.profile >= wanted.profiles.size())
          return to_caf_error(make_error(ec::invalid_argument, "a stage carries a profile that the job lacks"));
        uses.push_back({known[carried.profile], carried.dataset});
      }
      if (uses.empty()) return to_caf_error(make_error(ec::invalid_argument, "no profile meets in a stage"));
      auto done = registry->profile_of_stage(uses, wanted.on_profile_change);
      if (!done) return to_caf_error(done.error());
      write_down(*done);
      answer.profiles.push_back(resolved(*done));
    }
    return box(std::move(answer));
  }
};

resource_profile_manager_actor::behavior_type
resource_profile_manager_behavior(stateful_pointer<resource_profile_manager_actor, manager_state> self,
                                  resource_profile_manager_config config) {
  auto& state = state_of(self);
  state.log = config.loggers("resource-profile-manager");
  state.registry = std::make_unique<profile_registry>(std::move(config.defaults), config.rules, config.overhead);
  // The default profile is there from the beginning, so nobody else hears what is noted of it (spec SL-10).
  if (const auto defaults = state.registry->register_profile({})) state.write_notes(*defaults);
  state.admitted = std::make_unique<gate>(self->node());
  state.admitted->admit(config.driver_node);
  harden(self, logging_hooks(state.log, &state.surprises));
  return {
      [self](const boxed<register_profiles>& wanted) -> caf::result<boxed<registered_profiles>> {
        auto& s = state_of(self);
        if (!s.admitted->passes(self, wanted))
          return to_caf_error(make_error(ec::unauthenticated, "say hello to the driver first"));
        return s.add(*wanted);
      },
  };
}

} // namespace

resource_profile_manager_actor spawn_resource_profile_manager(caf::actor_system& system,
                                                              resource_profile_manager_config config) {
  return system.spawn(resource_profile_manager_behavior, std::move(config));
}

} // namespace troupe
