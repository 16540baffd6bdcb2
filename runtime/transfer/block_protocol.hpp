#pragma once

/// The frames between block client and block server as bytes (see block_server.hpp). Pure. Everything that is read came
/// from outside: each reader takes exactly its form and refuses the rest.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage/block_store.hpp>
#include <troupe/runtime/transfer/handshake.hpp>

namespace troupe::block_protocol {

inline constexpr std::uint32_t version = 2;
/// Most bytes behind the length of a client's frame, and of a server's. Both are small: a block's bytes follow their
/// frame instead of being part of it.
inline constexpr std::uint32_t max_client_frame = 1024;
inline constexpr std::uint32_t max_server_frame = 8192;
inline constexpr std::size_t max_cluster_id = 255;
inline constexpr std::size_t length_size = 4;

enum class kind : std::uint8_t { hello = 1, challenge = 2, proof = 3, get = 4, data = 5, failure = 6 };

struct hello {
  std::uint32_t version = block_protocol::version;
  std::string cluster_id;
  std::string nonce;
};
struct challenge {
  std::string nonce;
  std::string proof;
};
struct get {
  block_key key;
  std::uint32_t bucket = 0;
};
/// `size` bytes follow the frame: whole pages, each with a checksum of its own.
struct data {
  std::uint64_t size = 0;
};

/// Whole frames, length included.
std::string encode(const hello& h);
std::string encode(const challenge& c);
std::string encode_proof(std::string_view proof);
std::string encode(const get& g);
std::string encode(const data& d);
/// The sentence is cut to what a frame takes.
std::string encode(const error& failure);

/// The number at the begin of a frame.
std::uint32_t read_length(const std::array<char, length_size>& bytes) noexcept;

/// Readers of what follows the length. Error malformed names what was expected.
result<hello> read_hello(std::string_view frame);
result<challenge> read_challenge(std::string_view frame);
result<std::string> read_proof(std::string_view frame);
result<get> read_get(std::string_view frame);
result<data> read_data(std::string_view frame);
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
