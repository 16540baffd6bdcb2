#pragma once

/// A connection for a thread that waits, over TCP or to a socket of this machine's file system: every wait has an end,
/// by time or because somebody asks for it.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/descriptor.hpp>
#include <troupe/runtime/time.hpp>

struct addrinfo;

namespace troupe {

class stream_socket {
public:
  /// Asked between short waits; true ends the wait with the error cancelled.
  using interrupted = std::function<bool()>;

  /// Tries all addresses of the host, one after the other; each has its part of the time that is left. Errors:
  /// unreachable (nobody there, or not in time), cancelled.
  static result<stream_socket> connect(const std::string& host, std::uint16_t port, duration timeout,
                                       const interrupted& stop);
  /// The same with a list of addresses.
  static result<stream_socket> connect(const addrinfo& first, duration timeout, const interrupted& stop);
  /// To a socket at a path, where a process of this user listens. Errors: unreachable (nobody there, or no path that a
  /// socket can have), unauthenticated (another user's).
  static result<stream_socket> connect_local(const std::string& path);

  /// The other side's address in numbers, without the port; "" where the connection is gone.
  std::string peer() const;

  /// Errors of both: io when the connection is gone, unreachable when nothing moves for `silence`, cancelled. The
  /// stream is of no use then.
  result<void> send(std::string_view bytes, duration silence, const interrupted& stop);
  /// At least one byte and at most `room`. @returns how many. Error overloaded, too, where a descriptor came along and
  /// this process can have no more
  result<std::size_t> receive_some(char* to, std::size_t room, duration silence, const interrupted& stop);
  /// The next descriptor that came along with bytes, over a local socket; none where none came.
  descriptor take_descriptor();

  bool is_local() const noexcept { return local_; }

private:
  explicit stream_socket(int fd, bool local = false) : fd_(fd), local_(local) {}
  /// Until the socket is ready for `events`.
  result<void> wait(short events, duration timeout, const interrupted& stop);
  ssize_t receive_with_descriptors(char* to, std::size_t room);

  descriptor fd_;
  bool local_ = false;
  std::vector<descriptor> received_; ///< descriptors that nobody has taken yet, the first one first
};

} // namespace troupe
