#include <fstream>

#include "listener.hpp"
#include "transfer_fixture.hpp"

#include <troupe/runtime/little_endian.hpp>
#include <troupe/runtime/scheduling/bucket_sizes.hpp>

namespace troupe::testing_transfer {
namespace {

namespace protocol = block_protocol;

std::string pattern(std::size_t size, unsigned seed) {
  std::string bytes(size, '\0');
  for (auto& c : bytes) c = static_cast<char>(seed = seed * 1664525 + 1013904223) >> 3;
  return bytes;
}

std::size_t open_descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator{"/proc/self/fd"}, std::filesystem::directory_iterator{}));
}

TEST_F(transfer_test, blocks_travel_whole_from_memory_and_from_files) {
  serve();
  const auto large = pattern(9'000'001, 7);
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"small", "", large})));
  ASSERT_TRUE(store->put(key(1, 1, 2), content_of({"in memory"})));
  auto c = client();
  EXPECT_EQ(text_of(c.fetch_value(endpoint(), key(1, 1, 2), 0)), "in memory");
  EXPECT_EQ(text_of(c.fetch_value(endpoint(), key(1, 0, 0), 0)), "small");
  EXPECT_EQ(text_of(c.fetch_value(endpoint(), key(1, 0, 0), 1)), "");
  EXPECT_TRUE(text_of(c.fetch_value(endpoint(), key(1, 0, 0), 2)) == large);
  EXPECT_EQ(server->rejected(), 0u);
}

TEST_F(transfer_test, a_missing_block_is_not_found_and_the_connection_goes_on) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"there"})));
  auto c = client();
  const auto missing = c.fetch_value(endpoint(), key(1, 5, 0), 0);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ec::not_found);
  EXPECT_NE(missing.error().message.find("partition 5"), std::string::npos);
  EXPECT_NE(missing.error().message.find("executor 9"), std::string::npos);
  EXPECT_TRUE(c.fetch_value(endpoint(), key(1, 0, 0), 0));
}

TEST_F(transfer_test, a_peer_without_the_secret_is_refused_by_either_side) {
  serve();
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"secret data"})));
  block_client stranger{client_options(), session_secret::generate(), nullptr};
  const auto refused = stranger.fetch_value(endpoint(), key(1, 0, 0), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ec::unauthenticated);

  // A client that does not care whether the server proves anything, and proves nothing itself.
  auto s = raw_socket::connect(server->port());
  s.send(protocol::encode(protocol::hello{protocol::version, cluster, make_nonce()}));
  EXPECT_TRUE(protocol::read_challenge(s.receive_frame()));
  s.send(protocol::encode_proof(std::string(proof_size, 'x')));
  s.send(protocol::encode(protocol::fetch{1000, false, {{key(1, 0, 0), 0, 0}}}));
  EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::unauthenticated);
  EXPECT_TRUE(s.ended());
}

TEST_F(transfer_test, a_client_proves_nothing_to_an_impostor) {
  std::atomic<std::size_t> received_after_challenge = 0;
  scripted_server impostor{[&](raw_socket& peer) {
    peer.receive_frame();
    peer.send(protocol::encode(protocol::challenge{make_nonce(), std::string(proof_size, 'i')}));
    received_after_challenge += peer.receive(1).size();
  }};
  auto c = client();
  const auto refused = c.fetch_value(at(impostor.port()), key(1, 0, 0), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ec::unauthenticated);
  EXPECT_EQ(received_after_challenge, 0u);
  EXPECT_EQ(impostor.connections(), 1) << "an impostor is not asked again";
}

TEST_F(transfer_test, other_clusters_and_versions_are_refused_with_the_reason) {
  serve();
  auto options = client_options();
  options.cluster_id = "another";
  block_client other{options, secret, nullptr};
  EXPECT_EQ(other.fetch_value(endpoint(), key(1, 0, 0), 0).error().code, ec::unauthenticated);
  auto s = raw_socket::connect(server->port());
  s.send(protocol::encode(protocol::hello{protocol::version + 1, cluster, make_nonce()}));
  EXPECT_EQ(protocol::read_failure(s.receive_frame()).code, ec::version_mismatch);
  EXPECT_TRUE(s.ended());
  EXPECT_EQ(server->rejected(), 2u);
}

