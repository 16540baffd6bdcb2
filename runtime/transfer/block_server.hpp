#pragma once

/// Serves one executor's blocks to other executors and to the session, apart from the control connection: over TCP, and
/// over a socket in the session's run directory to processes of the same user on this machine, who are lent read-only
/// descriptors of what lies in files.
///
/// Frame (all numbers little-endian): u32 length of what follows (at most 1 KiB from a client that has not proved the
/// secret yet, 16 KiB afterwards; checked before any of it is read), u8 kind, body. A connection starts with the
/// handshake: client hello (magic, version, cluster id, nonce) - server challenge (nonce, proof) - client proof; before
/// it has passed nothing else is answered, and it has to pass within `handshake_timeout`. Then any number of requests:
/// fetch (u64 credit, u8 whether descriptors are welcome, up to 500 blocks: key, bucket, offset) - for each block, in
/// this order, data (u64 size; the bytes follow the frame), or lend (u64 offset, u64 size; the descriptor comes with
/// the frame). A process that takes over asks for whole sets, which are lent as block files, and at last for the
/// sockets at which the server listens: two lend frames, of size 0 and without a descriptor where there is none. A
/// failure (code, sentence) instead ends the request. The server sends no more bytes than it has credit for; the client
/// grants more (grant: u64) as it reads. Malformed input gets one failure frame, where that can be told from a block's
/// bytes, and the connection is closed.

#include <cstdint>
#include <memory>
#include <string>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/time.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe {

class block_server {
public:
  struct options {
    std::string address = "127.0.0.1"; ///< to listen on; port is always chosen by the system
    std::string cluster_id;
    std::string local_socket; ///< path of the socket for processes of this machine; "": none
    duration handshake_timeout = std::chrono::seconds{5};
    duration send_timeout = std::chrono::seconds{60}; ///< a reader that takes nothing for so long is dropped
    /// Beyond it the longest idle one makes room, or else new ones wait, with the system, until one of them does.
    std::uint32_t max_connections = 1024;
  };
  /// Starts listening on a thread of its own. Error invalid_configuration for an address that is none, io where the
  /// system does not let it listen; without a local socket (its path may be too long) it does as well, see
  /// `is_local`. `blocks` outlives the server.
  static result<std::unique_ptr<block_server>> start(options opts, const session_secret& secret, block_store& blocks);
  ~block_server(); ///< closes all connections and waits for the thread

  std::uint16_t port() const noexcept;
  /// Whether it listens at its local socket.
  bool is_local() const noexcept;
  /// Listens at these sockets, too, in place of a server whose blocks were taken over. Any thread.
  void inherit(descriptor tcp, descriptor local);
  /// Listens at inherited sockets no longer. Any thread.
  void close_inherited();
  /// Connections refused or closed for bad input or a failed handshake.
  std::uint64_t rejected() const noexcept;

private:
  block_server();
  struct impl;
  std::unique_ptr<impl> impl_;
};

} // namespace troupe
