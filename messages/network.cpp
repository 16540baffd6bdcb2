#include <troupe/messages/network.hpp>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <set>

#include <netdb.h>
#include <sys/socket.h>

#include <troupe/runtime/config/amount_text.hpp>
#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/transfer/stream_socket.hpp>

namespace troupe::detail {
namespace {

using clock = std::chrono::steady_clock;

/// How often a wait asks whether it is to end.
constexpr duration slice = std::chrono::milliseconds{100};

error unreachable(const std::string& host, std::uint16_t port, const std::string& why) {
  return make_error(ec::unreachable, "cannot connect to " + host + ":" + std::to_string(port) + ": " + why);
}

std::string no_answer(duration patience) {
  return "no answer came within " + time_to_string(patience) + " (troupe.driver.request-timeout)";
}

/// Connects and hangs up. CAF's own connecting does not tell a wrong name from a port where nobody listens, and a host
/// that leaves it without an answer keeps it, and with it the end of the actor system, for minutes. @returns the
/// address that has answered: of a name's addresses CAF might try another one first
result<std::string> knock(const std::string& host, std::uint16_t port, duration patience,
                          const std::function<bool()>& stop) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), nullptr, &hints, &found); failed != 0)
    return unreachable(host, port, std::string{"the host name cannot be resolved: "} + gai_strerror(failed));
  freeaddrinfo(found);
  const auto deadline = clock::now() + patience;
  const auto stream = stream_socket::connect(host, port, patience, stop);
  if (stream) return stream->peer();
  if (stream.error().code == ec::cancelled) return stream.error();
  if (clock::now() >= deadline) return unreachable(host, port, no_answer(patience));
  return unreachable(host, port, stream.error().message + "; is the driver running?");
}

} // namespace

result<std::string> reach(caf::actor_system& system, const std::string& host, std::uint16_t port, duration patience,
                          const std::function<bool()>& stop) {
  const auto deadline = clock::now() + patience;
  auto address = knock(host, port, patience, stop);
  if (!address) return address;
  caf::scoped_actor self{system};
  for (;;) {
    std::optional<caf::error> failed;
    // Asked again, the middleman goes on with the handshake that it has begun.
    ask(self, system.middleman().actor_handle(), slice, connect_request, *address, port)
        .receive([](const caf::node_id&, const caf::strong_actor_ptr&, const std::set<std::string>&) {},
                 [&](const caf::error& why) { failed = why; });
    if (!failed) return address;
    // CAF gives a handshake up at its next heartbeat, however young it is.
    const bool unanswered = *failed == caf::sec::request_timeout || *failed == caf::sec::connection_timeout;
    if (!unanswered || clock::now() >= deadline) return not_connected(system, host, port, *failed, patience);
    if (stop()) return make_error(ec::cancelled, "interrupted");
  }
}

error not_bound(const std::string& address, std::uint16_t port, const std::string& what) {
  const auto failed = [&](ec code, const std::string& why) {
    return make_error(code, "cannot listen at " + to_string(endpoint{address, port}) + ": " + why);
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int unknown = getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found); unknown != 0)
    return failed(ec::invalid_configuration, gai_strerror(unknown));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner{found, &freeaddrinfo};
  const descriptor tried{socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int yes = 1;
  if (tried) static_cast<void>(setsockopt(tried.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes)); // as CAF does
  if (!tried || (bind(tried.get(), found->ai_addr, found->ai_addrlen) == 0 && listen(tried.get(), 1) == 0))
    return failed(ec::io, what); // it may have passed
  const int why = errno;
  switch (why) {
  case EADDRINUSE:
    return failed(ec::invalid_configuration, "somebody listens there; choose another port, or 0 for any free one");
  case EACCES:
    return failed(ec::invalid_configuration,
                  "ports below 1024 are for root; choose another one, or 0 for any free one");
  case EADDRNOTAVAIL: return failed(ec::invalid_configuration, "this machine does not have that address");
  default: return failed(ec::io, std::strerror(why));
  }
}

error not_connected(caf::actor_system& system, const std::string& host, std::uint16_t port, const caf::error& what,
                    duration patience) {
  if (what == caf::sec::connection_timeout || what == caf::sec::request_timeout)
    return unreachable(host, port,
                       no_answer(patience) + "; what listens there is a driver that is stopped or overloaded, or none");
  if (what == caf::sec::cannot_connect_to_node)
    return unreachable(host, port, "nobody listens there; is the driver running?");
  for (const auto foreign :
       {malformed_handshake, caf::sec::serializing_basp_payload_failed, caf::sec::no_actor_published_at_port})
    if (what == foreign) return unreachable(host, port, "what listens there is no Troupe driver");
  if (what == caf::sec::disconnect_during_handshake)
    return unreachable(host, port, "what listens there hung up: it is no Troupe driver, or one that is ending");
  auto why = from_caf_error(system, what);
  if (why.code != ec::version_mismatch) return unreachable(host, port, why.message);
  // CAF lists both interfaces, which fills a page.
  why.message = unreachable(host, port, "a driver of another version of Troupe listens there, or none at all").message;
  return why;
}

} // namespace troupe::detail
