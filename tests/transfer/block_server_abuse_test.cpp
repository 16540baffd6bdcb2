#include <fstream>
#include <random>

#include "transfer_fixture.hpp"

namespace troupe::testing_transfer {
namespace {

namespace protocol = block_protocol;

std::string length_of(std::uint32_t n) {
  return {static_cast<char>(n), static_cast<char>(n >> 8), static_cast<char>(n >> 16), static_cast<char>(n >> 24)};
}

/// With credit for all of it.
std::string request_for(const block_key& key) {
  return protocol::encode(protocol::fetch{protocol::max_credit, false, {{key, 0, 0}}});
}

TEST_F(transfer_test, bad_lengths_get_one_failure_frame_and_the_end) {
  serve();
  for (const std::uint32_t length : {0u, protocol::max_stranger_frame + 1, 0x7fffffffu, 0xffffffffu}) {
    auto s = raw_socket::connect(server->port());
    s.send(length_of(length) + "whatever follows");
    EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::malformed) << length;
    EXPECT_TRUE(s.ended());
  }
  EXPECT_EQ(server->rejected(), 4u);
  auto s = authenticated();
  s.send(length_of(protocol::max_client_frame + 1));
  EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::malformed);
  EXPECT_TRUE(s.ended());
}

TEST_F(transfer_test, nothing_is_served_before_the_handshake) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"x"})));
  auto s = raw_socket::connect(server->port());
  s.send(request_for(key(1, 0, 0)));
  EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::malformed);
  EXPECT_TRUE(s.ended());
}

TEST_F(transfer_test, a_proof_is_good_for_one_connection) {
  serve();
  const auto nonce = make_nonce();
  auto first = raw_socket::connect(server->port());
  first.send(protocol::encode(protocol::hello{protocol::version, cluster, nonce}));
  const auto challenge = protocol::read_challenge(first.receive_frame());
  ASSERT_TRUE(challenge);
  const auto proof = protocol::client_proof(secret, cluster, nonce, challenge->nonce);
  auto second = raw_socket::connect(server->port());
  second.send(protocol::encode(protocol::hello{protocol::version, cluster, nonce}));
  second.receive_frame();
  second.send(protocol::encode_proof(proof));
  EXPECT_EQ(protocol::read_failure(second.receive_frame()).code, ec::unauthenticated);
}

TEST_F(transfer_test, a_handshake_that_takes_too_long_is_ended) {
  block_server::options o;
  o.handshake_timeout = std::chrono::milliseconds{20};
  serve(o);
  auto silent = raw_socket::connect(server->port());
  EXPECT_EQ(protocol::read_failure(silent.receive_frame()).code, ec::unauthenticated);
  auto halfway = raw_socket::connect(server->port());
  halfway.send(length_of(100) + "x");
  EXPECT_EQ(protocol::read_failure(halfway.receive_frame()).code, ec::unauthenticated);
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(halfway.ended());
  EXPECT_EQ(server->rejected(), 2u);
}

/// One that is turned away would take what it wants for lost.
TEST_F(transfer_test, connections_are_bounded_and_who_comes_too_many_waits) {
  block_server::options o;
  o.max_connections = 2;
  o.handshake_timeout = deadline; // those that stop in it are to stay
  serve(o);
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"first", "second"})));
  const auto first = testing::stored(5), second = testing::stored(6);
  auto reader = authenticated();
  reader.send(protocol::encode(protocol::fetch{first, false, {{key(1, 0, 0), 0, 0}, {key(1, 0, 0), 1, 0}}}));
  EXPECT_EQ(protocol::read_data(reader.receive_frame())->size, first);
  EXPECT_EQ(reader.receive(first), page_of("first")); // from here on it is not idle
  auto stranger = raw_socket::connect(server->port());
  const auto hello = protocol::encode(protocol::hello{protocol::version, cluster, make_nonce()});
  stranger.send(hello);
  EXPECT_FALSE(stranger.receive_frame().empty()) << "the challenge shows that it was admitted";
  auto third = raw_socket::connect(server->port());
  third.send(hello);
  EXPECT_TRUE(third.is_quiet_for(std::chrono::milliseconds{20}));
  reader.send(protocol::encode(protocol::grant{second}));
  EXPECT_EQ(protocol::read_data(reader.receive_frame())->size, second);
  EXPECT_EQ(reader.receive(second), page_of("second"));
  EXPECT_FALSE(third.receive_frame().empty()) << "the reader, idle now, makes room for it";
  EXPECT_TRUE(reader.ended());
  auto fourth = raw_socket::connect(server->port());
  fourth.send(hello);
  stranger.close();
  EXPECT_FALSE(fourth.receive_frame().empty()) << "one that goes makes room, too";
  EXPECT_EQ(server->rejected(), 1u) << "the stranger, who proved nothing";
}

