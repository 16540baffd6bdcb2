#pragma once

/// Raw sockets for both ends of a block connection, and a server over a store in a scratch directory.

#include <arpa/inet.h>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include <troupe/runtime/transfer/block_client.hpp>
#include <troupe/runtime/transfer/block_protocol.hpp>
#include <troupe/runtime/transfer/block_server.hpp>
#include <troupe/tests/support/blocks.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe::testing_transfer {

inline const duration deadline = testing::patience();
inline const std::string cluster = "test-cluster";

inline int milliseconds_of(duration time) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

using testing::content_of;
using testing::text_of;

inline block_key key(std::uint64_t stage, partition_index partition, attempt_number attempt) {
  return output_key({stage}, partition, attempt);
}
/// The text as one page.
inline std::string page_of(const std::string& text) { return content_of({text}).pages[0][0]; }

/// Bytes of anonymous memory of this process: what a mapped file does not count in.
inline std::uint64_t anonymous_memory() {
  std::ifstream status{"/proc/self/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::stoull(line.substr(8)) * 1024;
  }
  return 0;
}

/// A blocking socket with deadlines; for tests only what the protocol's own code does not do.
class raw_socket {
public:
  explicit raw_socket(int fd) : fd_(fd) {}
  raw_socket(raw_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~raw_socket() { close(); }
  static raw_socket connect(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return raw_socket{fd};
  }
  bool connect_to(const std::string& path) {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    path.copy(to.sun_path, sizeof to.sun_path - 1);
    return ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void end_sending() { ::shutdown(fd_, SHUT_WR); }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  /// Exactly `count` bytes, or fewer at the end of the stream.
  std::string receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::size_t filled = 0;
    while (filled < count) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, milliseconds_of(deadline)) != 1) throw std::runtime_error("nothing came before the deadline");
      const auto n = ::recv(fd_, bytes.data() + filled, count - filled, 0);
      if (n <= 0) break;
      filled += static_cast<std::size_t>(n);
    }
    bytes.resize(filled);
    return bytes;
  }
  /// That nothing comes can only be seen by waiting; the time is short, since a fault comes at once.
  bool is_quiet_for(std::chrono::milliseconds time) {
    pollfd p{fd_, POLLIN, 0};
    return ::poll(&p, 1, static_cast<int>(time.count())) == 0;
  }
  /// One frame without its length; "" at the end of the stream.
  std::string receive_frame() {
    const auto length = receive(4);
    if (length.size() < 4) return {};
    std::array<char, 4> bytes{};
    std::copy_n(length.begin(), 4, bytes.begin());
    return receive(block_protocol::read_length(bytes));
  }
  /// Reads up to the end of the stream. False at the deadline.
  bool ended() {
    try {
      while (!receive(4096).empty()) {}
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

private:
  int fd_;
};

/// Accepts connections one after another on a thread and lets a function treat them.
class scripted_server {
public:
  explicit scripted_server(std::function<void(raw_socket&)> script) : script_(std::move(script)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(fd_, 16) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(at.sin_port);
    thread_ = std::thread{[this] {
      for (;;) {
        raw_socket peer{::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)};
        if (stopping_) return;
        ++connections_;
        script_(peer);
      }
    }};
  }
  ~scripted_server() {
    stopping_ = true;
    ::shutdown(fd_, SHUT_RDWR); // wakes accept
    thread_.join();
    ::close(fd_);
  }
  std::uint16_t port() const { return port_; }
  int connections() const { return connections_; }

private:
  std::function<void(raw_socket&)> script_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

/// Does the server's part of the handshake, then `answer`.
class lying_server : public scripted_server {
public:
  lying_server(session_secret secret, std::function<void(raw_socket&)> answer)
    : scripted_server([secret, answer](raw_socket& peer) {
        const auto hello = block_protocol::read_hello(peer.receive_frame());
        if (!hello) return;
        const auto nonce = make_nonce();
        peer.send(block_protocol::encode(
            block_protocol::challenge{nonce, block_protocol::server_proof(secret, cluster, hello->nonce, nonce)}));
        peer.receive_frame(); // proof
        peer.receive_frame(); // fetch
        answer(peer);
      }) {}
};

class transfer_test : public ::testing::Test {
protected:
  transfer_test() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-transfer-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    directory = name;
    store = std::make_shared<block_store>(block_store::options{{directory}, memory_limit});
  }
  ~transfer_test() override {
    server.reset();
    store.reset();
    std::filesystem::remove_all(directory);
  }
  block_server& serve(block_server::options o = {}) {
    o.cluster_id = cluster;
    auto started = block_server::start(o, secret, *store);
    if (!started) throw std::runtime_error(started.error().message);
    server = std::move(*started);
    return *server;
  }
  block_endpoint endpoint() const { return at(server->port()); }
  static block_endpoint at(std::uint16_t port) { return {{9}, 1, "127.0.0.1", port}; }
  static block_client::options client_options() {
    block_client::options o;
    o.cluster_id = cluster;
    return o;
  }
  block_client client() const { return block_client{client_options(), secret, nullptr}; }
  /// A socket that has passed the handshake.
  raw_socket authenticated() {
    auto s = raw_socket::connect(server->port());
    const auto nonce = make_nonce();
    s.send(block_protocol::encode(block_protocol::hello{block_protocol::version, cluster, nonce}));
    const auto challenge = block_protocol::read_challenge(s.receive_frame());
    if (!challenge) throw std::runtime_error(challenge.error().message);
    s.send(block_protocol::encode_proof(block_protocol::client_proof(secret, cluster, nonce, challenge->nonce)));
    return s;
  }

  static constexpr std::uint64_t memory_limit = 1 << 20;
  std::filesystem::path directory;
  session_secret secret = session_secret::generate();
  std::shared_ptr<block_store> store;
  std::unique_ptr<block_server> server;
};

} // namespace troupe::testing_transfer
