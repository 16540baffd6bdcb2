#pragma once

/// One peer of a block server: handshake, requests, and what is sent for them. Kept alive by the operation that it
/// waits for; runs on the server's thread alone. Used by block_server.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <asio.hpp>

#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/transfer/block_protocol.hpp>
#include <troupe/runtime/transfer/block_server.hpp>

namespace troupe {

/// What all connections of a server share. Used on its thread, but for the counter.
struct server_state {
  block_server::options opts;
  session_secret secret;
  block_store& blocks;
  int tcp_listener = -1;            ///< of the server's own
  int local_listener = -1;          ///< -1: none
  bool local_listener_lent = false; ///< whoever has it listens there when this server is gone
  std::atomic<std::uint64_t> rejected = 0;
  std::function<void()> on_idle = {}; ///< a connection waits for nothing from now on
};

class serving_connection : public std::enable_shared_from_this<serving_connection> {
public:
  using socket = asio::generic::stream_protocol::socket;

  /// @param local the peer is a process of this machine and may be lent descriptors
  serving_connection(socket s, bool local, server_state& server, std::function<void(serving_connection&)> on_closed);

  void start();
  void close();

  /// True while an authenticated peer waits for nothing; then since when.
  bool idle() const noexcept { return step_ == step::idle; }
  time_point idle_since() const noexcept { return idle_since_; }

private:
  enum class step { hello, proof, idle, serving, rejected };
  enum class progress { done, blocked, failed };

  bool over(asio::error_code failed) const { return failed || !socket_.is_open(); }
  void set_deadline(duration from_now);
  void clear_deadline() { deadline_ = time_point::max(); }
  void arm_timer();
  void reject(const error& why);
  void drain();
  void read_frame();
  void read_body(std::size_t length);
  void end_of_stream();
  void on_frame(std::string_view frame);
  void on_hello(std::string_view frame);
  void on_proof(std::string_view frame);
  void on_fetch(std::string_view frame);
  void on_grant(std::string_view frame);
  void on_sockets(std::string_view frame);
  void begin_request(block_protocol::fetch request);
  void become_idle();

  void serve();
  void wait_until_writable();
  bool next_block();
  progress send_some();
  progress send_from_memory();
  progress send_from_file();
  progress send_with_descriptor();
  void advance(std::uint64_t bytes);

  socket socket_;
  const bool local_;
  asio::steady_timer timer_;
  server_state& server_;
  std::function<void(serving_connection&)> on_closed_;
  step step_ = step::hello;
  bool timer_armed_ = false;
  time_point deadline_ = time_point::max();
  time_point idle_since_;
  std::array<char, block_protocol::length_size> length_{};
  std::string body_; ///< of the frame that is being read
  std::string client_nonce_;
  std::string server_nonce_;
  std::string handshake_;           ///< frame of it that is being written
  std::string failure_;             ///< the last frame: an earlier one may still be on its way
  std::array<char, 256> drained_{}; ///< a body may still be on its way, too

  // The request under way.
  block_protocol::fetch request_;
  std::size_t next_ = 0; ///< block of it
  std::int64_t credit_ = 0;
  bool waiting_ = false; ///< until the socket takes more
  std::string header_;   ///< of the block at hand
  std::size_t header_at_ = 0;
  block_view view_;                ///< the block at hand
  bool lending_ = false;           ///< a descriptor goes with the header
  int lent_ = -1;                  ///< which
  bool lends_whole_ = false;       ///< one that cannot be sent instead: of a whole set, or a socket
  std::uint64_t left_if_sent_ = 0; ///< bytes, where they are sent instead
  std::vector<int> listeners_;     ///< that are still to be lent
  std::uint64_t left_ = 0;         ///< bytes of it that follow
  std::uint64_t file_at_ = 0;
  std::size_t part_ = 0; ///< of it in memory
  std::size_t part_at_ = 0;
};

} // namespace troupe
