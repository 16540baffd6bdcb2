#pragma once

/// The frames between block client and block server as bytes (see block_server.hpp). Pure. Everything that is read came
/// from outside: each reader takes exactly its form and refuses the rest.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe::block_protocol {

inline constexpr std::uint32_t version = 3;
/// Most bytes behind the length of a client's frame, before and after it has proved the secret, and of a server's. All
/// are small: a block's bytes follow their frame instead of being part of it.
inline constexpr std::uint32_t max_stranger_frame = 1024;
inline constexpr std::uint32_t max_client_frame = 16 << 10;
inline constexpr std::uint32_t max_server_frame = 8192;
inline constexpr std::size_t max_cluster_id = 255;
inline constexpr std::size_t length_size = 4;
/// Most blocks of one request.
inline constexpr std::size_t max_blocks = 500;
/// The bucket that stands for a whole set, as a block file: lent only, to who takes it over.
inline constexpr std::uint32_t whole_set = 0xffff'ffff;
/// What a lent descriptor takes of the credit, however large the block: descriptors are few.
inline constexpr std::uint64_t lend_cost = 64 << 10;
/// More credit than this is malformed: sums stay far from their limits.
inline constexpr std::uint64_t max_credit = std::uint64_t{1} << 40;

enum class kind : std::uint8_t {
  hello = 1,
  challenge = 2,
  proof = 3,
  fetch = 4,
  data = 5,
  failure = 6,
  grant = 7,
  lend = 8,
  sockets = 9,
};

struct hello {
  std::uint32_t version = block_protocol::version;
  std::string cluster_id;
  std::string nonce;
};
struct challenge {
  std::string nonce;
  std::string proof;
};
/// One bucket, from `offset` within its pages on.
struct block_request {
  block_key key;
  std::uint32_t bucket = 0;
  std::uint64_t offset = 0;

  auto operator<=>(const block_request&) const = default;
};
/// Blocks that the client wants, in the order in which it wants them. The server sends as many bytes as it has credit
/// for: this much, and what is granted later.
struct fetch {
  std::uint64_t credit = 0;
  bool lend = false; ///< the client can take descriptors; over a local socket only
  std::vector<block_request> blocks;
};
/// More credit for the request under way; ignored where there is none any more.
struct grant {
  std::uint64_t credit = 0;
};
/// `size` bytes follow the frame: whole pages, each with a checksum of its own.
struct data {
  std::uint64_t size = 0;
};
/// The pages lie at this place of a file whose descriptor comes along with the frame.
struct lend {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// The client takes over from the server: it wants the sockets at which that listens. Answered over a local socket by
/// two lend frames, for TCP and for the file system; of size 0 and without a descriptor where there is none.
struct sockets {};

/// Whole frames, length included.
std::string encode(const hello& h);
std::string encode(const challenge& c);
std::string encode_proof(std::string_view proof);
/// @pre 1 to max_blocks blocks
std::string encode(const fetch& f);
std::string encode(const grant& g);
std::string encode(const sockets& s);
std::string encode(const data& d);
std::string encode(const lend& l);
/// The sentence is cut to what a frame takes.
std::string encode(const error& failure);

/// The number at the begin of a frame.
std::uint32_t read_length(const std::array<char, length_size>& bytes) noexcept;

/// Readers of what follows the length. Error malformed names what was expected.
result<hello> read_hello(std::string_view frame);
result<challenge> read_challenge(std::string_view frame);
result<std::string> read_proof(std::string_view frame);
result<fetch> read_fetch(std::string_view frame);
result<grant> read_grant(std::string_view frame);
result<sockets> read_sockets(std::string_view frame);
result<data> read_data(std::string_view frame);
result<lend> read_lend(std::string_view frame);
/// What a failure frame says; malformed where it is none.
error read_failure(std::string_view frame);
/// True when `frame` claims to be of this kind.
bool is(kind k, std::string_view frame) noexcept;

/// What each side signs: the proofs of both sides differ, so that neither can be sent back.
std::string server_proof(const session_secret& secret, std::string_view cluster_id, std::string_view client_nonce,
                         std::string_view server_nonce);
bool is_server_proof(const session_secret& secret, std::string_view proof, std::string_view cluster_id,
                     std::string_view client_nonce, std::string_view server_nonce);
std::string client_proof(const session_secret& secret, std::string_view cluster_id, std::string_view client_nonce,
                         std::string_view server_nonce);
bool is_client_proof(const session_secret& secret, std::string_view proof, std::string_view cluster_id,
                     std::string_view client_nonce, std::string_view server_nonce);

} // namespace troupe::block_protocol
