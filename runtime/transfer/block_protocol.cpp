#include <troupe/runtime/transfer/block_protocol.hpp>

namespace troupe::block_protocol {

namespace {

constexpr std::string_view magic = "TRPB";
constexpr std::string_view server_label = "troupe-block-server";
constexpr std::string_view client_label = "troupe-block-client";

template <class Number>
void put(std::string& to, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    to.push_back(static_cast<char>(static_cast<std::uint64_t>(number) >> (8 * i)));
}

std::string begin_frame(kind k) {
  std::string frame(length_size, '\0');
  frame.push_back(static_cast<char>(k));
  return frame;
}

std::string finish_frame(std::string frame) {
  std::string length;
  put(length, static_cast<std::uint32_t>(frame.size() - length_size));
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
    std::uint64_t n = 0;
    const auto taken = bytes(sizeof(Number));
    for (std::size_t i = 0; i < taken.size(); ++i) n |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return static_cast<Number>(n);
  }
  void expect(kind k) { good_ = number<std::uint8_t>() == static_cast<std::uint8_t>(k) && good_; }
  void require(bool condition) { good_ = good_ && condition; }
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
  put(frame, h.version);
  put(frame, static_cast<std::uint16_t>(h.cluster_id.size()));
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

std::string encode(const get& g) {
  auto frame = begin_frame(kind::get);
  put(frame, static_cast<std::uint8_t>(g.key.kind));
  put(frame, g.key.source);
  put(frame, g.key.partition);
  put(frame, g.key.attempt);
  put(frame, g.bucket);
  return finish_frame(std::move(frame));
}

std::string encode(const data& d) {
  auto frame = begin_frame(kind::data);
  put(frame, d.size);
  return finish_frame(std::move(frame));
}

std::string encode(const error& failure) {
  auto frame = begin_frame(kind::failure);
  put(frame, static_cast<std::uint16_t>(failure.code));
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

result<get> read_get(std::string_view frame) {
  reader in{frame};
  in.expect(kind::get);
  get g;
  const auto of = in.number<std::uint8_t>();
  in.require(of <= static_cast<std::uint8_t>(block_kind::cached));
  g.key.kind = static_cast<block_kind>(of);
  g.key.source = in.number<std::uint64_t>();
  g.key.partition = in.number<partition_index>();
  g.key.attempt = in.number<attempt_number>();
  g.bucket = in.number<std::uint32_t>();
  if (!in.done()) return malformed("a request for a block");
  return g;
}

result<data> read_data(std::string_view frame) {
  reader in{frame};
  in.expect(kind::data);
  data d;
  d.size = in.number<std::uint64_t>();
  if (!in.done()) return malformed("the announcement of a block");
  return d;
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
