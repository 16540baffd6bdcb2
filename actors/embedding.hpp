#pragma once

/// Troupe inside an application that has an actor system of its own: a driver and executors that are actors of it. No
/// process is started, no port opened unless it is asked for (`listen`), no signal handled, nothing printed.
///
///     class my_config : public caf::actor_system_config { my_config() { troupe::prepare(*this); … } };
///     …
///     troupe::embedded_options options;
///     options.directory = folder;
///     auto troupe = troupe::spawn_embedded(system, options);   // a driver with two executors
///     ask(self, troupe->driver, timeout, box(job_submission{job, {}}), client);   // from any actor of the application
///     …
///     ask(self, troupe->driver, timeout, box(stop_session{"done"}));   // jobs cancelled, executors gone
///     troupe::shut_down(troupe->driver);   // the rest ends with the driver
///
/// Several may live in one system. Native tasks run on threads of their executors, never on CAF's.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/actors/driver.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/allocation/allocation_policy.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/execution/command_terms.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/resources/memory_split.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/page.hpp>
#include <troupe/runtime/transfer/block_client.hpp>

namespace troupe {

/// Announces Troupe's message types in an application's own configuration, before its actor system is made. Sets
/// nothing else: what suits task execution (`scheduler.policy = sharing`, `scheduler.max-throughput = 100`) is advice.
void prepare(caf::actor_system_config& config);

/// Where executors of other processes find a driver (see spawn_joining_executor). The actor system must have loaded
/// CAF's middleman, whose port it is: who reaches it can send messages to the application's own actors, too.
struct embedded_door {
  /// An address of this machine. Beyond loopback the traffic is not encrypted, so that has to be allowed by `insecure`.
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;      ///< 0: any free one
  std::uint16_t last_port = 0; ///< of a range that begins with `port` and is tried in turn; 0: there is no range
  /// Who can read it may join, and run what the user of this process may. Made where it is missing, with mode 0600.
  std::string secret_file;
  bool insecure = false;
};

struct embedded_options {
  /// An existing folder for spilled blocks and the attempts of commands, absolute and of no other driver. It is empty
  /// again when all executors are gone; removing it is the application's.
  std::string directory;
  /// What an executor has and a task takes where a job says nothing: complete, valid.
  resource_profile defaults = default_embedded_profile();
  /// Executors that are always there: profiles and how many of each. None: they start when tasks wait.
  std::vector<std::pair<resource_profile, std::uint32_t>> executors = {{default_embedded_profile(), 2}};
  /// What all executors are carved out of. None: one host with exactly what `executors` take.
  std::vector<carving_host> hosts;
  dag_scheduler::options scheduler;
  allocation_policy::options allocation;        ///< without `fixed`
  memory_split memory;                          ///< of each executor; blocks beyond it go to files
  page_compression compression;                 ///< of map outputs and large results
  std::uint64_t max_inline_result = 1ull << 20; ///< bytes; a larger result is announced and read by `fetch_result`
  /// That a cancelled attempt has to end: a command is killed then, a native task is logged, and its slot is lost until
  /// it ends.
  duration kill_grace = std::chrono::seconds{10};
  /// That tasks have to end when their executor does. A native task that takes longer is logged; it cannot be killed,
  /// so its executor, and with it the destructor of the actor system, waits for it.
  duration shutdown_grace = std::chrono::seconds{1};
  command_terms commands;              ///< what commands are allowed and told
  std::optional<embedded_door> listen; ///< none: nothing listens, and all executors are of this process
  logger_source loggers = silent_loggers();

  /// One core and 1 GiB, a task taking one cpu.
  static resource_profile default_embedded_profile();
};

/// A driver of the application's own actor system. Copies name the same one.
struct embedded_cluster {
  driver_actor driver;
  /// Reads results that stayed on their executor; valid until the executors are gone.
  std::shared_ptr<block_client> blocks;
  std::string cluster_id;
  endpoint address; ///< at which it listens; without a host where it does not
};

/// Spawns a driver and what it needs; executors join it soon after, jobs that come earlier wait for them. `system` has
/// been prepared and outlives all of it. Refused with ec::invalid_argument where an option is not as described, and
/// where it is to listen with ec::invalid_configuration for a port or a secret file that cannot be had.
result<embedded_cluster> spawn_embedded(caf::actor_system& system, embedded_options options);

/// A result that stayed on its executor; the calling thread waits for it.
result<std::string> fetch_result(const embedded_cluster& from, const result_location& where);

} // namespace troupe
