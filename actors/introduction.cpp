#include <troupe/actors/introduction.hpp>

#include <optional>

#include <caf/scoped_actor.hpp>

#include <troupe/actors/client.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/runtime/transfer/local_address.hpp>

#include <unistd.h>

namespace troupe {

result<introduction> introduce(caf::actor_system& system, const driver_actor& driver, peer_role role,
                               const session_secret& secret, duration timeout) {
  const hello_opening opening{role, ""};
  caf::scoped_actor self{system};
  error failed;
  std::optional<hello_proof> surrendered;
  introduction out;
  ask(self, driver, timeout, box(opening.message()))
      .receive(
          [&](const boxed<hello_challenge>& challenge) {
            auto answer = opening.answer(*challenge, secret);
            if (!answer) {
              failed = answer.error();
              if (failed.code == ec::unauthenticated) surrendered = opening.surrender(*challenge);
              return;
            }
            out = {challenge->cluster_id, challenge->session_id, std::move(*answer)};
          },
          [&](const caf::error& why) { failed = from_caf_error(system, why); });
  if (surrendered) {
    const client_actor nobody = spawn_client(system, {});
    peer_registration registration;
    registration.proof = *surrendered;
    registration.role = role;
    registration.name = this_process();
    ask(self, driver, timeout, box(std::move(registration)), nobody)
        .receive([](const boxed<welcome>&) {}, [](const caf::error&) {});
    shut_down(nobody);
  }
  if (failed) return failed;
  return out;
}

std::string this_process() { return this_host() + ":" + std::to_string(getpid()); }

} // namespace troupe
