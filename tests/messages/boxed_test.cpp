// Boxes in CAF: shared within a system, encoded between systems, harmless when they are malformed.

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>

#include <gtest/gtest.h>

#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/tests/support/patience.hpp>
#include <troupe/tests/transfer/listener.hpp>

#include "node.hpp"
#include "samples.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

/// Answers orders with the same orders, and tells a client of a progress that it was asked to pass on.
using peer_actor = handle<boxed<executor_orders>(boxed<executor_orders>),
                          replies<boxed<acknowledged>, client_actor>(boxed<goodbye>, client_actor),
                          void(boxed<job_progress>, client_actor)>;

struct peer_state {
  static inline const char* name = "peer";
};

peer_actor::behavior_type peer(stateful_pointer<peer_actor, peer_state> self,
                               std::function<void(const std::string&)> on_unexpected) {
  actor_hooks hooks;
  hooks.on_unexpected = std::move(on_unexpected);
  harden(self, std::move(hooks));
  return {[](const boxed<executor_orders>& orders) { return orders; },
          [](const boxed<goodbye>&, const client_actor& client) -> caf::result<boxed<acknowledged>, client_actor> {
            return {box(acknowledged{}), client};
          },
          [self](const boxed<job_progress>& progress, const client_actor& client) { tell(self, client, progress); }};
}

client_actor::behavior_type client(client_actor::pointer self, std::shared_ptr<std::promise<job_progress>> heard) {
  harden(self, {});
  return {[heard](const boxed<job_progress>& progress) { heard->set_value(*progress); }, [](const boxed<job_end>&) {},
          [](const boxed<event_batch>&) {}, [](const boxed<subscription_cut_off>&) {}};
}

TEST(boxed, shares_the_value_within_a_system) {
  node n;
  auto p = n.system.spawn(peer, nullptr);
  caf::scoped_actor self{n.system};
  const auto sent = box(executor_orders{});
  const executor_orders* received = nullptr;
  ask(self, p, troupe::testing::patience(), sent)
      .receive(
          [&](const boxed<executor_orders>& back) {
            received = &*back;
            EXPECT_FALSE(back.from_wire());
          },
          [&](const caf::error& e) { FAIL() << describe(n.system, e); });
  EXPECT_EQ(received, &*sent);
  shut_down(p);
}

TEST(boxed, compares_by_content) {
  EXPECT_TRUE(box(cancel_job{job_id{1}, "x"}) == box(cancel_job{job_id{1}, "x"}));
  EXPECT_FALSE(box(cancel_job{job_id{1}, "x"}) == box(cancel_job{job_id{2}, "x"}));
  EXPECT_FALSE(box(cancel_job{}) == boxed<cancel_job>{});
}

/// Two nodes on loopback, a peer published on the first.
struct two_nodes : ::testing::Test {
  void SetUp() override {
    p = server.system.spawn(peer, [this](const std::string& what) {
      const std::lock_guard lock{mutex};
      unexpected.push_back(what);
    });
    const auto bound = publish(server.system, p, 0, "127.0.0.1");
    ASSERT_TRUE(bound) << bound.error().message;
    port = *bound;
  }
  void TearDown() override {
    on_malformed({});
    shut_down(p);
  }

  std::mutex mutex;
  std::vector<std::string> unexpected;
  node server;
  node remote;
  peer_actor p;
  std::uint16_t port = 0;
};

TEST_F(two_nodes, exchange_boxes) {
  const auto found = connect<peer_actor>(remote.system, "127.0.0.1", port);
  ASSERT_TRUE(found) << found.error().message;
  caf::scoped_actor self{remote.system};
  for (const auto& orders : samples::of<executor_orders>()) {
    const auto sent = box(orders);
    bool answered = false;
    ask(self, *found, troupe::testing::patience(), sent)
        .receive(
            [&](const boxed<executor_orders>& back) {
              answered = true;
              EXPECT_NE(&*back, &*sent);
              EXPECT_TRUE(back.from_wire());
              EXPECT_TRUE(back == sent);
            },
            [&](const caf::error& e) { FAIL() << describe(remote.system, e); });
    EXPECT_TRUE(answered);
  }
}

