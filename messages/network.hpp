#pragma once

/// Publishing the front door and connecting to one. Spelled alike in CAF 0.17 and 1.x; here so that failures become
/// `troupe::error` and the middleman's heavy header is included only where it is needed.

#include <cstdint>
#include <string>

#include <caf/io/middleman.hpp>

#include <troupe/messages/caf_compat.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Makes `whom` reachable at `port` (0: any free one) of the local `address`, which is never left out: CAF would bind
/// all interfaces. Gives the port. The system must have loaded the middleman.
template <class Handle>
result<std::uint16_t> publish(caf::actor_system& system, const Handle& whom, std::uint16_t port,
                              const std::string& address) {
  auto bound = system.middleman().publish(whom, port, address.c_str(), true);
  if (!bound)
    return make_error(ec::io, "cannot listen at " + address + ":" + std::to_string(port) + ": " +
                                  describe(system, bound.error()));
  return *bound;
}

/// Connects to the actor that is published at `host:port`. Blocks the calling thread, so never from a pooled actor.
/// Success proves nothing about the peer: say hello next. An actor with another interface is ec::version_mismatch.
template <class Handle>
result<Handle> connect(caf::actor_system& system, const std::string& host, std::uint16_t port) {
  auto found = system.middleman().template remote_actor<Handle>(host, port);
  if (found) return *std::move(found);
  auto why = from_caf_error(system, found.error());
  const auto code = why.code == ec::version_mismatch ? ec::version_mismatch : ec::unreachable;
  if (found.error() == caf::sec::cannot_connect_to_node) // CAF's own words are its call and its arguments
    why.message = "nobody listens there; is the driver running?";
  return make_error(code, "cannot connect to " + host + ":" + std::to_string(port) + ": " + std::move(why.message));
}

} // namespace troupe
