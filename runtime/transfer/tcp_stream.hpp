#pragma once

/// A TCP connection for a thread that waits: every wait has an end, by time or because somebody asks for it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

struct addrinfo;

namespace troupe {

class tcp_stream {
public:
  /// Asked between short waits; true ends the wait with the error cancelled.
  using interrupted = std::function<bool()>;

  /// Tries all addresses of the host, one after the other; each has its part of the time that is left. Errors:
  /// unreachable (nobody there, or not in time), cancelled.
  static result<tcp_stream> connect(const std::string& host, std::uint16_t port, duration timeout,
                                    const interrupted& stop);
  /// The same with a list of addresses.
  static result<tcp_stream> connect(const addrinfo& first, duration timeout, const interrupted& stop);
  tcp_stream(tcp_stream&& other) noexcept;
  tcp_stream& operator=(tcp_stream&& other) noexcept;
  ~tcp_stream();

  /// The other side's address in numbers, without the port; "" where the connection is gone.
  std::string peer() const;

  /// Errors of both: io when the connection is gone, unreachable when nothing moves for `silence`, cancelled. The
  /// stream is of no use then.
  result<void> send(std::string_view bytes, duration silence, const interrupted& stop);
  result<void> receive(char* to, std::size_t count, duration silence, const interrupted& stop);

private:
  explicit tcp_stream(int fd) : fd_(fd) {}
  /// Until the socket is ready for `events`.
  result<void> wait(short events, duration timeout, const interrupted& stop);

  int fd_ = -1;
};

} // namespace troupe
