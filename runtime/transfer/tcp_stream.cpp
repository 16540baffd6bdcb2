#include <troupe/runtime/transfer/tcp_stream.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
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

tcp_stream::tcp_stream(tcp_stream&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

tcp_stream& tcp_stream::operator=(tcp_stream&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

tcp_stream::~tcp_stream() {
  if (fd_ >= 0) ::close(fd_);
}

result<tcp_stream> tcp_stream::connect(const std::string& host, std::uint16_t port, duration timeout,
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

result<tcp_stream> tcp_stream::connect(const addrinfo& first, duration timeout, const interrupted& stop) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  int untried = 0;
  for (const auto* a = &first; a; a = a->ai_next) ++untried;
  error last;
  for (const auto* a = &first; a; a = a->ai_next) {
    const auto part = (end - std::chrono::steady_clock::now()) / untried--;
    tcp_stream stream{::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    if (stream.fd_ < 0) {
      last = gone("no socket", errno);
      continue;
    }
    const int yes = 1;
    ::setsockopt(stream.fd_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (::connect(stream.fd_, a->ai_addr, a->ai_addrlen) != 0) {
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
      ::getsockopt(stream.fd_, SOL_SOCKET, SO_ERROR, &code, &size);
      if (code != 0) {
        last = not_connected(code);
        continue;
      }
    }
    return stream;
  }
  return last;
}

std::string tcp_stream::peer() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  char text[NI_MAXHOST] = "";
  if (::getpeername(fd_, where, &size) != 0 ||
      ::getnameinfo(where, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
    return {};
  return text;
}

result<void> tcp_stream::wait(short events, duration timeout, const interrupted& stop) {
  const auto end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    if (stop()) return make_error(ec::cancelled, "interrupted");
    const auto rest = end - std::chrono::steady_clock::now();
    if (rest <= duration::zero()) {
      const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count();
      return make_error(ec::unreachable, "nothing came within " + std::to_string(milliseconds) + " ms");
    }
    const auto part = std::chrono::ceil<std::chrono::milliseconds>(std::min<duration>(rest, slice));
    pollfd p{fd_, events, 0};
    const int n = ::poll(&p, 1, static_cast<int>(part.count()));
    if (n > 0) return {}; // errors and hang-ups show at the operation that follows
    if (n < 0 && errno != EINTR) return gone("poll", errno);
  }
}

result<void> tcp_stream::send(std::string_view bytes, duration silence, const interrupted& stop) {
  while (!bytes.empty()) {
    const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
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

result<void> tcp_stream::receive(char* to, std::size_t count, duration silence, const interrupted& stop) {
  while (count > 0) {
    const auto n = ::recv(fd_, to, count, 0);
    if (n > 0) {
      to += n;
      count -= static_cast<std::size_t>(n);
    } else if (n == 0) {
      return lost("the peer closed it");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (auto ready = wait(POLLIN, silence, stop); !ready) return ready;
    } else if (errno != EINTR) {
      return lost(std::strerror(errno));
    }
  }
  return {};
}

} // namespace troupe