/// A peer may ask for something some time; until then what it was sent last is nobody's.
TEST_F(transfer_test, an_idle_connection_holds_no_block) {
  serve();
  // Others have their turn after 512 KiB: around that the last block is also the last of its turn.
  for (std::uint32_t count = 16; count < 20; ++count) {
    ASSERT_TRUE(store->put(key(1, 0, 0), content_of(std::vector<std::string>(count, std::string(30 << 10, 'b')))));
    protocol::fetch all{protocol::max_credit, false, {}};
    for (std::uint32_t bucket = 0; bucket < count; ++bucket) all.blocks.push_back({key(1, 0, 0), bucket, 0});
    auto s = authenticated();
    s.send(protocol::encode(all));
    for (std::uint32_t bucket = 0; bucket < count; ++bucket) {
      const auto announced = protocol::read_data(s.receive_frame());
      ASSERT_TRUE(announced);
      EXPECT_EQ(s.receive(announced->size).size(), announced->size);
    }
    store->remove(stage_id{1});
    const auto end = std::chrono::steady_clock::now() + deadline;
    while (store->bytes_in_memory() > 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    ASSERT_EQ(store->bytes_in_memory(), 0u) << count;
  }
}

TEST_F(transfer_test, readers_that_take_nothing_cost_no_memory_and_stop_nobody) {
  serve();
  constexpr std::size_t size = 64 << 20;
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(size, 'b')}))); // beyond the limit: in a file
  ASSERT_TRUE(store->put(key(1, 1, 0), content_of({"small"})));
  auto c = client();
  ASSERT_TRUE(c.fetch_value(endpoint(), key(1, 1, 0), 0));
  const auto before = anonymous_memory();
  std::vector<raw_socket> stuck;
  for (int i = 0; i < 8; ++i) {
    stuck.push_back(authenticated());
    stuck.back().send(request_for(key(1, 0, 0)));
    EXPECT_TRUE(protocol::read_data(stuck.back().receive_frame())) << "it has begun to send";
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(c.fetch_value(endpoint(), key(1, 1, 0), 0));
  EXPECT_LT(anonymous_memory(), before + size / 2);
  // One that wakes up gets the rest.
  EXPECT_TRUE(stuck[3].receive(testing::stored(size)) == page_of(std::string(size, 'b')));
}

TEST_F(transfer_test, a_reader_that_takes_nothing_for_too_long_is_dropped) {
  block_server::options o;
  o.send_timeout = std::chrono::milliseconds{20};
  serve(o);
  constexpr std::size_t size = 64 << 20;
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(size, 'b')})));
  auto s = authenticated();
  s.send(request_for(key(1, 0, 0)));
  ASSERT_TRUE(protocol::read_data(s.receive_frame()));
  // The server closes once its buffers are full and nothing has moved; only then is the rest read here.
  store->remove(stage_id{1});
  const auto end = std::chrono::steady_clock::now() + deadline;
  const auto held = [&] {
    std::error_code gone;
    for (const auto& open : std::filesystem::directory_iterator{"/proc/self/fd"})
      if (std::filesystem::read_symlink(open, gone).string().starts_with(directory.string())) return true;
    return false;
  };
  while (held() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_FALSE(held()) << "the block is still held for a reader that is gone";
  EXPECT_LT(s.receive(size).size(), size);
}

TEST_F(transfer_test, a_server_can_end_while_it_sends) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(32 << 20, 'b')})));
  auto s = authenticated();
  s.send(request_for(key(1, 0, 0)));
  ASSERT_TRUE(protocol::read_data(s.receive_frame()));
  server.reset();
  EXPECT_TRUE(s.ended());
}

TEST_F(transfer_test, garbage_is_counted_and_survived) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"still here"})));
  std::mt19937_64 random{4711};
  const auto hello = protocol::encode(protocol::hello{protocol::version, cluster, std::string(nonce_size, 'n')});
  const auto before = anonymous_memory();
  constexpr int rounds = 400;
  for (int i = 0; i < rounds; ++i) {
    std::string bytes;
    switch (random() % 5) {
    case 0: // noise
      bytes.resize(random() % 3000);
      for (auto& c : bytes) c = static_cast<char>(random());
      break;
    case 1: // a plausible length in front of noise
      bytes = length_of(1 + random() % protocol::max_stranger_frame);
      for (auto n = random() % 1200; n > 0; --n) bytes.push_back(static_cast<char>(random()));
      break;
    case 2: // a hello that ends early
      bytes = hello.substr(0, random() % hello.size());
      break;
    case 3: // a hello with one bit wrong
      bytes = hello;
      bytes[random() % (bytes.size() - nonce_size)] ^= static_cast<char>(1 << random() % 8);
      break;
    default: // a good hello and then noise instead of a proof
      bytes = hello;
      for (auto n = 4 + random() % 100; n > 0; --n) bytes.push_back(static_cast<char>(random()));
    }
    auto s = raw_socket::connect(server->port());
    s.send(bytes); // the server may have hung up already
    s.end_sending();
    ASSERT_TRUE(s.ended()) << "round " << i;
  }
  EXPECT_EQ(server->rejected(), static_cast<std::uint64_t>(rounds));
  EXPECT_LT(anonymous_memory(), before + (16 << 20));
  auto c = client();
  EXPECT_EQ(text_of(c.fetch_value(endpoint(), key(1, 0, 0), 0)), "still here");
}

} // namespace
} // namespace troupe::testing_transfer
