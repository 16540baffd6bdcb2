#include <troupe/runtime/transfer/stream_socket.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace troupe {

namespace {

/// How often a wait asks whether it is interrupted.
constexpr duration slice = std::chrono::milliseconds{50};

error gone(const char* what, int code) {
  return make_error(ec::unreachable, std::string{what} + ": " + std::strerror(code));
}

error not_connected(int code) {
  if (code == ECONNREFUSED) return make_error(ec::unreachable, "nobody listens there");
  return gone("cannot connect", code);
}

error lost(const char* why) { return make_error(ec::io, std::string{"the connection was lost: "} + why); }

} // namespace

result<stream_socket> stream_socket::connect(const std::string& host, std::uint16_t port, duration timeout,
                                             const interrupted& stop) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
    return make_error(ec::unreachable, "cannot resolve '" + host + "': " + ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses{found, &::freeaddrinfo};
  return connect(*addresses, timeout, stop);
}

result<stream_socket> stream_socket::connect(const addrinfo& first, duration timeout, const interrupted& stop) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  int untried = 0;
  for (const auto* a = &first; a; a = a->ai_next) ++untried;
  error last;
  for (const auto* a = &first; a; a = a->ai_next) {
    const auto part = (end - std::chrono::steady_clock::now()) / untried--;
    stream_socket stream{::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (!stream.fd_) {
      last = gone("no socket", errno);
      continue;
    }
    const int yes = 1;
    ::setsockopt(stream.fd_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (::connect(stream.fd_.get(), a->ai_addr, a->ai_addrlen) != 0) {
      if (errno != EINPROGRESS) {
        last = not_connected(errno);
        continue;
      }
      if (auto ready = stream.wait(POLLOUT, part, stop); !ready) {
        if (ready.error().code == ec::cancelled) return ready.error();
        last = ready.error();
        continue;
      }
      int code = 0;
      socklen_t size = sizeof code;
      ::getsockopt(stream.fd_.get(), SOL_SOCKET, SO_ERROR, &code, &size);
      if (code != 0) {
        last = not_connected(code);
        continue;
      }
    }
    return stream;
  }
  return last;
}

result<stream_socket> stream_socket::connect_local(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return make_error(ec::unreachable, path + " is longer than the path of a socket may be");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  stream_socket stream{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), true};
  if (!stream.fd_) return gone("no socket", errno);
  // It is connected at once, or not at all.
  if (::connect(stream.fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return not_connected(errno);
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(stream.fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid())
    return make_error(ec::unauthenticated, "the process at " + path + " is another user's");
  return stream;
}

std::string stream_socket::peer() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  char text[NI_MAXHOST] = "";
  if (::getpeername(fd_.get(), where, &size) != 0 ||
      ::getnameinfo(where, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text;
}

result<void> stream_socket::wait(short events, duration timeout, const interrupted& stop) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (stop()) return make_error(ec::cancelled, "interrupted");
    const auto rest = end - std::chrono::steady_clock::now();
    if (rest <= duration::zero()) {
      const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
      return make_error(ec::unreachable, "nothing came within " + std::to_string(milliseconds) + " ms");
    }
    const auto part = std::chrono::ceil<std::chrono::milliseconds>(std::min<duration>(rest, slice));
    pollfd p{fd_.get(), events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(part.count()));
    if (n > 0) return {}; // errors and hang-ups show at the operation that follows
    if (n < 0 && errno != EINTR) return gone("poll", errno);
  }
}

result<void> stream_socket::send(std::string_view bytes, duration silence, const interrupted& stop) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (auto ready = wait(POLLOUT, silence, stop); !ready) return ready;
    } else if (errno != EINTR) {
      return lost(std::strerror(errno));
    }
  }
  return {};
}

result<std::size_t> stream_socket::receive_some(char* to, std::size_t room, duration silence, const interrupted& stop) {
  for (;;) {
    const auto n = local_ ? receive_with_descriptors(to, room) : ::recv(fd_.get(), to, room, 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) return lost("the peer closed it");
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (auto ready = wait(POLLIN, silence, stop); !ready) return ready.error();
    } else if (errno == EMFILE) {
      return make_error(ec::overloaded,
                        "no file descriptor is left for what the peer lends; raise the limit (ulimit -n)");
    } else if (errno != EINTR) {
      return lost(std::strerror(errno));
    }
  }
}

ssize_t stream_socket::receive_with_descriptors(char* to, std::size_t room) {
  constexpr std::size_t most = 4; // what comes beyond, the system closes
  alignas(cmsghdr) char control[CMSG_SPACE(most * sizeof(int))];
  iovec bytes{to, room};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto n = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  for (auto* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      received_.emplace_back(fd);
    }
  }
  // One that is missing must not be taken for the next one.
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    errno = EMFILE;
    return -1;
  }
  return n;
}

descriptor stream_socket::take_descriptor() {
  if (received_.empty()) return {};
  auto first = std::move(received_.front());
  received_.erase(received_.begin());
  return first;
}

} // namespace troupe
