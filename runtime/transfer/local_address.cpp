#include <troupe/runtime/transfer/local_address.hpp>

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {
namespace {

struct file_descriptor {
  int fd;
  ~file_descriptor() { close(fd); }
};

bool is_all_interfaces(const std::string& address) {
  in_addr four{};
  in6_addr six{};
  if (inet_pton(AF_INET, address.c_str(), &four) == 1) return four.s_addr == htonl(INADDR_ANY);
  return inet_pton(AF_INET6, address.c_str(), &six) == 1 && IN6_IS_ADDR_UNSPECIFIED(&six);
}

} // namespace

result<std::string> address_to_reach(const std::string& bound, const std::string& host, std::uint16_t port) {
  if (!is_all_interfaces(bound)) return bound;
  const auto fail = [&](const char* why) {
    return make_error(ec::unreachable, "cannot find out under which address " + host + " reaches this machine: " + why);
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); failed != 0)
    return fail(gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list{found, &freeaddrinfo};
  const file_descriptor s{socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_storage mine{};
  socklen_t size = sizeof mine;
  char text[NI_MAXHOST];
  // A datagram socket that is given a peer looks for its way there, and sends nothing.
  if (s.fd < 0 || connect(s.fd, list->ai_addr, list->ai_addrlen) != 0 ||
      getsockname(s.fd, reinterpret_cast<sockaddr*>(&mine), &size) != 0)
    return fail(std::strerror(errno));
  if (getnameinfo(reinterpret_cast<sockaddr*>(&mine), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return fail("it has no numeric form");
  return std::string{text};
}

} // namespace troupe
