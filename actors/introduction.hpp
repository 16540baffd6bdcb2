#pragma once

/// A peer's half of the hello, for a thread that waits for the answer.

#include <string>

#include <caf/actor_system.hpp>

#include <troupe/actors/hello.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// What a driver proved to be, and how to prove oneself in return.
struct introduction {
  std::string cluster_id;
  std::string session_id;
  hello_proof proof; ///< good for one registration
};

/// Says hello and checks the driver's proof. Blocks the calling thread for at most `timeout`. Errors: nobody answers,
/// another version, another secret.
result<introduction> introduce(caf::actor_system& system, const driver_actor& driver, peer_role role,
                               const session_secret& secret, duration timeout);

/// Host and process id, by which peers are told apart.
std::string this_process();

} // namespace troupe
