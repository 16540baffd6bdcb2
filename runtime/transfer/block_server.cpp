#include <troupe/runtime/transfer/block_server.hpp>

#include <csignal>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <thread>
#include <utility>

#include <asio.hpp>
#include <pthread.h>
#include <unistd.h>

#include <troupe/runtime/transfer/block_connection.hpp>
#include <troupe/runtime/transfer/block_protocol.hpp>
#include <troupe/runtime/transfer/serving_connection.hpp>

namespace troupe {

namespace {

using asio::ip::tcp;
using local_socket = asio::local::stream_protocol;

/// Pause after the system could not accept, as when descriptors have run out.
constexpr duration accept_pause = std::chrono::milliseconds{100};

} // namespace

struct block_server::impl {
  impl(options opts, const session_secret& secret, block_store& blocks) : state{std::move(opts), secret, blocks} {
    state.on_idle = [this] { admit_waiting(); };
  }

  template <class Protocol>
  void accept(asio::basic_socket_acceptor<Protocol>& at, bool local) {
    if (!at.is_open()) return; // stopped during a pause
    at.async_accept([this, &at, local](asio::error_code failed, typename Protocol::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) {
        const auto pause = std::make_shared<asio::steady_timer>(io, accept_pause);
        pause->async_wait([this, &at, local, pause](asio::error_code) { accept(at, local); });
        return;
      }
      waiting.push_back({std::move(socket), local, [this, &at, local] { accept(at, local); }});
      admit_waiting();
    });
  }

  /// Whoever has no room waits, and with it all who come after it to the same listener: they are full of patience,
  /// while a refusal would be taken for the loss of what they want.
  void admit_waiting() {
    if (waiting.empty() || due) return;
    due = true; // not now: one that closes or becomes idle is in the middle of something
    asio::post(io, [this] {
      due = false;
      while (!waiting.empty() && (connections.size() < state.opts.max_connections || close_longest_idle())) {
        auto next = std::move(waiting.front());
        waiting.pop_front();
        admit(std::move(next.socket), next.local);
        next.go_on();
      }
    });
  }

  void admit(serving_connection::socket socket, bool local) {
    auto c = std::make_shared<serving_connection>(std::move(socket), local, state, [this](serving_connection& closed) {
      connections.erase(&closed);
      admit_waiting();
    });
    connections.emplace(c.get(), c);
    c->start();
  }

  /// A socket file of that name can only be what a process left that was killed.
  void listen_locally() {
    const auto& path = state.opts.local_socket;
    if (path.empty() || !fits_local_socket(path)) return;
    ::unlink(path.c_str());
    asio::error_code failed;
    local_acceptor.open(local_socket{}, failed);
    if (!failed) local_acceptor.bind(local_socket::endpoint{path}, failed);
    if (!failed) local_acceptor.listen(asio::socket_base::max_listen_connections, failed);
    asio::error_code ignored;
    if (failed) local_acceptor.close(ignored);
  }

  /// Clients keep connections for later; under pressure the least used of them makes room.
  bool close_longest_idle() {
    std::shared_ptr<serving_connection> longest;
    for (const auto& [_, weak] : connections) {
      auto c = weak.lock();
      if (c && c->idle() && (!longest || c->idle_since() < longest->idle_since())) longest = std::move(c);
    }
    if (!longest) return false;
    longest->close();
    return true;
  }

  void inherit(descriptor& tcp_listener, descriptor& local_listener) {
    if (!acceptor.is_open()) return; // it is being stopped
    asio::error_code failed;
    if (tcp_listener) {
      sockaddr_storage at{};
      socklen_t size = sizeof at;
      ::getsockname(tcp_listener.get(), reinterpret_cast<sockaddr*>(&at), &size);
      auto& added = inherited.emplace_back(io);
      added.assign(at.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), tcp_listener.get(), failed);
      if (failed) {
        inherited.pop_back();
      } else {
        static_cast<void>(tcp_listener.release());
        accept(added, false);
      }
    }
    if (local_listener) {
      auto& added = inherited_local.emplace_back(io);
      added.assign(local_socket{}, local_listener.get(), failed);
      if (failed) {
        inherited_local.pop_back();
      } else {
        static_cast<void>(local_listener.release());
        accept(added, true);
      }
    }
  }

  /// What waits to be accepted there refers to them: they stay as they are, closed.
  void close_inherited() {
    asio::error_code ignored;
    for (auto& each : inherited) each.close(ignored);
    for (auto& each : inherited_local) {
      if (each.is_open()) ::unlink(each.local_endpoint(ignored).path().c_str());
      each.close(ignored);
    }
  }

  void stop() {
    asio::post(io, [this] {
      asio::error_code ignored;
      acceptor.close(ignored);
      if (local_acceptor.is_open() && !state.local_listener_lent) ::unlink(state.opts.local_socket.c_str());
      local_acceptor.close(ignored);
      close_inherited();
      waiting.clear();
      for (const auto& [_, weak] : std::exchange(connections, {})) {
        if (const auto c = weak.lock()) c->close();
      }
    });
    if (thread.joinable()) thread.join();
  }

  server_state state;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  local_socket::acceptor local_acceptor{io};
  std::list<tcp::acceptor> inherited; ///< of servers whose blocks were taken over
  std::list<local_socket::acceptor> inherited_local;
  std::map<serving_connection*, std::weak_ptr<serving_connection>> connections;
  struct newcomer {
    serving_connection::socket socket;
    bool local;
    std::function<void()> go_on; ///< accepts the next one
  };
  std::deque<newcomer> waiting; ///< one per listener at most
  bool due = false;             ///< those who wait are being looked at soon
  std::uint16_t port = 0;
  bool is_local = false;
  std::thread thread;
};

block_server::block_server() = default;

result<std::unique_ptr<block_server>> block_server::start(options opts, const session_secret& secret,
                                                          block_store& blocks) {
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
  d.listen_locally();
  d.is_local = d.local_acceptor.is_open();
  d.state.tcp_listener = d.acceptor.native_handle();
  if (d.is_local) d.state.local_listener = d.local_acceptor.native_handle();
  d.accept(d.acceptor, false);
  d.accept(d.local_acceptor, true);
  d.thread = std::thread{[&d] {
    ::pthread_setname_np(::pthread_self(), "block-server");
    // sendfile knows no other way to be told that a peer may be gone.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    d.io.run();
  }};
  return server;
}

void block_server::inherit(descriptor tcp, descriptor local) {
  auto& d = *impl_;
  // The descriptors are taken on the server's thread; until then they are this object's, whatever becomes of it.
  const auto both = std::make_shared<std::pair<descriptor, descriptor>>(std::move(tcp), std::move(local));
  asio::post(d.io, [&d, both] { d.inherit(both->first, both->second); });
}

void block_server::close_inherited() {
  asio::post(impl_->io, [&d = *impl_] { d.close_inherited(); });
}

block_server::~block_server() {
  if (impl_) impl_->stop();
}

std::uint16_t block_server::port() const noexcept { return impl_->port; }

bool block_server::is_local() const noexcept { return impl_->is_local; }

std::uint64_t block_server::rejected() const noexcept { return impl_->state.rejected.load(std::memory_order_relaxed); }

} // namespace troupe
