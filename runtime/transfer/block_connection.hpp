#pragma once

/// One connection to a block server, from the side that asks: over a local socket where the server is a process of this
/// user on this machine, else over TCP. One thread at a time.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/storage/block_file.hpp>
#include <troupe/runtime/time.hpp>
#include <troupe/runtime/transfer/block_protocol.hpp>
#include <troupe/runtime/transfer/stream_socket.hpp>

namespace troupe {

class block_connection {
public:
  struct options {
    std::string cluster_id;
    std::string local_directory; ///< where the servers of this machine have their sockets; "": not to be looked for
    duration connect_timeout = std::chrono::seconds{5};
    duration read_timeout = std::chrono::seconds{30}; ///< silence
  };

  /// Connects and proves the secret to each other. Errors: unreachable, io, cancelled, unauthenticated and
  /// version_mismatch where one side refuses the other, malformed.
  static result<block_connection> open(const block_endpoint& endpoint, const session_secret& secret,
                                       const options& opts, const stream_socket::interrupted& stop);

  /// Asks for blocks: one answer comes for each, in this order. The server sends about `window` bytes ahead of what is
  /// read here. @pre reusable; 1 to max_blocks blocks
  result<void> ask(std::span<const block_protocol::block_request> blocks, std::uint64_t window,
                   const stream_socket::interrupted& stop);

  /// Where the pages of a block are: behind the answer, for `receive_some`, or in a file.
  struct answer {
    std::uint64_t size = 0;
    file_piece piece; ///< with a file: there
  };
  /// The next answer. @pre the block before it was read whole. The errors that the server says end the request; any
  /// other ends the connection.
  result<answer> next_answer(const stream_socket::interrupted& stop);
  /// At least one byte of the block at hand.
  result<std::size_t> receive_some(char* to, std::size_t room, const stream_socket::interrupted& stop);
  /// That a lent block was read, so that the server may lend the next one.
  result<void> lent_was_read(const stream_socket::interrupted& stop) {
    return take_credit(block_protocol::lend_cost, stop);
  }

  /// The sockets at which the server listens, for TCP and for the file system, to listen there in its place; over a
  /// local socket only. @pre reusable
  result<std::pair<descriptor, descriptor>> take_sockets(const stream_socket::interrupted& stop);

  /// Everything that was asked for was answered and read.
  bool reusable() const noexcept { return answers_due_ == 0 && bytes_due_ == 0; }
  /// The server has said something since the last `ask`.
  bool answered() const noexcept { return answered_; }

private:
  block_connection(stream_socket socket, duration read_timeout)
    : socket_(std::move(socket)), read_timeout_(read_timeout) {}
  result<std::string> receive_frame(const stream_socket::interrupted& stop);
  result<void> receive_small(char* to, std::size_t count, const stream_socket::interrupted& stop);
  result<void> prove(const session_secret& secret, const std::string& cluster_id,
                     const stream_socket::interrupted& stop);
  result<void> take_credit(std::uint64_t bytes, const stream_socket::interrupted& stop);

  stream_socket socket_;
  duration read_timeout_;
  bool answered_ = false;
  std::size_t answers_due_ = 0;
  std::uint64_t bytes_due_ = 0; ///< of the block at hand
  std::uint64_t window_ = 0;
  std::uint64_t used_credit_ = 0;  ///< not granted again yet
  std::array<char, 4096> small_{}; ///< frames are small: one call reads several
  std::size_t small_begin_ = 0;
  std::size_t small_end_ = 0;
};

/// Path of the socket of the block server with this incarnation.
std::string local_socket_path(const std::string& directory, incarnation epoch);
/// False where the system takes no socket under so long a path.
bool fits_local_socket(const std::string& path) noexcept;

} // namespace troupe
