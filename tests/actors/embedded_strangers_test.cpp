// A host application that runs jobs in its own actor system and has a port of its own: who reaches the port.

#include <gtest/gtest.h>

#include <troupe/actors/client.hpp>
#include <troupe/actors/embedding.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/tests/actors/fakes.hpp>
#include <troupe/tests/support/basp_stranger.hpp>
#include <troupe/tests/support/process_probe.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::actor_tests {
namespace {

/// The application's own published actor.
using notice_board = handle<void(boxed<goodbye>)>;

notice_board::behavior_type board(notice_board::pointer self) {
  harden(self, {});
  return {[](const boxed<goodbye>&) {}};
}

class embedded_strangers : public ::testing::Test {
protected:
  void SetUp() override {
    embedded_options options;
    options.directory = folder.path();
    auto made = spawn_embedded(system, options);
    ASSERT_TRUE(made) << made.error().message;
    cluster = *made;
    ASSERT_TRUE(testing::wait_until([&] { return status().executors.size() == 2; }));
  }
  void TearDown() override {
    caf::scoped_actor self{system};
    ask(self, cluster.driver, testing::patience(), box(stop_session{"done"}))
        .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { ADD_FAILURE(); });
    shut_down(cluster.driver);
    shut_down(published);
  }
  cluster_status status() {
    caf::scoped_actor self{system};
    cluster_status out;
    ask(self, cluster.driver, testing::patience(), box(status_query{}))
        .receive([&](const boxed<cluster_status>& answer) { out = *answer; }, [](const caf::error&) { ADD_FAILURE(); });
    return out;
  }

  testing::temporary_directory folder;
  node_config config{true};
  caf::actor_system system{config};
  node_config words_config{true};
  caf::actor_system words{words_config};
  embedded_cluster cluster;
  notice_board published = system.spawn(board);
};

/// Numbers of actors are small and handed out one after the other.
constexpr std::uint64_t most_actors = 200;

TEST_F(embedded_strangers, at_the_applications_port_reach_nothing_of_troupe) {
  const auto port = publish(system, published, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  // The worst that it can do: CAF hands on messages to whom it has written into a message of its own before.
  ASSERT_TRUE(publish(system, cluster.driver, 0, "127.0.0.1"));
  testing::basp_stranger attacker{words, *port};
  attacker.introduce_as(4'000'000);
  ASSERT_LT(cluster.driver.id(), most_actors);
  const client_actor client = spawn_client(words, {});
  const auto before = status();
  // In the name of the driver, which the executors obey, to all that there may be.
  executor_orders orders;
  orders.sequence = 1;
  for (std::uint64_t whom = 1; whom < most_actors; ++whom) {
    const auto forge = [&](std::uint64_t id, const auto&... content) {
      attacker.forge(cluster.driver.id(), whom, id, content...);
    };
    const auto notice = testing::basp_stranger::asynchronous;
    if (whom != published.id()) {
      forge(0, caf::exit_msg{caf::actor_addr{}, caf::make_error(caf::exit_reason::kill)});
      forge(0, caf::down_msg{cluster.driver.address(), caf::make_error(caf::exit_reason::kill)});
    }
    forge(testing::basp_stranger::question(whom), box(stop_session{"a stranger says so"}));
    forge(notice, box(orders));
    forge(notice, box(executor_report{}));
    forge(testing::basp_stranger::question(1000 + whom),
          box(job_submission{testing::job_builder{}.stage("only", 1).command().make(), {}}), client);
    forge(testing::basp_stranger::question(2000 + whom), box(release_request{executor_id{1}}));
  }
  ASSERT_TRUE(attacker.settle());
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages > before.dropped_messages; }));
  // An executor that stood still is "silent" until it beats again.
  const auto are_active = [&] {
    const auto executors = status().executors;
    return executors.size() == 2 &&
           std::all_of(executors.begin(), executors.end(), [](const auto& e) { return e.state == "active"; });
  };
  EXPECT_TRUE(testing::wait_until(are_active));
  EXPECT_TRUE(status().jobs.empty());
  shut_down(client);
}

} // namespace
} // namespace troupe::actor_tests
