#include <troupe/runtime/transfer/serving_connection.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

namespace troupe {

namespace protocol = block_protocol;

namespace {

/// Bytes that are handed to the socket at once; then others have their turn. What the kernel has no room for waits
/// where it lies: a slow reader costs no memory beyond the socket's buffer.
constexpr std::uint64_t chunk_size = 512 << 10;
constexpr std::size_t most_buffers = 64; ///< at once
/// How long a refused peer may take to read its failure frame.
constexpr duration linger_time = std::chrono::seconds{1};

} // namespace

serving_connection::serving_connection(socket s, bool local, server_state& server,
                                       std::function<void(serving_connection&)> on_closed)
  : socket_(std::move(s)), local_(local), timer_(socket_.get_executor()), server_(server),
    on_closed_(std::move(on_closed)) {}

void serving_connection::start() {
  asio::error_code failed;
  if (!local_) socket_.set_option(asio::ip::tcp::no_delay{true}, failed);
  socket_.native_non_blocking(true, failed);
  if (local_) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket_.native_handle(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != ::geteuid())
      return reject(make_error(ec::unauthenticated, "another user's processes are served over the network only"));
  }
  set_deadline(server_.opts.handshake_timeout);
  read_frame();
}

void serving_connection::close() {
  if (!socket_.is_open()) return;
  asio::error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  view_ = {};
  on_closed_(*this);
}

/// The timer is not moved for every chunk: when it fires it looks whether the deadline has moved meanwhile.
void serving_connection::set_deadline(duration from_now) {
  deadline_ = std::chrono::steady_clock::now() + from_now;
  if (!timer_armed_ || deadline_ < timer_.expiry()) arm_timer();
}

