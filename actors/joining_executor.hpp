#pragma once

/// An executor that is an actor of an application's own system and works for the driver of another process: one that
/// `embedded_options::listen` has made reachable, or one that was started from a configuration.
///
///     auto executor = troupe::spawn_joining_executor(system, {"127.0.0.1", 7337}, secret_file, profile, folder);
///     …
///     troupe::shut_down(*executor); // it says goodbye, and its tasks run elsewhere
///
/// No process is started, no signal handled, nothing printed; one port is opened, at which others read its blocks.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>

#include <troupe/actors/common.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/execution/command_terms.hpp>
#include <troupe/runtime/resources/memory_split.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/page.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

struct joining_options {
  /// Addresses of the profile's resources, by name, as many as it asks for. Numbered from 0 where a name is missing.
  std::map<std::string, std::vector<std::string>> addresses;
  /// At which others read its blocks; that of all interfaces stands for the one that leads to the driver. Beyond
  /// loopback the traffic is not encrypted, so that has to be allowed by `insecure`, as has a driver elsewhere.
  std::string bind_address = "127.0.0.1";
  bool insecure = false;
  duration request_timeout = std::chrono::seconds{10}; ///< of the driver's answers
  duration driver_timeout = std::chrono::seconds{6};   ///< see `troupe.executor.driver-timeout`
  duration abandon_timeout = std::chrono::seconds{60}; ///< see `troupe.executor.abandon-timeout`
  duration kill_grace = std::chrono::seconds{10};      ///< see embedded_options
  duration shutdown_grace = std::chrono::seconds{1};   ///< see embedded_options
  memory_split memory;                                 ///< blocks beyond it go to files
  page_compression compression;                        ///< of map outputs and large results
  std::uint64_t max_inline_result = 1ull << 20;        ///< bytes; a larger result stays here until it is read
  command_terms commands;                              ///< what commands are allowed and told
  logger_source loggers = silent_loggers();
  /// Called once, in the executor, when the driver has taken it.
  std::function<void(executor_id)> on_admitted = {};
  /// Called once, in the executor, when nothing of it runs any more or is left in its folder, but for a native task
  /// that does not end: ec::none after an orderly end, else why it has ended, such as a driver that is out of reach.
  std::function<void(const error& why)> on_end = {};
};

/// Spawns an executor with what `profile` asks of one (what it does not name is as in `embedded_options`) and has it
/// join the driver. The calling thread waits for the driver's first answer, so this is not for actors. `directory` is
/// an existing folder for blocks and the attempts of commands, absolute; nothing of the executor is left in it when it
/// has ended. `system` has been prepared, has loaded CAF's middleman and outlives the executor, which lives until it is
/// told to end by `shut_down`, or the driver ends. Errors: ec::invalid_argument for what is not as described,
/// ec::invalid_configuration for the secret file, ec::unreachable, ec::unauthenticated for another secret.
result<executor_actor> spawn_joining_executor(caf::actor_system& system, const endpoint& driver,
                                              const std::string& secret_file, const resource_profile& profile,
                                              const std::string& directory, joining_options options = {});

} // namespace troupe
