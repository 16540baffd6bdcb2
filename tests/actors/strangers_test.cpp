// Processes that have not said hello, over real connections.

#include <atomic>
#include <future>

#include <caf/event_based_actor.hpp>
#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include <troupe/actors/client.hpp>
#include <troupe/actors/executor.hpp>
#include <troupe/actors/resource_profile_manager.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/messages/network.hpp>
#include <troupe/tests/actors/fakes.hpp>
#include <troupe/tests/support/basp_stranger.hpp>
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
    ask(self, whom, testing::patience(), question...)
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
  local_driver_actor inner = spawn_driver(home.system, patient_driver(secret));
  driver_actor front = inner;
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
    ask(self, caf::actor_cast<caf::actor>(there), testing::patience(), box(goodbye{}), box(goodbye{}))
        .receive([] {}, [&](const caf::error& why) { what = why; });
    return what == caf::sec::unexpected_message;
  }
  cluster_status status() {
    const auto answer = home.request<cluster_status>(front, box(status_query{}));
    if (!answer) throw std::runtime_error("the driver does not say how it stands: " + answer.error().message);
    return **answer;
  }
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
  scheduling.driver = inner;
  const dag_scheduler_actor scheduler = spawn_dag_scheduler(home.system, std::move(scheduling));
  allocator_config allocating;
  allocating.backend = make_manual_backend();
  allocating.scheduler = scheduler;
  outlives_orders(allocator_actor{spawn_allocator(home.system, std::move(allocating))});
  outlives_orders(scheduler);
  resource_profile_manager_config managing;
  managing.defaults = testing::default_test_profile();
  outlives_orders(spawn_resource_profile_manager(home.system, std::move(managing)));
  outlives_orders(client_actor{spawn_client(home.system, {})});
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

/// What is said to an actor of home by somebody who is taken for home itself.
class forgers : public strangers {
protected:
  /// Publishes an actor, and connects to it with packets written by hand.
  template <class Handle>
  std::unique_ptr<testing::basp_stranger> attack(const Handle& actor) {
    const auto port = publish(home.system, actor, 0, "127.0.0.1");
    EXPECT_TRUE(port);
    auto attacker = std::make_unique<testing::basp_stranger>(words.system, *port);
    attacker->introduce_as(4'000'000);
    return attacker;
  }
  struct : node {
  } words;
};

TEST_F(forgers, can_ask_and_order_nothing_in_the_drivers_own_name) {
  const auto attacker = attack(front);
  const auto me = attacker->front();
  const client_actor client = spawn_client(words.system, {});
  const auto dropped = status().dropped_messages;
  std::uint64_t n = 0;
  const auto forge = [&](const auto&... content) {
    attacker->forge(me, me, testing::basp_stranger::question(++n), content...);
  };
  forge(box(job_submission{testing::job_builder{}.stage("only", 1).make(), {}}), client);
  forge(box(cancel_job{job_id{1}, ""}));
  forge(box(cancel_stage{job_id{1}, 0, ""}));
  forge(box(cancel_group{"g", ""}));
  forge(box(status_query{}));
  forge(box(explain_query{job_id{1}}));
  forge(box(placement_query{job_id{1}}));
  forge(box(goodbye{executor_id{1}, 1, ""}));
  forge(box(stop_session{"a stranger says so"}));
  forge(box(release_results{job_id{1}}));
  forge(box(withdraw_broadcast{{1, 1}}));
  forge(box(executor_heartbeat{}));
  forge(box(subscribe_events{0, 10}), client);
  ASSERT_TRUE(attacker->settle());
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages >= dropped + 13; }));
  EXPECT_EQ(status().dropped_messages, dropped + 13) << "each is counted once";
  EXPECT_TRUE(status().jobs.empty());
  shut_down(client);
}

TEST_F(forgers, cannot_end_an_actor_in_its_own_name) {
  const auto attacker = attack(front);
  const auto me = attacker->front();
  const auto dropped = status().dropped_messages;
  const auto urgent = std::uint64_t{0};
  for (const auto why : {caf::exit_reason::kill, caf::exit_reason::user_shutdown}) {
    attacker->forge(me, me, urgent, caf::exit_msg{caf::actor_addr{}, caf::make_error(why)});
    attacker->speak(0, me, urgent, caf::exit_msg{caf::actor_addr{}, caf::make_error(why)});
    attacker->forge(me, me, urgent, caf::down_msg{caf::actor_addr{}, caf::make_error(why)});
  }
  ASSERT_TRUE(attacker->settle());
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages >= dropped + 6; }));
  EXPECT_EQ(status().dropped_messages, dropped + 6);
}

TEST_F(forgers, bring_no_stream_and_no_link_to_an_actor) {
  const auto attacker = attack(front);
  const auto me = attacker->front();
  const auto dropped = status().dropped_messages;
  for (const std::uint64_t category : {2u, 3u}) attacker->speak(0, me, category << 60 | 5, 5, 6);
  // An actor that is linked with itself waits for itself.
  attacker->forge(me, me, testing::basp_stranger::asynchronous, caf::link_atom::value,
                  caf::actor_cast<caf::strong_actor_ptr>(front));
  ASSERT_TRUE(attacker->settle());
  EXPECT_TRUE(testing::wait_until([&] { return status().dropped_messages >= dropped + 2; }));
}

