// Processes that have not said hello, over real connections.

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/actors/client.hpp>
#include <troupe/actors/resource_profile_manager.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/tests/actors/fakes.hpp>
#include <troupe/tests/support/process_probe.hpp>

namespace troupe::actor_tests {
namespace {

/// A process's worth of CAF.
struct node {
  node_config config{true};
  caf::actor_system system{config};

  template <class Answer, class Handle, class... Question>
  result<boxed<Answer>> request(const Handle& whom, const Question&... question) {
    caf::scoped_actor self{system};
    result<boxed<Answer>> out{make_error(ec::internal, "no answer")};
    ask(self, whom, 10s, question...)
        .receive([&](const boxed<Answer>& answer) { out = answer; },
                 [&](const caf::error& why) { out = from_caf_error(system, why); });
    return out;
  }
};

class strangers : public ::testing::Test {
protected:
  std::shared_ptr<const session_secret> secret = std::make_shared<const session_secret>(session_secret::generate());
  node home;
  node away;
  driver_actor front = spawn_driver(home.system, plain_driver(secret));
  driver_actor seen = connect_to_front();

  void TearDown() override {
    seen = nullptr;
    shut_down(front);
  }
  driver_actor connect_to_front() { return meet(front); }
  /// An actor of home as the other node sees it.
  template <class Handle>
  Handle meet(const Handle& actor) {
    const auto port = publish(home.system, actor, 0, "127.0.0.1");
    EXPECT_TRUE(port);
    auto found = connect<Handle>(away.system, "127.0.0.1", *port);
    EXPECT_TRUE(found);
    return *found;
  }
  /// Whether an actor still answers, if only that it does not understand. What the other node sent before has come.
  template <class Handle>
  bool is_alive(const Handle& there) {
    caf::scoped_actor self{away.system};
    caf::error what;
    ask(self, caf::actor_cast<caf::actor>(there), 10s, box(goodbye{}), box(goodbye{}))
        .receive([] {}, [&](const caf::error& why) { what = why; });
    return what == caf::sec::unexpected_message;
  }
  cluster_status status() { return **home.request<cluster_status>(front, box(status_query{})); }
  client_actor introduce_client() {
    const hello_opening opening{peer_role::client, cluster_name};
    const auto challenge = away.request<hello_challenge>(seen, box(opening.message()));
    EXPECT_TRUE(challenge);
    client_actor client = spawn_client(away.system, {});
    peer_registration registration;
    registration.proof = *opening.answer(**challenge, *secret);
    EXPECT_TRUE(away.request<welcome>(seen, box(std::move(registration)), client));
    return client;
  }
};

TEST_F(strangers, can_ask_and_order_nothing) {
  const client_actor client = spawn_client(away.system, {});
  const auto job = box(job_submission{testing::job_builder{}.stage("only", 1).make(), {}});
  EXPECT_EQ(away.request<cluster_status>(seen, box(status_query{})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<job_accepted>(seen, job, client).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<acknowledged>(seen, box(cancel_job{job_id{1}, ""})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<acknowledged>(seen, box(cancel_stage{job_id{1}, 0, ""})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<cancelled_jobs>(seen, box(cancel_group{"g", ""})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<job_explanation>(seen, box(explain_query{job_id{1}})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<placement_answer>(seen, box(placement_query{job_id{1}})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<acknowledged>(seen, box(goodbye{executor_id{1}, 1, ""})).error().code, ec::unauthenticated);
  EXPECT_EQ(away.request<acknowledged>(seen, box(stop_session{""})).error().code, ec::unauthenticated);
  const auto dropped = status().dropped_messages;
  EXPECT_GE(dropped, 6u);
  {
    caf::scoped_actor self{away.system};
    executor_heartbeat beat;
    beat.executor = executor_id{1};
    tell(self, seen, box(beat));
    tell(self, seen, box(subscribe_events{0, 10}), client);
    tell(self, seen, box(release_results{job_id{1}}));
    tell(self, seen, box(withdraw_broadcast{{1, 1}}));
  }
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages >= dropped + 4; }));
  EXPECT_TRUE(status().jobs.empty());
  shut_down(client);
}

TEST_F(strangers, are_none_after_the_hello_and_again_after_they_left) {
  const auto client = introduce_client();
  EXPECT_TRUE(away.request<cluster_status>(seen, box(status_query{})));
  shut_down(client);
  EXPECT_TRUE(testing::wait_until([&] { return !away.request<cluster_status>(seen, box(status_query{})); }));
}

/// What somebody tries who has an actor's address and nothing else, in any order.
template <class Handle>
void try_to_end(caf::actor_system& system, const Handle& whom) {
  caf::scoped_actor self{system};
  self->send_exit(whom, caf::exit_reason::user_shutdown);
  self->send_exit(whom, caf::exit_reason::kill);
  caf::anon_send_exit(whom, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(whom, caf::exit_reason::kill);
}

TEST_F(strangers, cannot_end_the_driver) {
  const auto dropped = status().dropped_messages;
  try_to_end(away.system, seen);
  const auto client = introduce_client();
  EXPECT_TRUE(away.request<cluster_status>(seen, box(status_query{}))) << "the driver obeyed a stranger";
  EXPECT_GE(status().dropped_messages, dropped + 4);
  shut_down(client);
}

TEST_F(strangers, cannot_end_the_actors_behind_the_driver) {
  const auto outlives_orders = [&](const auto& actor) {
    const auto there = meet(actor);
    try_to_end(away.system, there);
    // It answers what it does not understand, unless it is gone.
    EXPECT_TRUE(is_alive(there));
    shut_down(actor);
    caf::scoped_actor self{home.system};
    self->wait_for(actor);
  };
  dag_scheduler_config scheduling;
  scheduling.driver = front;
  const auto scheduler = spawn_dag_scheduler(home.system, std::move(scheduling));
  allocator_config allocating;
  allocating.backend = make_manual_backend();
  allocating.scheduler = scheduler;
  outlives_orders(spawn_allocator(home.system, std::move(allocating)));
  outlives_orders(scheduler);
  resource_profile_manager_config managing;
  managing.defaults = testing::default_test_profile();
  outlives_orders(spawn_resource_profile_manager(home.system, std::move(managing)));
  outlives_orders(spawn_client(home.system, {}));
}

TEST_F(strangers, cannot_report_the_end_of_anybody_else) {
  const auto client = introduce_client();
  caf::scoped_actor self{away.system};
  const auto dropped = status().dropped_messages;
  tell(self, caf::actor_cast<caf::actor>(seen),
       caf::down_msg{seen.address(), caf::make_error(caf::exit_reason::unknown)});
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages > dropped; }));
  shut_down(client);
}

TEST_F(strangers, wind_no_clock_and_are_counted_where_only_neighbours_speak) {
  dag_scheduler_config scheduling;
  scheduling.driver = front;
  const auto scheduler = spawn_dag_scheduler(home.system, std::move(scheduling));
  const auto there = meet(scheduler);
  caf::scoped_actor self{away.system};
  tell(self, there, tick{});
  tell(self, there, box(executor_gone{}));
  tell(self, there, box(release_results{}));
  tell(self, there, box(withdraw_broadcast{}));
  EXPECT_TRUE(is_alive(there));
  EXPECT_EQ((**home.request<cluster_status>(scheduler, box(status_query{}))).dropped_messages, 4u + 1u);
  const auto dropped = status().dropped_messages;
  tell(self, seen, tick{});
  tell(self, seen, box(event_batch{}));
  EXPECT_TRUE(is_alive(seen));
  EXPECT_EQ(status().dropped_messages, dropped + 2 + 1);
  shut_down(scheduler);
}

TEST_F(strangers, do_not_make_the_allocator_look_at_its_backend) {
  struct counting_backend : executor_backend {
    std::atomic<int> looks = 0;
    void converge(const std::vector<executor_order>&) override {}
    std::vector<launch_status> snapshot() override {
      ++looks;
      return {};
    }
    feasibility check(const executor_shape&) override { return {}; }
    std::uint32_t room_for(const executor_shape&) override { return 0; }
  };
  const auto backend = std::make_shared<counting_backend>();
  dag_scheduler_config scheduling;
  scheduling.driver = front;
  const auto scheduler = spawn_dag_scheduler(home.system, std::move(scheduling));
  allocator_config allocating;
  allocating.backend = backend;
  allocating.scheduler = scheduler;
  allocating.tick_interval = std::chrono::hours{10};
  const auto allocator = spawn_allocator(home.system, std::move(allocating));
  const auto there = meet(allocator);
  caf::scoped_actor self{away.system};
  tell(self, there, tick{});
  EXPECT_TRUE(is_alive(there));
  EXPECT_EQ(backend->looks, 0);
  shut_down(allocator);
  shut_down(scheduler);
}

TEST_F(strangers, cannot_tell_a_client_that_its_job_is_over) {
  const auto heard_from_away = [&](driver_actor driver) {
    const auto ends = std::make_shared<std::atomic<int>>(0);
    client_config config;
    config.driver = std::move(driver);
    config.on_end = [ends](const boxed<job_end>&) { ++*ends; };
    const client_actor client = spawn_client(home.system, std::move(config));
    const auto there = meet(client);
    caf::scoped_actor self{away.system};
    tell(self, there, box(job_end{}));
    EXPECT_TRUE(is_alive(there));
    shut_down(client);
    return ends->load();
  };
  EXPECT_EQ(heard_from_away({}), 0);
  EXPECT_EQ(heard_from_away(front), 0);
  const auto elsewhere = spawn_driver(away.system, plain_driver(secret));
  const auto port = publish(away.system, elsewhere, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  auto proxy = connect<driver_actor>(home.system, "127.0.0.1", *port);
  ASSERT_TRUE(proxy);
  EXPECT_EQ(heard_from_away(*proxy), 1) << "its own driver's process";
  shut_down(elsewhere);
}

executor_actor::behavior_type idle(executor_actor::pointer self) {
  harden(self, {});
  return {[](const boxed<executor_orders>&) {},
          [](const boxed<driver_heartbeat>&) {},
          [](const boxed<outcome_batch>&) {},
          [](const boxed<barrier_arrival>&) {},
          [](const boxed<stop_session>&) { return box(acknowledged{}); },
          [](tick) {}};
}

TEST_F(strangers, who_are_admitted_cannot_speak_for_an_executor) {
  dag_scheduler_actor scheduler;
  const auto join = [&](node& from, const driver_actor& driver, incarnation epoch) {
    const hello_opening opening{peer_role::executor, cluster_name};
    const auto challenge = from.request<hello_challenge>(driver, box(opening.message()));
    EXPECT_TRUE(challenge);
    executor_registration registration;
    registration.proof = *opening.answer(**challenge, *secret);
    registration.info = testing::executor_builder{}.make({}, epoch);
    const auto handle = from.system.spawn(idle);
    caf::scoped_actor self{from.system};
    ask(self, driver, 10s, box(std::move(registration)), handle)
        .receive([&](const boxed<welcome>&, const dag_scheduler_actor& to) { scheduler = to; },
                 [](const caf::error&) { ADD_FAILURE(); });
    return handle;
  };
  const auto honest = join(home, front, 5);
  const auto liar = join(away, seen, 6);
  const auto dropped = status().dropped_messages;
  caf::scoped_actor self{away.system};
  executor_heartbeat beat;
  beat.executor = executor_id{1};
  beat.epoch = 5;
  beat.number = 1'000'000;
  tell(self, seen, box(beat));
  EXPECT_TRUE(away.request<acknowledged>(seen, box(goodbye{executor_id{1}, 5, "no"})));
  EXPECT_EQ(status().executors.size(), 2u);
  EXPECT_EQ(status().dropped_messages, dropped + 2);
  executor_report report;
  report.executor = executor_id{1};
  report.epoch = 5;
  tell(self, scheduler, box(std::move(report)));
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages == dropped + 3; }));
  scheduler = nullptr;
  shut_down(honest);
  shut_down(liar);
}

} // namespace
} // namespace troupe::actor_tests