TEST_F(transfer_test, what_is_announced_and_does_not_come_takes_no_memory) {
  lying_server liar{secret, [](raw_socket& peer) {
                      auto page = page_of("good");
                      page[15] = '\x7f'; // of the size of what follows: an exabyte and more
                      peer.send(protocol::encode(protocol::data{~std::uint64_t{0}}));
                      peer.send(page);
                    }};
  auto options = client_options();
  options.attempts = 2;
  block_client c{options, secret, nullptr};
  const auto refused = c.fetch_value(at(liar.port()), key(1, 0, 0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ec::io) << "the connection ends before the page does: " << refused.error().message;
  EXPECT_EQ(liar.connections(), 2) << "tried again, so often and no more";
}

TEST_F(transfer_test, a_frame_that_is_too_long_is_not_waited_for) {
  lying_server liar{secret, [](raw_socket& peer) {
                      std::string length;
                      little_endian::append(length, protocol::max_server_frame + 1);
                      peer.send(length);
                      peer.ended();
                    }};
  auto options = client_options();
  options.attempts = 1;
  block_client c{options, secret, nullptr};
  EXPECT_EQ(c.fetch_value(at(liar.port()), key(1, 0, 0)).error().code, ec::malformed);
}

TEST_F(transfer_test, a_damaged_block_is_noticed_and_fetched_again) {
  std::atomic<int> times = 0;
  lying_server liar{secret, [&](raw_socket& peer) {
                      const bool damaged = times++ == 0;
                      auto page = page_of("good");
                      peer.send(protocol::encode(protocol::data{page.size()}));
                      if (damaged) page.back() ^= 1;
                      peer.send(page);
                    }};
  auto c = client();
  const auto view = c.fetch_value(at(liar.port()), key(1, 0, 0), 0);
  ASSERT_TRUE(view) << view.error().message;
  EXPECT_EQ(*view, "good");
  EXPECT_EQ(liar.connections(), 2);
}

TEST_F(transfer_test, a_connection_that_breaks_in_the_middle_is_tried_again) {
  std::atomic<int> times = 0;
  lying_server liar{secret, [&](raw_socket& peer) {
                      const auto page = page_of("good");
                      peer.send(protocol::encode(protocol::data{page.size()}));
                      peer.send(times++ == 0 ? page.substr(0, 9) : page);
                    }};
  auto c = client();
  EXPECT_EQ(text_of(c.fetch_value(at(liar.port()), key(1, 0, 0), 0)), "good");
}

TEST_F(transfer_test, many_small_pages_arrive_in_their_order) {
  serve();
  bucket_writer writer{{.buckets = 2, .memory = 1, .directories = nullptr}};
  std::string expected;
  for (int i = 0; i < 20'000; ++i) {
    const auto record = std::to_string(i) + std::string(static_cast<std::size_t>(i % 50), 'r');
    writer.page(1).append(record);
    writer.wrote(1);
    expected += record;
  }
  auto content = writer.finish();
  EXPECT_GT(content.pages[1].size(), 100u) << "more than go out in one call";
  ASSERT_TRUE(store->put(key(1, 0, 0), std::move(content)));
  auto c = client();
  EXPECT_EQ(text_of(c.fetch_value(endpoint(), key(1, 0, 0), 1)), expected);
  EXPECT_EQ(text_of(c.fetch_value(endpoint(), key(1, 0, 0), 0)), "");
}

TEST_F(transfer_test, a_block_that_is_damaged_where_it_lies_is_a_lost_map_output) {
  serve();
  ASSERT_TRUE(store->put(key(3, 0, 0), content_of({std::string(2 * memory_limit, 'x')})));
  const auto file = std::filesystem::directory_iterator { directory } -> path();
  {
    std::fstream bytes{file, std::ios::in | std::ios::out | std::ios::binary};
    bytes.seekp(1000);
    bytes.put('y');
  }
  shuffle_input input;
  input.shuffle = {3};
  input.endpoints = {endpoint()};
  input.endpoint_of_map = {0};
  input.attempt_of_map = {0};
  auto options = client_options();
  options.attempts = 2;
  block_client c{options, secret, nullptr};
  EXPECT_THROW(c.read(input, 0, [](std::string_view) { FAIL() << "nothing of it may be believed"; }), fetch_failure);
  const auto local = std::make_shared<local_blocks>();
  local->add({9}, store);
  block_client near{options, secret, local};
  EXPECT_THROW(near.read(input, 0, [](std::string_view) { FAIL() << "nothing of it may be believed"; }), fetch_failure);
}

TEST_F(transfer_test, nobody_there_is_unreachable) {
  const silent_port silent;
  auto options = client_options();
  options.attempts = 2;
  block_client c{options, secret, nullptr};
  const auto refused = c.fetch_value(at(silent.number()), key(1, 0, 0), 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ec::unreachable);
}

TEST_F(transfer_test, a_server_that_does_not_accept_ends_in_the_connect_timeout) {
  listener full{1, true}; // the kernel leaves who comes without an answer
  auto options = client_options();
  options.attempts = 1;
  options.connect_timeout = std::chrono::milliseconds{20};
  options.read_timeout = std::chrono::minutes{10};
  block_client c{options, secret, nullptr};
  EXPECT_EQ(c.fetch_value(at(full.port()), key(1, 0, 0), 0).error().code, ec::unreachable);
}

TEST_F(transfer_test, a_silent_server_ends_in_the_read_timeout) {
  scripted_server silent{[](raw_socket& peer) { peer.ended(); }};
  auto options = client_options();
  options.attempts = 1;
  options.read_timeout = std::chrono::milliseconds{20};
  block_client c{options, secret, nullptr};
  EXPECT_EQ(c.fetch_value(at(silent.port()), key(1, 0, 0), 0).error().code, ec::unreachable);
}

TEST_F(transfer_test, interrupt_ends_a_fetch_that_waits) {
  std::atomic<bool> waiting = false;
  scripted_server silent{[&](raw_socket& peer) {
    peer.receive_frame();
    waiting = true;
    peer.ended();
  }};
  auto c = client();
  error got;
  std::thread fetching{[&] { got = c.fetch_value(at(silent.port()), key(1, 0, 0), 0).error(); }};
  while (!waiting) std::this_thread::yield();
  c.interrupt();
  fetching.join();
  EXPECT_EQ(got.code, ec::cancelled);
}

TEST_F(transfer_test, a_killed_attempt_stops_waiting_for_its_inputs) {
  std::atomic<bool> cancelled = false;
  scripted_server silent{[&](raw_socket& peer) {
    peer.receive_frame();
    cancelled = true;
    peer.ended();
  }};
  auto options = client_options();
  options.read_timeout = deadline;
  options.attempts = 1;
  block_client c{options, secret, nullptr};
  stage_install stage;
  task_context::environment env;
  env.stage = &stage;
  env.cancelled = &cancelled;
  task_context context{env};
  context.begin(0, 0);
  EXPECT_EQ(c.fetch_value(at(silent.port()), key(1, 0, 0), 0).error().code, ec::cancelled);
}

TEST_F(transfer_test, an_executor_of_this_process_is_read_without_a_socket) {
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"near"})));
  const auto local = std::make_shared<local_blocks>();
  local->add({4}, store);
  block_client c{client_options(), secret, local};
  shuffle_input input;
  input.shuffle = {1};
  input.endpoints = {{{4}, 1, "", 0}};
  input.endpoint_of_map = {0};
  input.attempt_of_map = {0};
  c.read(input, 0, [&](std::string_view content) {
    EXPECT_EQ(content, "near");
    EXPECT_EQ(content.data(), store->get(key(1, 0, 0), 0)->parts[0].data() + page_header_size) << "not copied";
  });
  EXPECT_EQ(text_of(c.fetch_value({{4}, 1, "", 0}, key(1, 0, 0))), "near");
  // Found by id even where it has a server as well: here nobody listens.
  EXPECT_TRUE(c.fetch_value({{4}, 1, "127.0.0.1", 1}, key(1, 0, 0), 0));
  local->remove({4});
  EXPECT_EQ(c.fetch_value({{4}, 1, "", 0}, key(1, 0, 0), 0).error().code, ec::unreachable);
}

