#include <troupe/launcher/services.hpp>

#include <optional>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/hello.hpp>
#include <troupe/messages/type_ids.hpp>

namespace troupe {

result<running_services> start_services(caf::actor_system& system, services_options opts) {
  caf::scoped_actor self{system};
  std::optional<error> failed;
  const auto fail = [&](const caf::error& why) {
    if (!failed) failed = from_caf_error(system, why);
  };
  const hello_opening opening{peer_role::services, opts.cluster_id};
  std::optional<hello_proof> proof;
  ask(self, opts.driver, opts.request_timeout, box(opening.message()))
      .receive(
          [&](const boxed<hello_challenge>& challenge) {
            auto answer = opening.answer(*challenge, *opts.secret);
            if (answer)
              proof = std::move(*answer);
            else
              failed = answer.error();
          },
          fail);
  if (!proof) return *failed;
  peer_registration registration;
  registration.proof = *proof;
  registration.role = peer_role::services;
  registration.name = opts.name;
  dag_scheduler_actor scheduler;
  ask(self, opts.driver, opts.request_timeout, box(std::move(registration)))
      .receive([&](const boxed<welcome>&, const dag_scheduler_actor& to) { scheduler = to; }, fail);
  if (failed) return *failed;

  resource_profile_manager_config manager;
  manager.defaults = std::move(opts.defaults);
  manager.rules = opts.rules;
  manager.overhead = opts.overhead;
  manager.loggers = opts.loggers;
  manager.driver_node = opts.driver.node();
  allocator_config allocation;
  allocation.policy = std::move(opts.allocation);
  allocation.backend = std::move(opts.backend);
  allocation.scheduler = scheduler;
  allocation.loggers = opts.loggers;
  allocation.driver_node = opts.driver.node();
  allocation.request_timeout = opts.request_timeout;
  running_services out{spawn_allocator(system, std::move(allocation)),
                       spawn_resource_profile_manager(system, std::move(manager))};
  ask(self, opts.driver, opts.request_timeout, out.allocator, out.profiles)
      .receive([](const boxed<acknowledged>&) {}, fail);
  if (!failed) return out;
  shut_down(out.allocator);
  shut_down(out.profiles);
  return *failed;
}

} // namespace troupe
