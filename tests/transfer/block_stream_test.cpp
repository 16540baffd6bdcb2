// How blocks flow: credit, several blocks for one request, and going on where a connection broke.

#include <algorithm>
#include <vector>

#include "transfer_fixture.hpp"

namespace troupe::testing_transfer {
namespace {

namespace protocol = block_protocol;

/// One bucket of many pages; the last one short.
block_content many_pages(std::uint32_t count, unsigned seed) {
  bucket_writer writer{{.buckets = 1}};
  for (std::uint32_t i = 0; i < count; ++i)
    writer.write_whole(0, std::to_string(seed) + "/" + std::to_string(i) + std::string(3000 + i % 700, 'p'));
  return writer.finish();
}
std::string text_in(const block_content& content) {
  std::vector<std::string_view> parts{content.pages[0].begin(), content.pages[0].end()};
  return testing::text_of(block_view{nullptr, parts, {}, 0});
}

/// As stored.
std::string bytes_in(const block_content& content) {
  std::string bytes;
  for (const auto& page : content.pages[0]) bytes += page;
  return bytes;
}

shuffle_input input_of(std::vector<block_endpoint> endpoints, std::vector<std::uint32_t> endpoint_of_map) {
  shuffle_input input;
  input.shuffle = {3};
  input.attempt_of_map.assign(endpoint_of_map.size(), 0);
  input.endpoints = std::move(endpoints);
  input.endpoint_of_map = std::move(endpoint_of_map);
  return input;
}
std::string read_all(block_client& client, const shuffle_input& input) {
  std::string all;
  client.read(input, 0, [&](std::string_view content) { all += content; });
  return all;
}

class credit_test : public transfer_test, public ::testing::WithParamInterface<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(places, credit_test, ::testing::Values(200'000, 2'000'000),
                         [](const auto& at) { return std::string{at.index == 0 ? "memory" : "file"}; });

TEST_P(credit_test, no_byte_goes_beyond_the_credit) {
  serve();
  const auto page = page_of(std::string(GetParam(), 'x'));
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(GetParam(), 'x'), "second"})));
  auto s = authenticated();
  s.send(protocol::encode(protocol::fetch{1000, false, {{key(1, 0, 0), 0, 0}, {key(1, 0, 0), 1, 0}}}));
  EXPECT_EQ(protocol::read_data(s.receive_frame())->size, page.size());
  EXPECT_EQ(s.receive(1000), page.substr(0, 1000));
  EXPECT_TRUE(s.is_quiet_for(std::chrono::milliseconds{50})) << "it has sent more than it may";
  s.send(protocol::encode(protocol::grant{page.size() - 1000}));
  EXPECT_EQ(s.receive(page.size() - 1000), page.substr(1000));
  EXPECT_TRUE(s.is_quiet_for(std::chrono::milliseconds{50}));
  s.send(protocol::encode(protocol::grant{50}));
  EXPECT_EQ(protocol::read_data(s.receive_frame())->size, testing::stored(6));
  EXPECT_EQ(s.receive(testing::stored(6)), page_of("second"));
  // Credit for what has been sent by now is late, not wrong.
  s.send(protocol::encode(protocol::grant{1000}));
  s.send(protocol::encode(protocol::fetch{1000, false, {{key(1, 0, 0), 1, 0}}}));
  EXPECT_EQ(protocol::read_data(s.receive_frame())->size, testing::stored(6));
  EXPECT_EQ(server->rejected(), 0u);
}

TEST_F(transfer_test, what_may_be_in_flight_is_shared_by_those_who_send) {
  std::mutex mutex;
  std::vector<std::uint64_t> credits;
  const auto note = [&](raw_socket& peer) {
    const auto hello = protocol::read_hello(peer.receive_frame());
    if (!hello) return;
    const auto nonce = make_nonce();
    peer.send(
        protocol::encode(protocol::challenge{nonce, protocol::server_proof(secret, cluster, hello->nonce, nonce)}));
    peer.receive_frame();
    if (const auto request = protocol::read_fetch(peer.receive_frame())) {
      const std::lock_guard lock{mutex};
      credits.push_back(request->credit);
    }
  };
  {
    scripted_server one{note};
    scripted_server two{note};
    auto options = client_options();
    options.attempts = 1;
    options.max_in_flight = 1'000'000;
    options.connect_timeout = deadline; // within it the second one is opened ahead
    block_client c{options, secret, nullptr};
    auto input = input_of({at(one.port()), {{8}, 1, "127.0.0.1", two.port()}}, {0, 1});
    EXPECT_THROW(read_all(c, input), fetch_failure);
    input = input_of({at(one.port())}, {0});
    EXPECT_THROW(read_all(c, input), fetch_failure);
  } // by now the servers have read what came
  const std::lock_guard lock{mutex};
  std::sort(credits.begin(), credits.end());
  // The first one was asked once more: that a connection which was opened ahead has ended meanwhile counts for nothing.
  EXPECT_EQ(credits, (std::vector<std::uint64_t>{500'000, 500'000, 500'000, 1'000'000}));
}

TEST_F(transfer_test, a_block_that_is_missing_ends_its_request_and_no_more) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"there"})));
  auto s = authenticated();
  const protocol::block_request there{key(1, 0, 0), 0, 0};
  s.send(protocol::encode(protocol::fetch{1000, false, {there, {key(1, 7, 0), 0, 0}, there}}));
  EXPECT_EQ(protocol::read_data(s.receive_frame())->size, testing::stored(5));
  EXPECT_EQ(s.receive(testing::stored(5)), page_of("there"));
  EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::not_found);
  s.send(protocol::encode(protocol::fetch{1000, false, {there}}));
  EXPECT_EQ(protocol::read_data(s.receive_frame())->size, testing::stored(5));
}

