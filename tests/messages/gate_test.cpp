// Who gets past the gate.

#include <chrono>

#include <gtest/gtest.h>

#include <troupe/messages/gate.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/tests/support/basp_stranger.hpp>
#include <troupe/tests/support/patience.hpp>

#include "node.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

TEST(gate, admits_the_admitted_and_never_its_own_node) {
  node here, there, elsewhere;
  gate g{here.system.node()};
  EXPECT_FALSE(g.admits(here.system.node()));
  g.admit(here.system.node()); // a packet may claim it
  EXPECT_FALSE(g.admits(here.system.node()));
  EXPECT_FALSE(g.admits(there.system.node()));
  EXPECT_FALSE(g.admits(caf::node_id{}));
  g.admit(caf::node_id{}); // nobody in particular
  EXPECT_FALSE(g.admits(caf::node_id{}));
  g.admit(there.system.node());
  EXPECT_TRUE(g.admits(there.system.node()));
  EXPECT_FALSE(g.admits(elsewhere.system.node()));
}

TEST(gate, counts_admissions_of_one_node) {
  node here, there;
  gate g{here.system.node()};
  g.dismiss(there.system.node()); // was never admitted
  g.admit(there.system.node());
  g.admit(there.system.node());
  g.dismiss(there.system.node());
  EXPECT_TRUE(g.admits(there.system.node()));
  g.dismiss(there.system.node());
  EXPECT_FALSE(g.admits(there.system.node()));
}

/// Counts notices that pass; a heartbeat's number says what it wants: its sender's node in or out.
using guarded_actor = handle<void(boxed<driver_heartbeat>), boxed<driver_heartbeat>(boxed<status_query>)>;

struct guarded_state {
  std::uint64_t passed = 0;
  gate entrance{caf::node_id{}};
};

/// Answers a query with 100 times the notices that passed plus those that did not.
guarded_actor::behavior_type guarded(stateful_pointer<guarded_actor, guarded_state> self, caf::node_id admitted) {
  harden(self, {});
  state_of(self).entrance = gate{self->system().node()};
  state_of(self).entrance.admit(admitted);
  return {[self](const boxed<driver_heartbeat>& beat) {
            if (state_of(self).entrance.passes(self, beat)) ++state_of(self).passed;
          },
          [self](const boxed<status_query>&) {
            return box(driver_heartbeat{100 * state_of(self).passed + state_of(self).entrance.dropped()});
          }};
}

std::uint64_t counts(caf::scoped_actor& self, const guarded_actor& whom) {
  std::uint64_t number = 0;
  ask(self, whom, troupe::testing::patience(), box(status_query{}))
      .receive([&](const boxed<driver_heartbeat>& answer) { number = answer->number; },
               [&](const caf::error& e) { ADD_FAILURE() << describe(self->system(), e); });
  return number;
}

TEST(gate, drops_strangers_and_counts_them) {
  node here, friendly, strange;
  const auto actor = here.system.spawn(guarded, friendly.system.node());
  const auto port = publish(here.system, actor, 0, "127.0.0.1");
  ASSERT_TRUE(port) << port.error().message;
  caf::scoped_actor local{here.system};
  tell(local, actor, box(driver_heartbeat{}));
  EXPECT_EQ(counts(local, actor), 100u);

  caf::scoped_actor stranger{strange.system};
  const auto seen_by_stranger = connect<guarded_actor>(strange.system, "127.0.0.1", *port);
  ASSERT_TRUE(seen_by_stranger) << seen_by_stranger.error().message;
  tell(stranger, *seen_by_stranger, box(driver_heartbeat{}));
  tell(stranger, *seen_by_stranger, box(driver_heartbeat{}));
  EXPECT_EQ(counts(stranger, *seen_by_stranger), 102u);
  caf::anon_send(*seen_by_stranger, box(driver_heartbeat{})); // names no sender at all
  EXPECT_EQ(counts(stranger, *seen_by_stranger), 103u);

  caf::scoped_actor admitted{friendly.system};
  const auto seen_by_friend = connect<guarded_actor>(friendly.system, "127.0.0.1", *port);
  ASSERT_TRUE(seen_by_friend) << seen_by_friend.error().message;
  tell(admitted, *seen_by_friend, box(driver_heartbeat{}));
  EXPECT_EQ(counts(admitted, *seen_by_friend), 203u);
  shut_down(actor);
}

TEST(gate, takes_what_its_own_process_made_whoever_sends_it) {
  node here;
  const auto actor = here.system.spawn(guarded, caf::node_id{});
  caf::scoped_actor local{here.system};
  caf::anon_send(actor, box(driver_heartbeat{}));
  tell_as(actor, actor, box(driver_heartbeat{}));
  EXPECT_EQ(counts(local, actor), 200u);
  shut_down(actor);
}

TEST(gate, drops_what_claims_to_come_from_its_own_node) {
  node here, words;
  const auto actor = here.system.spawn(guarded, here.system.node());
  const auto port = publish(here.system, actor, 0, "127.0.0.1");
  ASSERT_TRUE(port) << port.error().message;
  testing::basp_stranger forger{words.system, *port};
  forger.introduce_as(4'000'000);
  forger.forge(forger.front(), forger.front(), testing::basp_stranger::asynchronous, box(driver_heartbeat{}));
  ASSERT_TRUE(forger.settle());
  caf::scoped_actor local{here.system};
  std::uint64_t seen = 0;
  for (const auto deadline = std::chrono::steady_clock::now() + troupe::testing::patience();
       seen == 0 && std::chrono::steady_clock::now() < deadline;)
    seen = counts(local, actor);
  EXPECT_EQ(seen, 1u);
  shut_down(actor);
}

} // namespace
} // namespace troupe
