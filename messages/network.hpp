#pragma once

/// Publishing the front door and connecting to one. Here so that failures become `troupe::error` and the middleman's
/// heavy header is included only where it is needed.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <caf/io/middleman.hpp>

#include <troupe/messages/caf_compat.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

namespace detail {

/// Has CAF close the port when the actor has ended: it would stay open as long as the actor system.
void close_at_end(caf::actor_system& system, const caf::strong_actor_ptr& whom, std::uint16_t port);

/// Waits until the middleman listens at the ports that it has given so far. CAF 0.17 answers a publication before it
/// does; a port that is closed until then, with its actor or with the actor system, stays as a descriptor of the
/// process, since CAF takes the two for nothing to do. Blocks for as long as the middleman's thread takes to get there.
void await_listening(caf::actor_system& system);

/// Why CAF cannot listen there, which it does not tell: what the system says to who tries.
error not_bound(const std::string& address, std::uint16_t port, const std::string& what);

} // namespace detail

/// Makes `whom` reachable at `port` (0: any free one) of the local `address`, which is never left out: CAF would bind
/// all interfaces. Gives the port, which is closed when the actor has ended. The system must have loaded the middleman.
/// Error invalid_configuration: another port or address has to be chosen.
template <class Handle>
result<std::uint16_t> publish(caf::actor_system& system, const Handle& whom, std::uint16_t port,
                              const std::string& address) {
  auto bound = system.middleman().publish(whom, port, address.c_str(), true);
  if (!bound) return detail::not_bound(address, port, describe(system, bound.error()));
  detail::await_listening(system);
  detail::close_at_end(system, caf::actor_cast<caf::strong_actor_ptr>(whom), *bound);
  return *bound;
}

namespace detail {

/// Has the middleman shake hands with the node at `host:port`. @returns the address by which it knows the node
result<std::string> reach(caf::actor_system& system, const std::string& host, std::uint16_t port, duration patience,
                          const std::function<bool()>& stop);

/// Why there is no connection to `host:port`, in Troupe's words.
error not_connected(caf::actor_system& system, const std::string& host, std::uint16_t port, const caf::error& what,
                    duration patience);

} // namespace detail

/// Connects to the actor that is published at `host:port`. Blocks the calling thread, so never from a pooled actor: for
/// `patience` (`troupe.driver.request-timeout`) at most where somebody listens and does not answer, such as a process
/// that is stopped; where nobody listens it fails at once. Success proves nothing about the peer: say hello next. An
/// actor with another interface is ec::version_mismatch, all else ec::unreachable.
template <class Handle>
result<Handle> connect(
    caf::actor_system& system, const std::string& host, std::uint16_t port,
    duration patience = std::chrono::seconds{10}, const std::function<bool()>& stop = [] { return false; }) {
  const auto address = detail::reach(system, host, port, patience, stop);
  if (!address) return address.error();
  // The middleman knows it by now, so this does not wait.
  auto found = system.middleman().template remote_actor<Handle>(*address, port);
  if (found) return *std::move(found);
  return detail::not_connected(system, host, port, found.error(), patience);
}

} // namespace troupe