TEST_F(two_nodes, pass_a_handle_beside_a_box) {
  const auto found = connect<peer_actor>(remote.system, "127.0.0.1", port);
  ASSERT_TRUE(found) << found.error().message;
  auto heard = std::make_shared<std::promise<job_progress>>();
  auto future = heard->get_future();
  const auto listener = remote.system.spawn(client, heard);
  caf::scoped_actor self{remote.system};
  const auto progress = samples::of<job_progress>().front();
  tell(self, *found, box(progress), listener);
  ASSERT_EQ(future.wait_for(troupe::testing::patience()), std::future_status::ready);
  EXPECT_TRUE(future.get() == progress);
  bool same = false;
  ask(self, *found, troupe::testing::patience(), box(goodbye{}), listener)
      .receive([&](const boxed<acknowledged>&, const client_actor& back) { same = back == listener; },
               [&](const caf::error& e) { FAIL() << describe(remote.system, e); });
  EXPECT_TRUE(same);
  shut_down(listener);
}

TEST_F(two_nodes, refuse_another_interface) {
  const auto found = connect<client_actor>(remote.system, "127.0.0.1", port);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ec::version_mismatch);
}

TEST_F(two_nodes, say_where_nobody_answers) {
  const testing_transfer::silent_port silent;
  const auto found = connect<peer_actor>(remote.system, "127.0.0.1", silent.number());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ec::unreachable);
  EXPECT_NE(found.error().message.find("nobody listens there"), std::string::npos) << found.error().message;
  EXPECT_NE(found.error().message.find("127.0.0.1:" + std::to_string(silent.number())), std::string::npos)
      << found.error().message;
}

#if !TROUPE_CAF1

/// Goes by the name of a box, but its bytes are none of ours.
struct forged {
  std::string bytes;

  template <class Inspector>
  friend auto inspect(Inspector& f, forged& x) {
    return f(x.bytes);
  }
};

/// Looks like `peer_actor` from outside.
using forger_view = handle<forged(forged), replies<boxed<acknowledged>, client_actor>(boxed<goodbye>, client_actor),
                           void(boxed<job_progress>, client_actor)>;

TEST_F(two_nodes, survive_a_malformed_message) {
  struct forger_config : caf::actor_system_config {
    forger_config() {
      register_types(*this);
      // Both go by one name; only the forged one is used.
      add_message_type<forged>(caf::type_name<boxed<executor_orders>>::value);
      load<caf::io::middleman>();
    }
  } cfg;
  caf::actor_system forger{cfg};
  std::promise<error> noted;
  auto note = noted.get_future();
  std::atomic_flag once;
  on_malformed([&](const error& why) {
    if (!once.test_and_set()) noted.set_value(why);
  });
  const auto before = malformed_messages();
  const auto found = connect<forger_view>(forger, "127.0.0.1", port);
  ASSERT_TRUE(found) << found.error().message;
  caf::scoped_actor self{forger};
  bool failed = false;
  ask(self, *found, troupe::testing::patience(), forged{"\x01\xff"})
      .receive([](const forged&) { FAIL() << "a handler took it"; },
               [&](const caf::error& e) { failed = e == caf::sec::unexpected_message; });
  EXPECT_TRUE(failed);
  ASSERT_EQ(note.wait_for(troupe::testing::patience()), std::future_status::ready);
  const auto why = note.get();
  EXPECT_EQ(why.code, ec::malformed);
  EXPECT_TRUE(why.message.starts_with("malformed executor_orders: ")) << why.message;
  EXPECT_EQ(malformed_messages(), before + 1);
  {
    const std::lock_guard lock{mutex};
    EXPECT_EQ(unexpected, std::vector<std::string>{"nothing that could be decoded"});
  }
  // The peer lives, and takes what is well-formed.
  const auto honest = connect<peer_actor>(remote.system, "127.0.0.1", port);
  ASSERT_TRUE(honest) << honest.error().message;
  caf::scoped_actor other{remote.system};
  bool answered = false;
  ask(other, *honest, troupe::testing::patience(), box(executor_orders{}))
      .receive([&](const boxed<executor_orders>&) { answered = true; },
               [&](const caf::error& e) { FAIL() << describe(remote.system, e); });
  EXPECT_TRUE(answered);
}

#endif

} // namespace
} // namespace troupe
