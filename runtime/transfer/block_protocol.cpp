#include <troupe/runtime/transfer/block_protocol.hpp>

#include <troupe/runtime/little_endian.hpp>

namespace troupe::block_protocol {

namespace {

constexpr std::string_view magic = "TRPB";
constexpr std::string_view server_label = "troupe-block-server";
constexpr std::string_view client_label = "troupe-block-client";

using little_endian::append;

std::string begin_frame(kind k) {
  std::string frame(length_size, '\0');
  frame.push_back(static_cast<char>(k));
  return frame;
}

std::string finish_frame(std::string frame) {
  std::string length;
  append(length, static_cast<std::uint32_t>(frame.size() - length_size));
  frame.replace(0, length_size, length);
  return frame;
}

/// Takes a frame apart. Once something is missing, everything is.
class reader {
public:
  explicit reader(std::string_view bytes) : rest_(bytes) {}

  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class Number>
  Number number() {
    const auto taken = bytes(sizeof(Number));
    return taken.empty() ? Number{} : little_endian::read<Number>(taken);
  }
  void expect(kind k) { good_ = number<std::uint8_t>() == static_cast<std::uint8_t>(k) && good_; }
  void require(bool condition) { good_ = good_ && condition; }
  bool more() const noexcept { return good_ && !rest_.empty(); }
  /// True when all was there and nothing is left.
  bool done() const noexcept { return good_ && rest_.empty(); }

private:
  std::string_view rest_;
  bool good_ = true;
};

error malformed(std::string_view expected) {
  return make_error(ec::malformed, "block connection: expected " + std::string{expected});
}

} // namespace

std::string encode(const hello& h) {
  auto frame = begin_frame(kind::hello);
  frame.append(magic);
  append(frame, h.version);
  append(frame, static_cast<std::uint16_t>(h.cluster_id.size()));
  frame.append(h.cluster_id);
  frame.append(h.nonce);
  return finish_frame(std::move(frame));
}

std::string encode(const challenge& c) {
  auto frame = begin_frame(kind::challenge);
  frame.append(c.nonce);
  frame.append(c.proof);
  return finish_frame(std::move(frame));
}

std::string encode_proof(std::string_view proof) {
  auto frame = begin_frame(kind::proof);
  frame.append(proof);
  return finish_frame(std::move(frame));
}

std::string encode(const fetch& f) {
  auto frame = begin_frame(kind::fetch);
  append(frame, f.credit);
  append(frame, static_cast<std::uint8_t>(f.lend ? 1 : 0));
  for (const auto& block : f.blocks) {
    append(frame, static_cast<std::uint8_t>(block.key.kind));
    append(frame, block.key.source);
    append(frame, block.key.partition);
    append(frame, block.key.attempt);
    append(frame, block.bucket);
    append(frame, block.offset);
  }
  return finish_frame(std::move(frame));
}

std::string encode(const grant& g) {
  auto frame = begin_frame(kind::grant);
  append(frame, g.credit);
  return finish_frame(std::move(frame));
}

std::string encode(const sockets&) { return finish_frame(begin_frame(kind::sockets)); }

std::string encode(const data& d) {
  auto frame = begin_frame(kind::data);
  append(frame, d.size);
  return finish_frame(std::move(frame));
}

std::string encode(const lend& l) {
  auto frame = begin_frame(kind::lend);
  append(frame, l.offset);
  append(frame, l.size);
  return finish_frame(std::move(frame));
}

std::string encode(const error& failure) {
  auto frame = begin_frame(kind::failure);
  append(frame, static_cast<std::uint16_t>(failure.code));
  frame.append(std::string_view{failure.message}.substr(0, max_server_frame - 3));
  return finish_frame(std::move(frame));
}

std::uint32_t read_length(const std::array<char, length_size>& bytes) noexcept {
  return reader{{bytes.data(), bytes.size()}}.number<std::uint32_t>();
}

result<hello> read_hello(std::string_view frame) {
  reader in{frame};
  in.expect(kind::hello);
  in.require(in.bytes(magic.size()) == magic);
  hello h;
  h.version = in.number<std::uint32_t>();
  const auto length = in.number<std::uint16_t>();
  in.require(length <= max_cluster_id);
  h.cluster_id = in.bytes(length);
  h.nonce = in.bytes(nonce_size);
  if (!in.done()) return malformed("a hello");
  return h;
}

result<challenge> read_challenge(std::string_view frame) {
  reader in{frame};
  in.expect(kind::challenge);
  challenge c;
  c.nonce = in.bytes(nonce_size);
  c.proof = in.bytes(proof_size);
  if (!in.done()) return malformed("a challenge");
  return c;
}

result<std::string> read_proof(std::string_view frame) {
  reader in{frame};
  in.expect(kind::proof);
  std::string proof{in.bytes(proof_size)};
  if (!in.done()) return malformed("a proof");
  return proof;
}

result<fetch> read_fetch(std::string_view frame) {
  reader in{frame};
  in.expect(kind::fetch);
  fetch f;
  f.credit = in.number<std::uint64_t>();
  in.require(f.credit <= max_credit);
  const auto lend = in.number<std::uint8_t>();
  in.require(lend <= 1);
  f.lend = lend == 1;
  while (in.more() && f.blocks.size() < max_blocks) {
    auto& block = f.blocks.emplace_back();
    const auto of = in.number<std::uint8_t>();
    in.require(of <= static_cast<std::uint8_t>(block_kind::broadcast));
    block.key.kind = static_cast<block_kind>(of);
    block.key.source = in.number<std::uint64_t>();
    block.key.partition = in.number<partition_index>();
    block.key.attempt = in.number<attempt_number>();
    block.bucket = in.number<std::uint32_t>();
    block.offset = in.number<std::uint64_t>();
  }
  if (!in.done() || f.blocks.empty()) return malformed("a request for blocks");
  return f;
}

result<grant> read_grant(std::string_view frame) {
  reader in{frame};
  in.expect(kind::grant);
  grant g;
  g.credit = in.number<std::uint64_t>();
  in.require(g.credit <= max_credit);
  if (!in.done()) return malformed("a grant of credit");
  return g;
}

result<sockets> read_sockets(std::string_view frame) {
  reader in{frame};
  in.expect(kind::sockets);
  if (!in.done()) return malformed("a request for sockets");
  return sockets{};
}

result<data> read_data(std::string_view frame) {
  reader in{frame};
  in.expect(kind::data);
  data d;
  d.size = in.number<std::uint64_t>();
  if (!in.done()) return malformed("the announcement of a block");
  return d;
}

result<lend> read_lend(std::string_view frame) {
  reader in{frame};
  in.expect(kind::lend);
  lend l;
  l.offset = in.number<std::uint64_t>();
  l.size = in.number<std::uint64_t>();
  if (!in.done()) return malformed("the place of a block");
  return l;
}

error read_failure(std::string_view frame) {
  reader in{frame};
  in.expect(kind::failure);
  const auto code = in.number<std::uint16_t>();
  in.require(code != 0 && code <= static_cast<std::uint16_t>(last_code));
  if (frame.size() < 3) return malformed("a failure");
  const auto sentence = in.bytes(frame.size() - 3);
  if (!in.done()) return malformed("a failure");
  return make_error(static_cast<ec>(code), std::string{sentence});
}

bool is(kind k, std::string_view frame) noexcept {
  return !frame.empty() && static_cast<std::uint8_t>(frame.front()) == static_cast<std::uint8_t>(k);
}

std::string server_proof(const session_secret& secret, std::string_view cluster_id, std::string_view client_nonce,
                         std::string_view server_nonce) {
  return secret.sign({server_label, cluster_id, client_nonce, server_nonce});
}

bool is_server_proof(const session_secret& secret, std::string_view proof, std::string_view cluster_id,
                     std::string_view client_nonce, std::string_view server_nonce) {
  return secret.verify(proof, {server_label, cluster_id, client_nonce, server_nonce});
}

std::string client_proof(const session_secret& secret, std::string_view cluster_id, std::string_view client_nonce,
                         std::string_view server_nonce) {
  return secret.sign({client_label, cluster_id, client_nonce, server_nonce});
}

bool is_client_proof(const session_secret& secret, std::string_view proof, std::string_view cluster_id,
                     std::string_view client_nonce, std::string_view server_nonce) {
  return secret.verify(proof, {client_label, cluster_id, client_nonce, server_nonce});
}

} // namespace troupe::block_protocol
