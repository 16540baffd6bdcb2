// Blocks that outlive the executor that made them.

#include <gmock/gmock-more-matchers.h>

#include "transfer_fixture.hpp"

#include <troupe/runtime/transfer/take_over.hpp>
#include <troupe/runtime/transfer/takeover_worker.hpp>

namespace troupe::testing_transfer {
namespace {

constexpr incarnation epoch_of_old = 0x1234;
constexpr incarnation epoch_of_service = 0x5678;

class take_over_test : public transfer_test {
protected:
  take_over_test() {
    store = std::make_shared<block_store>(block_store::options{{directory}, memory_limit, 1000});
    service_store = std::make_shared<block_store>(block_store::options{{directory}, 0});
    block_server::options o;
    o.local_socket = local_socket_path(directory, epoch_of_old);
    serve(o);
    o.cluster_id = cluster;
    o.local_socket = local_socket_path(directory, epoch_of_service);
    service = std::move(*block_server::start(o, secret, *service_store));
  }
  ~take_over_test() override { service.reset(); }
  static bool never() { return false; }
  block_takeover everything() const { return {{{9}, epoch_of_old, "127.0.0.1", server->port()}, store->held()}; }
  block_takeover sockets() const { return {{{9}, epoch_of_old, "127.0.0.1", server->port()}, {}, true}; }
  std::vector<held_block> take(const block_takeover& what, error& why) {
    return take_over(what, *service_store, *service, secret, {cluster, directory}, never, why);
  }

  std::shared_ptr<block_store> service_store;
  std::unique_ptr<block_server> service;
};

TEST_F(take_over_test, readers_find_everything_where_it_always_was) {
  const std::string large(2 * memory_limit, 'f');
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"", large})));                     // in a file
  ASSERT_TRUE(store->put(key(1, 1, 0), content_of({std::string(50'000, 's'), "t"}))); // in sealed memory
  ASSERT_TRUE(store->put(key(1, 2, 1), content_of({"tiny", ""})));
  ASSERT_TRUE(store->put(key(2, 0, 0), content_of({"", ""})));
  const auto what = everything();
  error why;
  EXPECT_EQ(take(what, why), what.blocks);
  EXPECT_THAT(take(sockets(), why), ::testing::IsEmpty());
  EXPECT_EQ(why, error{});
  // Readers that have a connection to the old server, and such as have none.
  auto over_tcp = client();
  EXPECT_EQ(text_of(over_tcp.fetch_value(what.from, key(1, 2, 1), 0)), "tiny");
  server.reset();
  store.reset();
  EXPECT_TRUE(text_of(over_tcp.fetch_value(what.from, key(1, 0, 0), 1)) == large);
  EXPECT_EQ(text_of(over_tcp.fetch_value(what.from, key(1, 2, 1), 1)), "");
  auto options = client_options();
  options.local_directory = directory;
  block_client near{options, secret, nullptr};
  auto only_near = what.from;
  only_near.host.clear();
  EXPECT_EQ(text_of(near.fetch_value(only_near, key(1, 1, 0), 1)), "t");
  EXPECT_EQ(text_of(over_tcp.fetch_value({{7}, epoch_of_service, "127.0.0.1", service->port()}, key(2, 0, 0), 0)), "");
}

TEST_F(take_over_test, what_is_not_there_any_more_is_left_out) {
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"here"})));
  ASSERT_TRUE(store->put(key(1, 2, 0), content_of({"behind"})));
  auto what = everything();
  what.blocks.insert(what.blocks.begin() + 1, held_block{{1}, 1, 0, 0});
  what.blocks.push_back({{2}, 0, 0, 0});
  error why;
  const auto got = take(what, why);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].partition, 0u);
  EXPECT_EQ(got[1].partition, 2u);
  EXPECT_EQ(why, error{});
  EXPECT_EQ(text_of(service_store->get(key(1, 2, 0), 0)), "behind");
}

TEST_F(take_over_test, nobody_else_answers_at_the_sockets_before_they_are_asked_for) {
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"here"})));
  ASSERT_TRUE(store->put(key(2, 0, 0), content_of({"a result that stays"})));
  auto what = everything();
  what.blocks.pop_back();
  error why;
  EXPECT_EQ(take(what, why).size(), 1u);
  for (int i = 0; i < 20; ++i) {
    auto reader = client(); // each has a connection of its own
    EXPECT_EQ(text_of(reader.fetch_value(what.from, key(2, 0, 0), 0)), "a result that stays");
  }
}

TEST_F(take_over_test, what_takes_more_descriptors_than_it_may_stays_where_it_is) {
  service_store = std::make_shared<block_store>(
      block_store::options{{directory}, 0, block_store::never_shared, /*max_descriptors=*/1});
  service.reset();
  block_server::options o;
  o.cluster_id = cluster;
  service = std::move(*block_server::start(o, secret, *service_store));
  for (partition_index p = 0; p < 3; ++p) ASSERT_TRUE(store->put(key(1, p, 0), content_of({"here"})));
  error why;
  EXPECT_EQ(take(everything(), why).size(), 1u);
  EXPECT_EQ(why.code, ec::overloaded);
}

TEST_F(take_over_test, who_is_gone_has_nothing_to_give) {
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"here"})));
  const auto what = everything();
  server.reset();
  error why;
  EXPECT_TRUE(take(what, why).empty());
  EXPECT_EQ(why.code, ec::unreachable);
}

TEST_F(take_over_test, sockets_and_whole_sets_are_for_this_machine_alone) {
  ASSERT_TRUE(store->put(key(1, 0, 0), content_of({"here"})));
  auto asks_for_sockets = authenticated();
  asks_for_sockets.send(block_protocol::encode(block_protocol::sockets{}));
  EXPECT_EQ(block_protocol::read_failure(asks_for_sockets.receive_frame()).code, ec::malformed);
  auto asks_for_all = authenticated();
  asks_for_all.send(
      block_protocol::encode(block_protocol::fetch{1000, false, {{key(1, 0, 0), block_protocol::whole_set, 0}}}));
  EXPECT_EQ(block_protocol::read_failure(asks_for_all.receive_frame()).code, ec::not_found)
      << "a bucket like any other";
}

TEST(takeover_worker, says_that_it_has_nothing_where_something_went_wrong) {
  takeover_worker worker{
      [](const block_takeover&, const std::function<bool()>&) -> block_takeover { throw std::bad_alloc{}; }};
  worker.start({{{1}, 1, "", 0}, {held_block{}}});
  std::vector<block_takeover> done;
  while (done.empty()) done = worker.take_done();
  EXPECT_EQ(done[0].from.executor, executor_id{1});
  EXPECT_TRUE(done[0].blocks.empty());
}

TEST(takeover_worker, does_one_after_another_and_stops_when_it_is_told) {
  std::atomic<int> begun = 0;
  takeover_worker worker{[&](const block_takeover& what, const std::function<bool()>& stop) {
    ++begun;
    while (what.blocks.empty() && !stop()) std::this_thread::yield();
    return what;
  }};
  worker.start({{{1}, 1, "", 0}, {held_block{}}});
  worker.start({{{2}, 1, "", 0}, {held_block{}}});
  std::vector<block_takeover> done;
  while (done.size() < 2)
    for (auto& each : worker.take_done()) done.push_back(std::move(each));
  EXPECT_EQ(done[0].from.executor, executor_id{1});
  EXPECT_EQ(done[1].from.executor, executor_id{2});
  worker.start({{{3}, 1, "", 0}, {}}); // would never end by itself
  while (begun < 3) std::this_thread::yield();
}

} // namespace
} // namespace troupe::testing_transfer