/// Of the types that one signature takes and answers, each is announced or said in one process only.
template <class T>
constexpr bool is_of_one_process = std::is_same_v<T, tick>;
template <class T>
constexpr bool is_of_one_process<local_message<T>> = true;

template <class T>
void expect_announced_unless_local(caf::actor_system& system) {
  const auto& types = system.types();
  const auto& name = types.portable_name(caf::type_nr<T>::value, &typeid(T));
  EXPECT_EQ(name == types.default_type_name(), is_of_one_process<T>) << typeid(T).name();
}

template <class... In, class... Out>
void check_signature(caf::actor_system& system,
                     caf::typed_mpi<caf::detail::type_list<In...>, caf::output_tuple<Out...>>*) {
  (expect_announced_unless_local<In>(system), ...);
  (
      [&] {
        if constexpr (!std::is_void_v<Out>) expect_announced_unless_local<Out>(system);
      }(),
      ...);
}
template <class... Signatures>
void check_interface(caf::actor_system& system, caf::typed_actor<Signatures...>*) {
  (check_signature(system, static_cast<Signatures*>(nullptr)), ...);
}

TEST_F(forgers, have_no_words_for_what_one_process_says) {
  check_interface(words.system, static_cast<local_driver_actor*>(nullptr));
  check_interface(words.system, static_cast<local_dag_scheduler_actor*>(nullptr));
  check_interface(words.system, static_cast<local_allocator_actor*>(nullptr));
  check_interface(words.system, static_cast<resource_profile_manager_actor*>(nullptr));
  check_interface(words.system, static_cast<local_executor_actor*>(nullptr));
  check_interface(words.system, static_cast<local_client_actor*>(nullptr));
}

TEST_F(forgers, who_make_up_such_words_are_not_understood) {
  dag_scheduler_config scheduling;
  const auto scheduler = spawn_dag_scheduler(home.system, std::move(scheduling));
  const auto attacker = attack(dag_scheduler_actor{scheduler});
  const auto me = attacker->front();
  // As if the type were announced under its own name, or under that of what it holds.
  for (const std::string name : {"troupe::tick", "troupe::local_message<troupe::stop_session>",
                                 "N6troupe13local_messageINS_12stop_sessionEEE", "@i32"}) {
    std::vector<char> bytes;
    caf::binary_serializer out{words.system, bytes};
    std::vector<caf::strong_actor_ptr> stages;
    auto from = attacker->node(), to = attacker->node();
    auto types = "@<>+" + name;
    ASSERT_FALSE(out(from, to, stages, types));
    attacker->write(3, 0, testing::basp_stranger::asynchronous, me, me,
                    std::string{bytes.begin(), bytes.end()} + "xxxx");
  }
  ASSERT_TRUE(attacker->settle());
  caf::scoped_actor self{home.system};
  const auto not_understood = [&] {
    std::uint64_t number = 0;
    ask(self, scheduler, testing::patience(), local(status_query{}))
        .receive([&](const local_message<cluster_status>& answer) { number = answer->dropped_messages; },
                 [](const caf::error& why) { ADD_FAILURE() << why.code(); });
    return number;
  };
  EXPECT_TRUE(testing::wait_until([&] { return not_understood() == 4; }));
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
  const auto elsewhere = spawn_driver(away.system, patient_driver(secret));
  const auto port = publish(away.system, elsewhere, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  auto proxy = connect<driver_actor>(home.system, "127.0.0.1", *port);
  ASSERT_TRUE(proxy);
  EXPECT_EQ(heard_from_away(*proxy), 1) << "its own driver's process";
  shut_down(elsewhere);
}

/// A driver of home that lets another process answer hellos.
caf::behavior lets_answer(caf::event_based_actor* self, const driver_actor& other) {
  return {[self, other](const boxed<hello>& from) { return self->delegate(other, from); }};
}

TEST_F(strangers, who_answer_in_the_drivers_place_are_not_believed) {
  const driver_actor elsewhere = spawn_driver(away.system, patient_driver(secret));
  const auto port = publish(away.system, elsewhere, 0, "127.0.0.1");
  ASSERT_TRUE(port);
  auto proxy = connect<driver_actor>(home.system, "127.0.0.1", *port);
  ASSERT_TRUE(proxy);
  const auto driver = home.system.spawn(lets_answer, *proxy);
  executor_config config;
  config.driver = caf::actor_cast<driver_actor>(driver);
  config.info = testing::executor_builder{}.make({}, 5);
  config.cluster_id = cluster_name;
  config.secret = secret;
  std::promise<error> ended;
  config.on_end = [&](const error& why, bool) { ended.set_value(why); };
  const auto executor = spawn_executor(home.system, std::move(config));
  auto why = ended.get_future();
  ASSERT_EQ(why.wait_for(testing::patience()), std::future_status::ready) << "it believes whoever answers";
  EXPECT_THAT(why.get().message, ::testing::HasSubstr("answered in the driver's place"));
  shut_down(driver);
  shut_down(elsewhere);
}

executor_actor::behavior_type idle(executor_actor::pointer self) {
  harden(self, {});
  return {[](const boxed<executor_orders>&) {}, [](const boxed<driver_heartbeat>&) {},
          [](const boxed<stop_session>&) { return box(acknowledged{}); }};
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
    ask(self, driver, testing::patience(), box(std::move(registration)), handle)
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
