#include <troupe/tests/actors/fakes.hpp>

#include <stdexcept>

namespace troupe::actor_tests {

driver_config plain_driver(std::shared_ptr<const session_secret> secret) {
  driver_config config;
  config.cluster_id = cluster_name;
  config.session_id = "session-of-tests";
  config.secret = std::move(secret);
  config.defaults = testing::default_test_profile();
  config.heartbeat_interval = 1s;
  config.heartbeat_timeout = 10s;
  return config;
}

driver_config patient_driver(std::shared_ptr<const session_secret> secret) {
  auto config = plain_driver(std::move(secret));
  config.heartbeat_timeout = 24h;
  return config;
}

executor_actor spawn_listening_executor(testing::virtual_system& world, std::shared_ptr<heard_by_executor> heard) {
  const auto behavior = [heard](stateful_pointer<executor_actor, no_state> self) -> executor_actor::behavior_type {
    harden(self, {});
    return {
        [heard](const boxed<executor_orders>& orders) { heard->orders.push_back(orders); },
        [heard](const boxed<driver_heartbeat>& beat) { heard->heartbeats.push_back(beat); },
        [heard](const boxed<stop_session>&) {
          ++heard->stops;
          return box(acknowledged{});
        },
    };
  };
  return world.end_with_system(world.system().spawn(behavior));
}

std::vector<std::uint64_t> heard_by_client::event_numbers() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& batch : events)
    for (const auto& record : batch->records) numbers.push_back(record.number);
  return numbers;
}

client_actor spawn_listening_client(testing::virtual_system& world, std::shared_ptr<heard_by_client> heard) {
  const auto behavior = [heard](stateful_pointer<client_actor, no_state> self) -> client_actor::behavior_type {
    harden(self, {});
    return {
        [heard](const boxed<job_progress>& progress) { heard->progress.push_back(progress); },
        [heard](const boxed<job_end>& end) { heard->ends.push_back(end); },
        [heard](const boxed<event_batch>& batch) { heard->events.push_back(batch); },
        [heard](const boxed<subscription_cut_off>& end) { heard->cut_off.push_back(end); },
    };
  };
  return world.end_with_system(world.system().spawn(behavior));
}

introduced introduce(testing::virtual_system& world, const driver_actor& driver, peer_role role,
                     const session_secret& secret, const std::string& cluster) {
  introduced out;
  const hello_opening opening{role, cluster};
  out.failed = world.request(
      driver,
      [&](const boxed<hello_challenge>& challenge) {
        // A peer with the wrong secret sees at once that the driver's differs; it answers all the same here.
        const auto proof = opening.answer(*challenge, secret);
        out.proof =
            proof ? *proof
                  : hello_proof{opening.message().client_nonce, challenge->server_nonce, std::string(proof_size, 'x')};
      },
      box(opening.message()));
  return out;
}

admission register_executor(testing::virtual_system& world, const driver_actor& driver, const hello_proof& proof,
                            const executor_info& info, const executor_actor& executor, const std::string& session) {
  admission out;
  executor_registration registration;
  registration.proof = proof;
  registration.info = info;
  registration.session_id = session;
  out.failed = world.request(
      driver,
      [&](const boxed<welcome>& answer, const dag_scheduler_actor& scheduler) {
        out.id = answer->executor;
        out.scheduler = scheduler;
      },
      box(std::move(registration)), executor);
  return out;
}

admission admit_executor(testing::virtual_system& world, const driver_actor& driver, const session_secret& secret,
                         const executor_info& info, const executor_actor& executor) {
  const auto hello = introduce(world, driver, peer_role::executor, secret);
  if (hello.failed) return {hello.failed, {}, {}};
  return register_executor(world, driver, hello.proof, info, executor);
}

cluster_status status_of(testing::virtual_system& world, const driver_actor& driver) {
  cluster_status out;
  const auto failed = world.request(
      driver, [&](const boxed<cluster_status>& answer) { out = *answer; }, box(status_query{}));
  if (failed) throw std::runtime_error(failed.message);
  return out;
}

} // namespace troupe::actor_tests