TEST_F(transfer_test, the_rest_of_a_block_can_be_asked_for_from_memory_and_from_a_file) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), many_pages(20, 1)));  // in memory
  ASSERT_TRUE(store->put(key(1, 1, 0), many_pages(600, 1))); // in a file
  for (const auto& [partition, pages] : {std::pair{0u, 20u}, {1u, 600u}}) {
    const auto whole = bytes_in(many_pages(pages, 1));
    for (const std::uint64_t offset :
         {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{3500}, whole.size() - 1, whole.size()}) {
      auto s = authenticated();
      s.send(protocol::encode(protocol::fetch{protocol::max_credit, false, {{key(1, partition, 0), 0, offset}}}));
      ASSERT_EQ(protocol::read_data(s.receive_frame())->size, whole.size() - offset);
      EXPECT_TRUE(s.receive(whole.size() - offset) == whole.substr(offset)) << offset;
    }
    auto s = authenticated();
    s.send(protocol::encode(protocol::fetch{1, false, {{key(1, partition, 0), 0, whole.size() + 1}}}));
    EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::invalid_argument);
  }
}

TEST_F(transfer_test, requests_at_the_wrong_time_or_for_what_cannot_be_end_the_connection) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(100'000, 'x')})));
  const auto request = protocol::encode(protocol::fetch{10, false, {{key(1, 0, 0), 0, 0}}});
  auto twice = authenticated();
  twice.send(request);
  EXPECT_TRUE(protocol::read_data(twice.receive_frame()));
  twice.receive(10);
  twice.send(request); // while the first one is under way
  EXPECT_TRUE(twice.ended());
  auto far = authenticated();
  far.send(protocol::encode(protocol::fetch{10, true, {{key(1, 0, 0), 0, 0}}}));
  EXPECT_EQ(protocol::read_failure(far.receive_frame()).code, ec::malformed) << "descriptors cannot go over TCP";
  EXPECT_TRUE(far.ended());
  EXPECT_EQ(server->rejected(), 2u);
}

