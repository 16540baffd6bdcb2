#include <troupe/runtime/transfer/block_server.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include <asio.hpp>
#include <pthread.h>

#include <troupe/runtime/transfer/block_protocol.hpp>

namespace troupe {

namespace {

using asio::ip::tcp;
namespace protocol = block_protocol;

/// Bytes of a block that are handed to the socket at once. The kernel takes what it has room for, the rest waits in the
/// block itself: a slow reader costs no memory beyond the socket's buffer.
constexpr std::size_t chunk_size = 256 << 10;
constexpr std::size_t most_buffers = 64; ///< at once
/// How long a refused peer may take to read its failure frame.
constexpr duration linger_time = std::chrono::seconds{1};
/// Pause after the system could not accept, as when descriptors have run out.
constexpr duration accept_pause = std::chrono::milliseconds{100};

/// What all connections of a server share. Used on its thread, but for the counter.
struct server_state {
  block_server::options opts;
  session_secret secret;
  const block_store& blocks;
  std::atomic<std::uint64_t> rejected = 0;
};

/// One connection, kept alive by the operation that it waits for. Runs on the server's thread.
class connection : public std::enable_shared_from_this<connection> {
public:
  connection(tcp::socket socket, server_state& server, std::function<void(connection&)> on_closed)
    : socket_(std::move(socket)), timer_(socket_.get_executor()), server_(server), on_closed_(std::move(on_closed)) {}

  void start() {
    asio::error_code ignored;
    socket_.set_option(tcp::no_delay{true}, ignored);
    set_deadline(server_.opts.handshake_timeout);
    read_frame();
  }

  void close() {
    if (!socket_.is_open()) return;
    asio::error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    view_ = {};
    on_closed_(*this);
  }

  /// Counts the peer as rejected, says why (once), and closes when it has had the time to read that.
  void reject(const error& why) {
    ++server_.rejected;
    step_ = step::rejected;
    failure_ = protocol::encode(why);
    set_deadline(linger_time);
    asio::async_write(socket_, asio::buffer(failure_),
                      [self = shared_from_this()](asio::error_code failed, std::size_t) {
                        if (self->over(failed)) return self->close();
                        asio::error_code ignored;
                        self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
                        self->drain();
                      });
  }

  /// True while an authenticated peer waits for nothing; then since when.
  bool idle() const noexcept { return step_ == step::idle; }
  time_point idle_since() const noexcept { return idle_since_; }

private:
  enum class step { hello, proof, idle, sending, rejected };

  /// An operation may have succeeded just before the connection was closed here: its handler then comes afterwards.
  bool over(asio::error_code failed) const { return failed || !socket_.is_open(); }

  /// The timer is not moved for every chunk: when it fires it looks whether the deadline has moved meanwhile.
  void set_deadline(duration from_now) {
    deadline_ = std::chrono::steady_clock::now() + from_now;
    if (!timer_armed_ || deadline_ < timer_.expiry()) arm_timer();
  }
  void clear_deadline() { deadline_ = time_point::max(); }
  void arm_timer() {
    timer_armed_ = true;
    timer_.expires_at(deadline_); // an earlier wait is cancelled
    timer_.async_wait([self = shared_from_this()](asio::error_code cancelled) {
      if (cancelled) return;
      self->timer_armed_ = false;
      if (self->deadline_ == time_point::max()) return;
      if (std::chrono::steady_clock::now() < self->deadline_) return self->arm_timer();
      if (self->step_ == step::hello || self->step_ == step::proof)
        self->reject(make_error(ec::unauthenticated, "the handshake took too long"));
      else
        self->close();
    });
  }

  void read_frame() {
    asio::async_read(socket_, asio::buffer(length_), [self = shared_from_this()](asio::error_code failed, std::size_t) {
      if (self->over(failed)) return self->end_of_stream();
      const auto length = protocol::read_length(self->length_);
      if (self->step_ == step::rejected) return;
      if (length == 0 || length > protocol::max_client_frame)
        return self->reject(make_error(ec::malformed, "a frame of " + std::to_string(length) + " bytes"));
      self->read_body(length);
    });
  }

  void read_body(std::size_t length) {
    asio::async_read(socket_, asio::buffer(body_.data(), length),
                     [self = shared_from_this()](asio::error_code failed, std::size_t size) {
                       if (self->over(failed)) return self->end_of_stream();
                       if (self->step_ != step::rejected) self->on_frame({self->body_.data(), size});
                     });
  }