TEST_F(transfer_test, a_shuffle_is_read_in_map_order_from_several_places) {
  serve();
  const auto near = std::make_shared<block_store>(block_store::options{{directory}, memory_limit});
  const auto local = std::make_shared<local_blocks>();
  local->add({4}, near);
  ASSERT_TRUE(store->put(key(3, 0, 1), content_of({"a0", "a1"})));
  ASSERT_TRUE(near->put(key(3, 1, 0), content_of({"b0", "b1"})));
  ASSERT_TRUE(store->put(key(3, 2, 0), content_of({"c0", "c1"})));
  block_client c{client_options(), secret, local};
  shuffle_input input;
  input.shuffle = {3};
  input.endpoints = {endpoint(), {{4}, 1, "", 0}};
  input.endpoint_of_map = {0, 1, 0};
  input.attempt_of_map = {1, 0, 0};
  std::string all;
  c.read(input, 1, [&](std::string_view bytes) { all += bytes; });
  EXPECT_EQ(all, "a1b1c1");

  // Who is known to hold nothing is not even asked.
  auto known = input;
  packed_column empty;
  for (const auto& of : {std::vector<std::uint64_t>{1, 0}, {0, 1}, {0, 0}})
    empty.push_back(empty_buckets(encode_bucket_sizes(of), 2));
  known.empty_of_map = std::make_shared<const packed_column>(empty);
  all.clear();
  c.read(known, 1, [&](std::string_view bytes) { all += bytes; });
  EXPECT_EQ(all, "b1");

  near->remove(stage_id{3});
  try {
    c.read(input, 0, [](std::string_view) {});
    FAIL() << "a lost map output was not noticed";
  } catch (const fetch_failure& e) {
    EXPECT_EQ(e.shuffle, stage_id{3});
    EXPECT_EQ(e.partition, 1u);
    EXPECT_EQ(e.attempt, 0u);
    EXPECT_EQ(e.executor, executor_id{4});
  }
  input.endpoint_of_map[1] = 2;
  EXPECT_THROW(c.read(input, 0, [](std::string_view) {}), std::runtime_error);
}

