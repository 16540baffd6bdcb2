#include <troupe/runtime/transfer/local_address.hpp>

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <troupe/runtime/storage/descriptor.hpp>

namespace troupe {
namespace {

/// AF_INET or AF_INET6 for the address of all interfaces of that family; 0 for everything else.
int family_of_all_interfaces(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return four.s_addr == htonl(INADDR_ANY) ? AF_INET : 0;
  return inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six) ? AF_INET6 : 0;
}

/// The own address on the way to a peer. @returns 0 or what failed
int own_address_towards(const addrinfo& peer, std::string& address) {
  const descriptor s{socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_storage mine{};
  socklen_t size = sizeof mine;
  char text[NI_MAXHOST];
  // A datagram socket that is given a peer looks for its way there, and sends nothing.
  if (!s || connect(s.get(), peer.ai_addr, peer.ai_addrlen) != 0 ||
      getsockname(s.get(), reinterpret_cast<sockaddr*>(&mine), &size) != 0)
    return errno;
  if (getnameinfo(reinterpret_cast<sockaddr*>(&mine), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return EAFNOSUPPORT;
  address = text;
  return 0;
}

} // namespace

result<std::string> address_to_reach(const std::string& bound, const std::string& host, std::uint16_t port) {
  const int family = family_of_all_interfaces(bound);
  if (family == 0) return bound;
  const auto fail = [&](const char* why) {
    return make_error(ec::unreachable, "cannot find out under which address " + host + " reaches this machine: " + why);
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_family = family == AF_INET ? AF_INET : AF_UNSPEC; // who listens on :: hears both
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
    return fail(gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{found, &freeaddrinfo};
  std::string address;
  int failed = 0;
  for (const auto* peer = list.get(); peer; peer = peer->ai_next)
    if (failed = own_address_towards(*peer, address); failed == 0) return address;
  return fail(std::strerror(failed));
}

std::string this_host() {
  char host[256] = "unknown";
  static_cast<void>(::gethostname(host, sizeof host - 1));
  return host;
}

} // namespace troupe