  /// The peer is gone. That it left before it proved anything is worth counting, that it left later is not.
  void end_of_stream() {
    if (socket_.is_open() && (step_ == step::hello || step_ == step::proof)) ++server_.rejected;
    if (step_ != step::rejected) close();
  }

  void on_frame(std::string_view frame) {
    switch (step_) {
    case step::hello: return on_hello(frame);
    case step::proof: return on_proof(frame);
    case step::idle: return on_get(frame);
    case step::sending:
    case step::rejected: return;
    }
  }

  void on_hello(std::string_view frame) {
    auto hello = protocol::read_hello(frame);
    if (!hello) return reject(hello.error());
    if (hello->version != protocol::version)
      return reject(make_error(ec::version_mismatch, "this block server speaks version " +
                                                         std::to_string(protocol::version) + ", the peer version " +
                                                         std::to_string(hello->version)));
    if (hello->cluster_id != server_.opts.cluster_id)
      return reject(make_error(ec::unauthenticated, "this block server belongs to another cluster"));
    client_nonce_ = std::move(hello->nonce);
    server_nonce_ = make_nonce();
    step_ = step::proof;
    header_ = protocol::encode(protocol::challenge{
        server_nonce_, protocol::server_proof(server_.secret, server_.opts.cluster_id, client_nonce_, server_nonce_)});
    write_header_then_read();
  }

  void on_proof(std::string_view frame) {
    const auto proof = protocol::read_proof(frame);
    if (!proof) return reject(proof.error());
    if (!protocol::is_client_proof(server_.secret, *proof, server_.opts.cluster_id, client_nonce_, server_nonce_))
      return reject(make_error(ec::unauthenticated, "the peer did not prove the session's secret"));
    become_idle();
    read_frame();
  }

  void on_get(std::string_view frame) {
    const auto get = protocol::read_get(frame);
    if (!get) return reject(get.error());
    auto view = server_.blocks.get(get->key, get->bucket);
    step_ = step::sending;
    set_deadline(server_.opts.send_timeout);
    view_ = view ? std::move(*view) : block_view{};
    header_ = view ? protocol::encode(protocol::data{view_.size()}) : protocol::encode(view.error());
    part_ = 0;
    rest_ = header_;
    send_rest();
  }

  /// What is left of the piece at hand, and pieces that follow it, up to a chunk: few calls also where pieces are
  /// small.
  void send_rest() {
    buffers_.clear();
    std::size_t size = rest_.size();
    if (!rest_.empty()) buffers_.emplace_back(rest_.data(), std::min(rest_.size(), chunk_size));
    const auto parts = view_.parts();
    for (auto next = part_; next < parts.size() && size < chunk_size && buffers_.size() < most_buffers; ++next) {
      buffers_.emplace_back(parts[next].data(), std::min(parts[next].size(), chunk_size - size));
      size += parts[next].size();
    }
    if (buffers_.empty()) {
      view_ = {};
      become_idle();
      return read_frame();
    }
    set_deadline(server_.opts.send_timeout);
    socket_.async_write_some(buffers_, [self = shared_from_this()](asio::error_code failed, std::size_t count) {
      if (self->over(failed)) return self->close();
      self->advance(count);
      self->send_rest();
    });
  }

  void advance(std::size_t count) {
    const auto parts = view_.parts();
    while (count > 0) {
      if (rest_.empty()) rest_ = parts[part_++];
      const auto taken = std::min(count, rest_.size());
      rest_.remove_prefix(taken);
      count -= taken;
    }
  }

  void write_header_then_read() {
    asio::async_write(socket_, asio::buffer(header_),
                      [self = shared_from_this()](asio::error_code failed, std::size_t) {
                        if (self->over(failed)) return self->end_of_stream();
                        if (self->step_ != step::rejected) self->read_frame();
                      });
  }

  void become_idle() {
    step_ = step::idle;
    idle_since_ = std::chrono::steady_clock::now();
    clear_deadline();
  }

  /// Reads what the peer still sends: closing with unread bytes would reset the connection and take the failure frame
  /// with it. The deadline ends it.
  void drain() {
    socket_.async_read_some(asio::buffer(body_), [self = shared_from_this()](asio::error_code failed, std::size_t) {
      if (self->over(failed)) return self->close();
      self->drain();
    });
  }

