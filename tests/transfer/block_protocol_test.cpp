#include <random>

#include <gtest/gtest.h>

#include <troupe/runtime/transfer/block_protocol.hpp>

namespace troupe {
namespace {

namespace protocol = block_protocol;

std::string_view body(std::string_view frame) {
  std::array<char, protocol::length_size> length{};
  std::copy_n(frame.begin(), length.size(), length.begin());
  EXPECT_EQ(protocol::read_length(length), frame.size() - length.size());
  return frame.substr(length.size());
}

constexpr block_key key(std::uint64_t stage, partition_index partition, attempt_number attempt) {
  return output_key({stage}, partition, attempt);
}

TEST(block_protocol, frames_read_back_as_written) {
  const auto nonce = make_nonce();
  const auto hello = protocol::encode(protocol::hello{7, "cluster", nonce});
  EXPECT_EQ(protocol::read_hello(body(hello))->cluster_id, "cluster");
  EXPECT_EQ(protocol::read_hello(body(hello))->version, 7u);
  EXPECT_EQ(protocol::read_hello(body(hello))->nonce, nonce);
  const auto challenge = protocol::encode(protocol::challenge{nonce, std::string(proof_size, 'p')});
  EXPECT_EQ(protocol::read_challenge(body(challenge))->nonce, nonce);
  EXPECT_EQ(protocol::read_challenge(body(challenge))->proof, std::string(proof_size, 'p'));
  const auto proof = protocol::encode_proof(std::string(proof_size, 'q'));
  EXPECT_EQ(*protocol::read_proof(body(proof)), std::string(proof_size, 'q'));
  const std::vector<protocol::block_request> wanted{{key(0x0102030405060708u, 9, 10), 11, 1ull << 41},
                                                    {{block_kind::cached, 7, 8, 0}, 0, 0}};
  const auto fetch = protocol::encode(protocol::fetch{12, true, wanted});
  EXPECT_EQ(protocol::read_fetch(body(fetch))->blocks, wanted);
  EXPECT_EQ(protocol::read_fetch(body(fetch))->credit, 12u);
  EXPECT_TRUE(protocol::read_fetch(body(fetch))->lend);
  EXPECT_EQ(protocol::read_grant(body(protocol::encode(protocol::grant{1ull << 33})))->credit, 1ull << 33);
  const auto lend = protocol::encode(protocol::lend{1ull << 42, 1ull << 43});
  EXPECT_EQ(protocol::read_lend(body(lend))->offset, 1ull << 42);
  EXPECT_EQ(protocol::read_lend(body(lend))->size, 1ull << 43);
  const auto data = protocol::encode(protocol::data{1ull << 40});
  EXPECT_EQ(protocol::read_data(body(data))->size, 1ull << 40);
  const auto failure = protocol::encode(make_error(ec::not_found, "no such block"));
  EXPECT_EQ(protocol::read_failure(body(failure)), make_error(ec::not_found, "no such block"));
}

TEST(block_protocol, long_sentences_are_cut_to_a_frame) {
  const auto frame = protocol::encode(make_error(ec::io, std::string(100'000, 's')));
  EXPECT_EQ(body(frame).size(), protocol::max_server_frame);
  EXPECT_EQ(protocol::read_failure(body(frame)).code, ec::io);
}

TEST(block_protocol, every_shorter_or_longer_frame_is_malformed) {
  const auto nonce = make_nonce();
  const auto check = [](std::string_view whole, auto read) {
    EXPECT_TRUE(read(whole));
    for (std::size_t n = 0; n < whole.size(); ++n) {
      const auto cut = read(whole.substr(0, n));
      ASSERT_FALSE(cut) << n;
      EXPECT_EQ(cut.error().code, ec::malformed);
    }
    EXPECT_FALSE(read(std::string{whole} + "x"));
    std::string other{whole};
    other[0] = 99;
    EXPECT_FALSE(read(other));
  };
  const auto hello = protocol::encode(protocol::hello{1, "cluster", nonce});
  check(body(hello), protocol::read_hello);
  const auto challenge = protocol::encode(protocol::challenge{nonce, std::string(proof_size, 'p')});
  check(body(challenge), protocol::read_challenge);
  const auto proof = protocol::encode_proof(std::string(proof_size, 'q'));
  check(body(proof), protocol::read_proof);
  const auto fetch = protocol::encode(protocol::fetch{1, false, {{key(1, 2, 3), 4, 5}}});
  check(body(fetch), protocol::read_fetch);
  const auto grant = protocol::encode(protocol::grant{1});
  check(body(grant), protocol::read_grant);
  const auto lend = protocol::encode(protocol::lend{1, 2});
  check(body(lend), protocol::read_lend);
  const auto data = protocol::encode(protocol::data{1});
  check(body(data), protocol::read_data);
}

TEST(block_protocol, requests_are_bounded) {
  std::vector<protocol::block_request> many(protocol::max_blocks, {key(1, 2, 3), 4, 5});
  const auto most = protocol::encode(protocol::fetch{1, false, many});
  EXPECT_LE(body(most).size(), protocol::max_client_frame);
  EXPECT_EQ(protocol::read_fetch(body(most))->blocks.size(), protocol::max_blocks);
  many.emplace_back();
  EXPECT_FALSE(protocol::read_fetch(body(protocol::encode(protocol::fetch{1, false, many}))));
  EXPECT_FALSE(protocol::read_fetch(body(protocol::encode(protocol::fetch{1, false, {}}))));
  EXPECT_FALSE(protocol::read_fetch(body(protocol::encode(protocol::fetch{protocol::max_credit + 1, false, many}))));
  EXPECT_FALSE(protocol::read_grant(body(protocol::encode(protocol::grant{protocol::max_credit + 1}))));
}

TEST(block_protocol, other_protocols_and_kinds_of_blocks_are_malformed) {
  auto hello = protocol::encode(protocol::hello{1, "cluster", make_nonce()});
  hello[5] ^= 1; // of what every hello begins with
  EXPECT_FALSE(protocol::read_hello(body(hello)));
  auto fetch = protocol::encode(protocol::fetch{1, false, {{key(1, 2, 3), 4, 5}}});
  fetch[14] = 99; // behind length, kind, credit and whether descriptors may be lent
  EXPECT_FALSE(protocol::read_fetch(body(fetch)));
}

TEST(block_protocol, a_failure_of_an_unknown_code_is_malformed) {
  auto frame = protocol::encode(make_error(ec::io, "x"));
  frame[5] = 0;
  EXPECT_EQ(protocol::read_failure(body(frame)).code, ec::malformed);
  frame[5] = 77;
  EXPECT_EQ(protocol::read_failure(body(frame)).code, ec::malformed);
  EXPECT_EQ(protocol::read_failure("").code, ec::malformed);
}

TEST(block_protocol, random_bytes_are_survived) {
  std::mt19937_64 random{20240611};
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes(random() % 120, '\0');
    for (auto& c : bytes) c = static_cast<char>(random());
    if (!bytes.empty()) bytes[0] = static_cast<char>(random() % 10);
    EXPECT_FALSE(protocol::read_hello(bytes)) << "magic and length cannot be met by chance";
    (void) protocol::read_challenge(bytes);
    (void) protocol::read_proof(bytes);
    (void) protocol::read_fetch(bytes);
    (void) protocol::read_grant(bytes);
    (void) protocol::read_lend(bytes);
    (void) protocol::read_data(bytes);
    EXPECT_NE(protocol::read_failure(bytes).code, ec::none);
  }
}

TEST(block_protocol, the_two_sides_sign_differently) {
  const auto secret = session_secret::generate();
  const auto server = protocol::server_proof(secret, "c", "n1", "n2");
  const auto client = protocol::client_proof(secret, "c", "n1", "n2");
  EXPECT_TRUE(protocol::is_server_proof(secret, server, "c", "n1", "n2"));
  EXPECT_TRUE(protocol::is_client_proof(secret, client, "c", "n1", "n2"));
  EXPECT_FALSE(protocol::is_client_proof(secret, server, "c", "n1", "n2"));
  EXPECT_FALSE(protocol::is_server_proof(secret, client, "c", "n1", "n2"));
  EXPECT_FALSE(protocol::is_client_proof(secret, client, "d", "n1", "n2"));
  EXPECT_FALSE(protocol::is_client_proof(secret, client, "c", "n2", "n1"));
}

} // namespace
} // namespace troupe
