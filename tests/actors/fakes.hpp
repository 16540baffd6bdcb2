#pragma once

/// What stands around the actor under test: peers that keep what they hear and answer as they are told.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <troupe/actors/driver.hpp>
#include <troupe/actors/hello.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/tests/support/builders.hpp>
#include <troupe/tests/support/caf_test_system.hpp>
#include <troupe/tests/support/fake_executor.hpp>

namespace troupe::actor_tests {

using namespace std::chrono_literals;

inline constexpr const char* cluster_name = "cluster-of-tests";

/// A driver's configuration whose executors are started by hand: a beat per second, lost after ten.
driver_config plain_driver(std::shared_ptr<const session_secret> secret);
/// The same for a driver whose time passes by itself: it gives up nobody who is silent, as the executors of a test are.
driver_config patient_driver(std::shared_ptr<const session_secret> secret);

/// A peer that keeps what it hears elsewhere.
struct no_state {
  static constexpr const char* name = "troupe.test-peer";
};

/// What a peer of the driver heard.
struct heard_by_executor {
  std::vector<boxed<executor_orders>> orders;
  std::vector<boxed<driver_heartbeat>> heartbeats;
  std::uint32_t stops = 0;
};
executor_actor spawn_listening_executor(testing::virtual_system& world, std::shared_ptr<heard_by_executor> heard);

struct heard_by_client {
  std::vector<boxed<job_progress>> progress;
  std::vector<boxed<job_end>> ends;
  std::vector<boxed<event_batch>> events;
  std::vector<boxed<subscription_cut_off>> cut_off;

  std::vector<std::uint64_t> event_numbers() const;
};
client_actor spawn_listening_client(testing::virtual_system& world, std::shared_ptr<heard_by_client> heard);

/// Both halves of the hello, step by step.
struct introduced {
  error failed;
  hello_proof proof;
};
/// Says hello; the proof is good for one registration.
introduced introduce(testing::virtual_system& world, const driver_actor& driver, peer_role role,
                     const session_secret& secret, const std::string& cluster = cluster_name);

/// What the driver answers to a registration.
struct admission {
  error failed;
  executor_id id;
  dag_scheduler_actor scheduler;
};
admission register_executor(testing::virtual_system& world, const driver_actor& driver, const hello_proof& proof,
                            const executor_info& info, const executor_actor& executor, const std::string& session = {});
/// Hello and registration in one.
admission admit_executor(testing::virtual_system& world, const driver_actor& driver, const session_secret& secret,
                         const executor_info& info, const executor_actor& executor);

/// The driver's view. An error of the request fails by throwing.
cluster_status status_of(testing::virtual_system& world, const driver_actor& driver);

} // namespace troupe::actor_tests
