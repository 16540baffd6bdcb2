#include <troupe/runtime/transfer/block_connection.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <sys/un.h>

namespace troupe {

namespace protocol = block_protocol;

namespace {

/// The system drops what the receiver has no number for.
constexpr const char* no_descriptor =
    "a lent descriptor did not arrive: this process has no number left for it (ulimit -n)";

} // namespace

std::string local_socket_path(const std::string& directory, incarnation epoch) {
  static constexpr char digits[] = "0123456789abcdef";
  auto path = directory + "/blocks.";
  for (int shift = 60; shift >= 0; shift -= 4) path.push_back(digits[epoch >> shift & 15]);
  return path;
}

bool fits_local_socket(const std::string& path) noexcept { return path.size() < sizeof(sockaddr_un::sun_path); }

result<block_connection> block_connection::open(const block_endpoint& endpoint, const session_secret& secret,
                                                const options& opts, const stream_socket::interrupted& stop) {
  if (!opts.local_directory.empty() && endpoint.epoch != 0) {
    auto near = stream_socket::connect_local(local_socket_path(opts.local_directory, endpoint.epoch));
    if (near) {
      block_connection connection{std::move(*near), opts.read_timeout};
      if (auto proved = connection.prove(secret, opts.cluster_id, stop); !proved) return proved.error();
      return connection;
    }
    // Nobody of that incarnation is here; whoever else owns the socket is not to be trusted, but may not stop us
    // either.
  }
  if (endpoint.host.empty()) return make_error(ec::unreachable, "it is not in this process and has no block server");
  auto socket = stream_socket::connect(endpoint.host, endpoint.port, opts.connect_timeout, stop);
  if (!socket) return socket.error();
  block_connection connection{std::move(*socket), opts.read_timeout};
  if (auto proved = connection.prove(secret, opts.cluster_id, stop); !proved) return proved.error();
  return connection;
}

result<void> block_connection::prove(const session_secret& secret, const std::string& cluster_id,
                                     const stream_socket::interrupted& stop) {
  const auto nonce = make_nonce();
  const auto hello = protocol::encode(protocol::hello{protocol::version, cluster_id, nonce});
  if (auto sent = socket_.send(hello, read_timeout_, stop); !sent) return sent;
  const auto frame = receive_frame(stop);
  if (!frame) return frame.error();
  if (protocol::is(protocol::kind::failure, *frame)) return protocol::read_failure(*frame);
  const auto challenge = protocol::read_challenge(*frame);
  if (!challenge) return challenge.error();
  if (!protocol::is_server_proof(secret, challenge->proof, cluster_id, nonce, challenge->nonce))
    return make_error(ec::unauthenticated, "the block server did not prove the session's secret");
  const auto proof = protocol::client_proof(secret, cluster_id, nonce, challenge->nonce);
  return socket_.send(protocol::encode_proof(proof), read_timeout_, stop);
}

result<void> block_connection::ask(std::span<const protocol::block_request> blocks, std::uint64_t window,
                                   const stream_socket::interrupted& stop) {
  answered_ = false;
  answers_due_ = blocks.size();
  window_ = window;
  used_credit_ = 0;
  const protocol::fetch request{window, socket_.is_local(), {blocks.begin(), blocks.end()}};
  return socket_.send(protocol::encode(request), read_timeout_, stop);
}

result<block_connection::answer> block_connection::next_answer(const stream_socket::interrupted& stop) {
  const auto frame = receive_frame(stop);
  if (!frame) return frame.error();
  answered_ = true;
  if (protocol::is(protocol::kind::failure, *frame)) {
    answers_due_ = 0;
    return protocol::read_failure(*frame);
  }
  if (protocol::is(protocol::kind::lend, *frame)) {
    const auto lent = protocol::read_lend(*frame);
    if (!lent) return lent.error();
    auto file = socket_.take_descriptor();
    if (!file) return make_error(ec::overloaded, no_descriptor);
    --answers_due_;
    return answer{lent->size, {std::make_shared<const descriptor>(std::move(file)), lent->offset, lent->size}};
  }
  const auto announced = protocol::read_data(*frame);
  if (!announced) return announced.error();
  --answers_due_;
  bytes_due_ = announced->size;
  return answer{announced->size, {}};
}

result<std::pair<descriptor, descriptor>> block_connection::take_sockets(const stream_socket::interrupted& stop) {
  if (!socket_.is_local()) return make_error(ec::unreachable, "its sockets can be had over a local one only");
  if (auto sent = socket_.send(protocol::encode(protocol::sockets{}), read_timeout_, stop); !sent) return sent.error();
  std::pair<descriptor, descriptor> both;
  for (auto* const each : {&both.first, &both.second}) {
    const auto frame = receive_frame(stop);
    if (!frame) return frame.error();
    if (protocol::is(protocol::kind::failure, *frame)) return protocol::read_failure(*frame);
    const auto lent = protocol::read_lend(*frame);
    if (!lent) return lent.error();
    if (lent->size == 0) continue;
    *each = socket_.take_descriptor();
    if (!*each) return make_error(ec::overloaded, no_descriptor);
  }
  return both;
}

result<std::size_t> block_connection::receive_some(char* to, std::size_t room, const stream_socket::interrupted& stop) {
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes_due_));
  std::size_t got = 0;
  if (small_begin_ < small_end_) {
    got = std::min(wanted, small_end_ - small_begin_);
    std::memcpy(to, small_.data() + small_begin_, got);
    small_begin_ += got;
  } else {
    const auto came = socket_.receive_some(to, wanted, read_timeout_, stop);
    if (!came) return came;
    got = *came;
  }
  bytes_due_ -= got;
  if (auto granted = take_credit(got, stop); !granted) return granted.error();
  return got;
}

/// Credit goes back in large pieces: each costs both sides a call.
result<void> block_connection::take_credit(std::uint64_t bytes, const stream_socket::interrupted& stop) {
  used_credit_ += bytes;
  if (used_credit_ < window_ / 2 || reusable()) return {};
  return socket_.send(protocol::encode(protocol::grant{std::exchange(used_credit_, 0)}), read_timeout_, stop);
}

result<std::string> block_connection::receive_frame(const stream_socket::interrupted& stop) {
  std::array<char, protocol::length_size> length{};
  if (auto got = receive_small(length.data(), length.size(), stop); !got) return got.error();
  const auto size = protocol::read_length(length);
  if (size == 0 || size > protocol::max_server_frame)
    return make_error(ec::malformed, "a frame of " + std::to_string(size) + " bytes");
  std::string frame(size, '\0');
  if (auto got = receive_small(frame.data(), size, stop); !got) return got.error();
  return frame;
}

result<void> block_connection::receive_small(char* to, std::size_t count, const stream_socket::interrupted& stop) {
  while (count > 0) {
    if (small_begin_ == small_end_) {
      const auto got = socket_.receive_some(small_.data(), small_.size(), read_timeout_, stop);
      if (!got) return got.error();
      small_begin_ = 0;
      small_end_ = *got;
    }
    const auto taken = std::min(count, small_end_ - small_begin_);
    std::memcpy(to, small_.data() + small_begin_, taken);
    small_begin_ += taken;
    to += taken;
    count -= taken;
  }
  return {};
}

} // namespace troupe