  tcp::socket socket_;
  asio::steady_timer timer_;
  server_state& server_;
  std::function<void(connection&)> on_closed_;
  step step_ = step::hello;
  bool timer_armed_ = false;
  time_point deadline_ = time_point::max();
  time_point idle_since_;
  std::array<char, protocol::length_size> length_{};
  std::array<char, protocol::max_client_frame> body_{};
  std::string client_nonce_;
  std::string server_nonce_;
  std::string header_;    ///< frame that is being written
  std::string failure_;   ///< the last frame: an earlier one may still be on its way
  block_view view_;       ///< block that is being written
  std::size_t part_ = 0;  ///< of it, that comes next
  std::string_view rest_; ///< of the piece at hand
  std::vector<asio::const_buffer> buffers_;
};

} // namespace

struct block_server::impl {
  impl(options opts, const session_secret& secret, const block_store& blocks)
    : state{std::move(opts), secret, blocks} {}

  void accept() {
    if (!acceptor.is_open()) return; // stopped during a pause
    acceptor.async_accept([this](asio::error_code failed, tcp::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) {
        pause.expires_after(accept_pause);
        pause.async_wait([this](asio::error_code cancelled) {
          if (!cancelled) accept();
        });
        return;
      }
      admit(std::move(socket));
      accept();
    });
  }

  void admit(tcp::socket socket) {
    if (connections.size() >= state.opts.max_connections && !close_longest_idle()) {
      ++state.rejected;
      return; // the socket closes itself
    }
    auto c = std::make_shared<connection>(std::move(socket), state,
                                          [this](connection& closed) { connections.erase(&closed); });
    connections.emplace(c.get(), c);
    c->start();
  }

  /// Clients keep connections for later; under pressure the least used of them makes room.
  bool close_longest_idle() {
    std::shared_ptr<connection> longest;
    for (const auto& [_, weak] : connections) {
      auto c = weak.lock();
      if (c && c->idle() && (!longest || c->idle_since() < longest->idle_since())) longest = std::move(c);
    }
    if (!longest) return false;
    longest->close();
    return true;
  }

  void stop() {
    asio::post(io, [this] {
      asio::error_code ignored;
      acceptor.close(ignored);
      pause.cancel();
      for (const auto& [_, weak] : std::exchange(connections, {})) {
        if (const auto c = weak.lock()) c->close();
      }
    });
    if (thread.joinable()) thread.join();
  }

  server_state state;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::map<connection*, std::weak_ptr<connection>> connections;
  std::uint16_t port = 0;
  std::thread thread;
};

block_server::block_server() = default;

result<std::unique_ptr<block_server>> block_server::start(options opts, const session_secret& secret,
                                                          const block_store& blocks) {
  asio::error_code failed;
  const auto address = asio::ip::make_address(opts.address, failed);
  if (failed)
    return make_error(ec::invalid_configuration, "block server: '" + opts.address + "' is no IP address to listen on");
  if (opts.cluster_id.size() > block_protocol::max_cluster_id)
    return make_error(ec::invalid_configuration,
                      "block server: the cluster id '" + opts.cluster_id + "' has more than 255 bytes");
  std::unique_ptr<block_server> server{new block_server};
  server->impl_ = std::make_unique<impl>(std::move(opts), std::move(secret), blocks);
  auto& d = *server->impl_;
  const tcp::endpoint endpoint{address, 0};
  d.acceptor.open(endpoint.protocol(), failed);
  if (!failed) d.acceptor.bind(endpoint, failed);
  if (!failed) d.acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) d.port = d.acceptor.local_endpoint(failed).port();
  if (failed)
    return make_error(ec::io, "block server: cannot listen on " + d.state.opts.address + ": " + failed.message());
  d.accept();
  d.thread = std::thread{[&d] {
    ::pthread_setname_np(::pthread_self(), "block-server");
    d.io.run();
  }};
  return server;
}

block_server::~block_server() {
  if (impl_) impl_->stop();
}

std::uint16_t block_server::port() const noexcept { return impl_->port; }

std::uint64_t block_server::rejected() const noexcept { return impl_->state.rejected.load(std::memory_order_relaxed); }

} // namespace troupe