void serving_connection::arm_timer() {
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

/// Counts the peer as rejected, says why (once), and closes when it has had the time to read that. Within the bytes of
/// a block nothing can be said.
void serving_connection::reject(const error& why) {
  ++server_.rejected;
  if (step_ == step::serving) return close();
  step_ = step::rejected;
  failure_ = protocol::encode(why);
  set_deadline(linger_time);
  asio::async_write(socket_, asio::buffer(failure_), [self = shared_from_this()](asio::error_code failed, std::size_t) {
    if (self->over(failed)) return self->close();
    asio::error_code ignored;
    self->socket_.shutdown(socket::shutdown_send, ignored);
    self->drain();
  });
}

/// Reads what the peer still sends: closing with unread bytes would reset the connection and take the failure frame
/// with it. The deadline ends it.
void serving_connection::drain() {
  socket_.async_read_some(asio::buffer(drained_), [self = shared_from_this()](asio::error_code failed, std::size_t) {
    if (self->over(failed)) return self->close();
    self->drain();
  });
}

void serving_connection::read_frame() {
  asio::async_read(socket_, asio::buffer(length_), [self = shared_from_this()](asio::error_code failed, std::size_t) {
    if (self->over(failed)) return self->end_of_stream();
    if (self->step_ == step::rejected) return;
    const auto length = protocol::read_length(self->length_);
    const bool stranger = self->step_ == step::hello || self->step_ == step::proof;
    if (length == 0 || length > (stranger ? protocol::max_stranger_frame : protocol::max_client_frame))
      return self->reject(make_error(ec::malformed, "a frame of " + std::to_string(length) + " bytes"));
    self->read_body(length);
  });
}

void serving_connection::read_body(std::size_t length) {
  body_.resize(length);
  asio::async_read(socket_, asio::buffer(body_), [self = shared_from_this()](asio::error_code failed, std::size_t) {
    if (self->over(failed)) return self->end_of_stream();
    if (self->step_ != step::rejected) self->on_frame(self->body_);
  });
}

/// The peer is gone. That it left before it proved anything is worth counting, that it left later is not.
void serving_connection::end_of_stream() {
  if (socket_.is_open() && (step_ == step::hello || step_ == step::proof)) ++server_.rejected;
  if (step_ != step::rejected) close();
}

void serving_connection::on_frame(std::string_view frame) {
  switch (step_) {
  case step::hello: return on_hello(frame);
  case step::proof: return on_proof(frame);
  case step::idle:
    if (protocol::is(protocol::kind::grant, frame)) return on_grant(frame); // for what has been sent by now
    if (protocol::is(protocol::kind::sockets, frame)) return on_sockets(frame);
    return on_fetch(frame);
  case step::serving: return on_grant(frame);
  case step::rejected: return;
  }
}

void serving_connection::on_hello(std::string_view frame) {
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
  handshake_ = protocol::encode(protocol::challenge{
      server_nonce_, protocol::server_proof(server_.secret, server_.opts.cluster_id, client_nonce_, server_nonce_)});
  asio::async_write(socket_, asio::buffer(handshake_),
                    [self = shared_from_this()](asio::error_code failed, std::size_t) {
                      if (self->over(failed)) return self->end_of_stream();
                      if (self->step_ != step::rejected) self->read_frame();
                    });
}

void serving_connection::on_proof(std::string_view frame) {
  const auto proof = protocol::read_proof(frame);
  if (!proof) return reject(proof.error());
  if (!protocol::is_client_proof(server_.secret, *proof, server_.opts.cluster_id, client_nonce_, server_nonce_))
    return reject(make_error(ec::unauthenticated, "the peer did not prove the session's secret"));
  become_idle();
  read_frame();
}

void serving_connection::on_fetch(std::string_view frame) {
  auto fetch = protocol::read_fetch(frame);
  if (!fetch) return reject(fetch.error());
  if (fetch->lend && !local_)
    return reject(make_error(ec::malformed, "descriptors can be lent to processes of this machine only"));
  begin_request(std::move(*fetch));
}

void serving_connection::on_sockets(std::string_view frame) {
  const auto wanted = protocol::read_sockets(frame);
  if (!wanted) return reject(wanted.error());
  if (!local_) return reject(make_error(ec::malformed, "sockets can be lent to processes of this machine only"));
  listeners_ = {server_.local_listener, server_.tcp_listener}; // from the back
  protocol::fetch nothing_else;
  nothing_else.credit = protocol::max_credit;
  begin_request(std::move(nothing_else));
}

void serving_connection::begin_request(protocol::fetch request) {
  request_ = std::move(request);
  next_ = 0;
  credit_ = static_cast<std::int64_t>(request_.credit);
  left_ = 0;
  header_.clear();
  header_at_ = 0;
  step_ = step::serving;
  serve();
  if (socket_.is_open()) read_frame();
}

void serving_connection::on_grant(std::string_view frame) {
  const auto grant = protocol::read_grant(frame);
  if (!grant) return reject(grant.error());
  if (step_ == step::serving) {
    credit_ =
        std::min(credit_ + static_cast<std::int64_t>(grant->credit), static_cast<std::int64_t>(protocol::max_credit));
    if (!waiting_) serve();
  }
  if (socket_.is_open()) read_frame();
}

void serving_connection::become_idle() {
  step_ = step::idle;
  view_ = {}; // what it sent last is not to stay because of a peer that may ask for something some time
  idle_since_ = std::chrono::steady_clock::now();
  clear_deadline();
  server_.on_idle();
}

/// Sends until the socket takes no more, the credit is used up, the request is done, or others should have a turn.
void serving_connection::serve() {
  set_deadline(server_.opts.send_timeout);
  for (std::uint64_t sent = 0; sent < chunk_size;) {
    if (header_at_ == header_.size() && left_ == 0 && !next_block()) return become_idle();
    if ((left_ > 0 || lending_) && credit_ <= 0) return; // a grant goes on
    const auto before = left_;
    const auto went = send_some();
    if (went == progress::failed) return close();
    if (went == progress::blocked) break;
    // A whole set may have been moved to a file for this: others have their turn at once.
    sent += lends_whole_ ? chunk_size : before - std::min(before, left_) + 1;
  }
  if (header_at_ == header_.size() && left_ == 0 && next_ == request_.blocks.size() && listeners_.empty())
    return become_idle();
  wait_until_writable();
}

void serving_connection::wait_until_writable() {
  waiting_ = true;
  socket_.async_wait(socket::wait_write, [self = shared_from_this()](asio::error_code failed) {
    self->waiting_ = false;
    if (self->over(failed)) return self->close();
    self->serve();
  });
}

/// Makes the next block of the request the one at hand. False where there is none.
bool serving_connection::next_block() {
  view_ = {};
  lending_ = false;
  lends_whole_ = false;
  if (!listeners_.empty()) {
    lent_ = listeners_.back();
    listeners_.pop_back();
    lends_whole_ = true;
    if (lent_ == server_.local_listener) server_.local_listener_lent = true;
    lending_ = lent_ >= 0;
    header_at_ = 0;
    header_ = protocol::encode(protocol::lend{0, lending_ ? 1u : 0u});
    return true;
  }
  if (next_ == request_.blocks.size()) return false;
  const auto& wanted = request_.blocks[next_++];
  const bool whole = wanted.bucket == protocol::whole_set && request_.lend;
  auto view = whole ? server_.blocks.get_whole(wanted.key) : server_.blocks.get(wanted.key, wanted.bucket);
  if (view && wanted.offset > view->size)
    view = make_error(ec::invalid_argument, "the block has " + std::to_string(view->size) + " bytes; what follows " +
                                                std::to_string(wanted.offset) + " was asked for");
  header_at_ = 0;
  if (!view) {
    header_ = protocol::encode(view.error());
    next_ = request_.blocks.size();
    return true;
  }
  view_ = std::move(*view);
  const auto size = view_.size - wanted.offset;
  file_at_ = view_.piece.offset + wanted.offset;
  if (request_.lend && view_.in_file() && size > 0) {
    lending_ = true;
    lends_whole_ = whole;
    left_if_sent_ = size;
    lent_ = view_.piece.file->get();
    header_ = protocol::encode(protocol::lend{file_at_, size});
    return true;
  }
  header_ = protocol::encode(protocol::data{size});
  left_ = size;
  part_ = 0;
  part_at_ = 0;
  for (auto skip = wanted.offset; !view_.in_file() && skip > 0;) {
    const auto taken = std::min<std::uint64_t>(skip, view_.parts[part_].size());
    if (taken == view_.parts[part_].size())
      ++part_;
    else
      part_at_ = static_cast<std::size_t>(taken);
    skip -= taken;
  }
  return true;
}

serving_connection::progress serving_connection::send_some() {
  if (lending_) return send_with_descriptor();
  if (header_at_ < header_.size() || !view_.in_file()) return send_from_memory();
  return send_from_file();
}

/// What is left of the header, and pieces that follow it, up to a chunk: few calls also where pieces are small.
serving_connection::progress serving_connection::send_from_memory() {
  std::array<iovec, most_buffers> buffers;
  std::size_t count = 0;
  if (header_at_ < header_.size()) buffers[count++] = {header_.data() + header_at_, header_.size() - header_at_};
  const bool more = left_ > 0;
  if (!view_.in_file() && credit_ > 0) {
    auto room = std::min({chunk_size, left_, static_cast<std::uint64_t>(credit_)});
    auto at = part_at_;
    for (auto part = part_; room > 0 && count < buffers.size(); ++part, at = 0) {
      const auto bytes = view_.parts[part].substr(at, static_cast<std::size_t>(room));
      buffers[count++] = {const_cast<char*>(bytes.data()), bytes.size()};
      room -= bytes.size();
    }
  }
  msghdr message{};
  message.msg_iov = buffers.data();
  message.msg_iovlen = count;
  const auto n = ::sendmsg(socket_.native_handle(), &message,
                           MSG_NOSIGNAL | MSG_DONTWAIT | (more && view_.in_file() ? MSG_MORE : 0));
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? progress::blocked : progress::failed;
  auto sent = static_cast<std::uint64_t>(n);
  const auto of_header = std::min<std::uint64_t>(sent, header_.size() - header_at_);
  header_at_ += static_cast<std::size_t>(of_header);
  advance(sent - of_header);
  return progress::done;
}

serving_connection::progress serving_connection::send_from_file() {
  const auto room = std::min({chunk_size, left_, static_cast<std::uint64_t>(credit_)});
  auto at = static_cast<off_t>(file_at_);
  const auto n = ::sendfile(socket_.native_handle(), view_.piece.file->get(), &at, static_cast<std::size_t>(room));
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? progress::blocked : progress::failed;
  if (n == 0) return progress::failed; // somebody has cut the file short
  file_at_ += static_cast<std::uint64_t>(n);
  advance(static_cast<std::uint64_t>(n));
  return progress::done;
}

serving_connection::progress serving_connection::send_with_descriptor() {
  iovec bytes{header_.data(), header_.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  auto* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(part), &lent_, sizeof lent_);
  const auto n = ::sendmsg(socket_.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && errno == ETOOMANYREFS && !lends_whole_) {
    // Descriptors on their way are counted by the system, for all of the user's processes together: beyond its limit
    // the bytes go.
    lending_ = false;
    header_ = protocol::encode(protocol::data{left_if_sent_});
    left_ = left_if_sent_;
    return progress::done;
  }
  if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? progress::blocked : progress::failed;
  lending_ = false; // what is left of the header goes without it
  header_at_ = static_cast<std::size_t>(n);
  credit_ -= static_cast<std::int64_t>(protocol::lend_cost);
  return progress::done;
}

/// So many bytes of the block at hand have gone.
void serving_connection::advance(std::uint64_t bytes) {
  left_ -= bytes;
  credit_ -= static_cast<std::int64_t>(bytes);
  if (view_.in_file()) return;
  while (bytes > 0) {
    const auto taken = std::min<std::uint64_t>(bytes, view_.parts[part_].size() - part_at_);
    part_at_ += static_cast<std::size_t>(taken);
    bytes -= taken;
    if (part_at_ == view_.parts[part_].size()) {
      ++part_;
      part_at_ = 0;
    }
  }
}

} // namespace troupe