TEST_F(transfer_test, connections_are_kept_and_a_closed_one_is_replaced_unnoticed) {
  block_server::options o;
  o.max_connections = 1;
  serve(o);
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"x"})));
  auto options = client_options();
  options.attempts = 1;
  block_client a{options, secret, nullptr};
  block_client b{options, secret, nullptr};
  for (int i = 0; i < 20; ++i) {
    // Each has to make room for the other: its kept connection is closed.
    ASSERT_TRUE(a.fetch_value(endpoint(), key(1, 0, 0), 0));
    ASSERT_TRUE(b.fetch_value(endpoint(), key(1, 0, 0), 0));
  }
  EXPECT_EQ(server->rejected(), 0u);
}

TEST_F(transfer_test, many_readers_at_once_and_no_descriptor_left) {
  const auto before = open_descriptors();
  serve();
  std::vector<std::string> contents;
  for (partition_index p = 0; p < 40; ++p) {
    contents.push_back(pattern(100'000 + p, p));
    ASSERT_TRUE(store->put(key(1, p, 0), content_of({contents[p]})));
  }
  {
    auto c = client();
    std::vector<std::thread> readers;
    std::atomic<int> good = 0;
    for (unsigned t = 0; t < 8; ++t) {
      readers.emplace_back([&, t] {
        for (unsigned i = 0; i < 40; ++i) {
          const auto p = (i * 7 + t) % 40;
          const auto view = c.fetch_value(endpoint(), key(1, p, 0), 0);
          good += view && *view == contents[p] ? 1 : 0;
        }
      });
    }
    for (auto& r : readers) r.join();
    EXPECT_EQ(good, 8 * 40);
  }
  server.reset();
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(transfer_test, what_cannot_be_listened_on_is_an_error) {
  block_server::options o;
  o.address = "no address";
  EXPECT_EQ(block_server::start(o, secret, *store).error().code, ec::invalid_configuration);
  o.address = "192.0.2.1"; // reserved for documentation: no interface has it
  EXPECT_EQ(block_server::start(o, secret, *store).error().code, ec::io);
  o.address = "127.0.0.1";
  o.cluster_id = std::string(256, 'c');
  EXPECT_EQ(block_server::start(o, secret, *store).error().code, ec::invalid_configuration);
}

} // namespace
} // namespace troupe::testing_transfer