TEST_F(transfer_test, garbage_behind_the_handshake_is_survived) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({std::string(100'000, 'x')})));
  unsigned seed = 99;
  const auto random = [&] { return (seed = seed * 1664525 + 1013904223) >> 8; };
  const auto good = protocol::encode(protocol::fetch{70'000, false, {{key(1, 0, 0), 0, 0}, {key(1, 0, 0), 0, 9}}});
  for (int i = 0; i < 200; ++i) {
    auto s = authenticated();
    auto bytes = good;
    if (i % 2 == 0) {
      bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
      bytes += protocol::encode(protocol::grant{random()});
    } else {
      for (auto n = random() % 300; n > 0; --n) bytes.push_back(static_cast<char>(random()));
    }
    s.send(bytes);
    s.end_sending();
    ASSERT_TRUE(s.ended()) << "round " << i;
  }
  auto c = client();
  EXPECT_EQ(testing::text_of(c.fetch_value(endpoint(), key(1, 0, 0))), std::string(100'000, 'x'));
}

TEST_F(transfer_test, blocks_of_many_executors_are_read_in_their_order) {
  serve();
  // More executors than one reader has connections, and more blocks of one than a request takes.
  std::vector<block_endpoint> endpoints;
  for (std::uint64_t e = 0; e < 100; ++e) endpoints.push_back({{e + 1}, 1, "127.0.0.1", server->port()});
  std::vector<std::uint32_t> endpoint_of_map;
  std::string expected;
  for (std::uint32_t p = 0; p < 1300; ++p) {
    endpoint_of_map.push_back(p % 2 == 0 ? 0 : p / 2 % 100);
    const auto text = std::to_string(p) + std::string(p % 100, '.');
    ASSERT_TRUE(store->put(key(3, p, 0), content_of({text})));
    expected += text;
  }
  const auto open_files = [] {
    const std::filesystem::directory_iterator all{"/proc/self/fd"};
    return std::distance(begin(all), end(all));
  };
  auto c = client();
  const auto before = open_files();
  auto most = before;
  std::string got;
  int pages = 0;
  c.read(input_of(endpoints, endpoint_of_map), 0, [&](std::string_view content) {
    got += content;
    if (++pages < 1000) most = std::max(most, open_files()); // later some have nothing left to send, and are idle
  });
  EXPECT_EQ(got, expected);
  EXPECT_LE(most, before + 2 * 64 + 8) << "64 connections, each with both of its ends, and those that are just closed";
}

TEST_F(transfer_test, a_reader_that_stops_in_the_middle_leaves_no_bytes_for_the_next_one) {
  serve();
  ASSERT_TRUE(store->put(key(3, 0, 0), many_pages(400, 1)));
  ASSERT_TRUE(store->put(key(3, 1, 0), many_pages(3, 2)));
  auto c = client();
  const auto input = input_of({endpoint()}, {0, 0});
  struct enough {};
  EXPECT_THROW(c.read(input, 0, [](std::string_view) { throw enough{}; }), enough);
  EXPECT_TRUE(read_all(c, input) == text_in(many_pages(400, 1)) + text_in(many_pages(3, 2)));
}

/// Serves one block of which each connection gives some more and breaks.
class breaking_server : public scripted_server {
public:
  breaking_server(session_secret secret, std::string bytes, std::size_t at_once)
    : scripted_server([this, secret, bytes, at_once](raw_socket& peer) {
        const auto hello = protocol::read_hello(peer.receive_frame());
        if (!hello) return;
        const auto nonce = make_nonce();
        peer.send(
            protocol::encode(protocol::challenge{nonce, protocol::server_proof(secret, cluster, hello->nonce, nonce)}));
        peer.receive_frame();
        const auto request = protocol::read_fetch(peer.receive_frame());
        if (!request) return;
        offsets.push_back(request->blocks[0].offset);
        const auto rest = bytes.substr(offsets.back());
        peer.send(protocol::encode(protocol::data{rest.size()}) + rest.substr(0, at_once));
      }) {}
  std::vector<std::uint64_t> offsets; ///< asked for, by connection; read when all is over
};

TEST_F(transfer_test, a_broken_connection_is_gone_on_with_behind_the_last_good_page) {
  const auto bytes = bytes_in(many_pages(14, 4));
  std::string got;
  std::vector<std::uint64_t> offsets;
  {
    // A page and a half at a time: far more connections than attempts, but each brings something new.
    breaking_server breaking{secret, bytes, 6000};
    auto options = client_options();
    options.attempts = 2;
    block_client c{options, secret, nullptr};
    got = testing::text_of(c.fetch_value(at(breaking.port()), key(3, 0, 0)));
    offsets = breaking.offsets;
  }
  EXPECT_TRUE(got == text_in(many_pages(14, 4)));
  EXPECT_GT(offsets.size(), 6u);
  EXPECT_TRUE(std::is_sorted(offsets.begin(), offsets.end()));
}

/// Each connection brings a good page, and none an end.
TEST_F(transfer_test, a_block_that_ends_elsewhere_each_time_is_not_read_for_ever) {
  const auto page = page_of("again");
  lying_server liar{secret, [&](raw_socket& peer) {
                      peer.send(protocol::encode(protocol::data{2 * page.size()}));
                      peer.send(page);
                    }};
  auto options = client_options();
  options.attempts = 2;
  block_client c{options, secret, nullptr};
  const auto got = c.fetch_value(at(liar.port()), key(3, 0, 0), 0);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ec::malformed);
  EXPECT_EQ(liar.connections(), 3) << "one that got on, and two in vain";
}

TEST_F(transfer_test, a_connection_that_brings_nothing_new_uses_up_the_attempts) {
  const auto bytes = bytes_in(many_pages(3, 4));
  breaking_server breaking{secret, bytes, 100};
  auto options = client_options();
  options.attempts = 3;
  block_client c{options, secret, nullptr};
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(c.fetch_value(at(breaking.port()), key(3, 0, 0)).error().code, ec::io);
  EXPECT_EQ(breaking.connections(), 3);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds{150}) << "with pauses between";
}

TEST_F(transfer_test, who_is_gone_is_waited_for_no_longer) {
  std::atomic<bool> waiting = false;
  scripted_server silent{[&](raw_socket& peer) {
    peer.receive_frame();
    waiting = true;
    peer.ended();
  }};
  auto c = client();
  error got;
  std::thread fetching{[&] { got = c.fetch_value(at(silent.port()), key(1, 0, 0)).error(); }};
  while (!waiting) std::this_thread::yield();
  c.forget({1}); // somebody else
  c.forget({9});
  fetching.join();
  EXPECT_EQ(got.code, ec::unreachable);
  EXPECT_EQ(silent.connections(), 1) << "it is not tried again";
  EXPECT_EQ(c.fetch_value(at(silent.port()), key(1, 0, 0)).error().code, ec::unreachable);
  EXPECT_EQ(silent.connections(), 1);
}

} // namespace
} // namespace troupe::testing_transfer
