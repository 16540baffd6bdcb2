// The front door under virtual time: hello, signs of life, the event stream.

#include <algorithm>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <troupe/actors/client.hpp>
#include <troupe/tests/actors/fakes.hpp>

namespace troupe::actor_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class driver : public ::testing::Test {
protected:
  std::shared_ptr<const session_secret> secret = std::make_shared<const session_secret>(session_secret::generate());
  testing::virtual_system world;
  local_driver_actor front = world.end_with_system(spawn_driver(world.system(), plain_driver(secret)));
  std::shared_ptr<heard_by_executor> heard = std::make_shared<heard_by_executor>();
  executor_actor peer = spawn_listening_executor(world, heard);
  executor_info info = testing::executor_builder{}.cores(2).host("left").make({}, 77);

  std::size_t admitted() { return status_of(world, front).executors.size(); }
  admission admit() { return admit_executor(world, front, *secret, info, peer); }
  void beat(executor_id id, incarnation epoch, std::uint64_t number) {
    executor_heartbeat message;
    message.executor = id;
    message.epoch = epoch;
    message.number = number;
    world.say(front, box(message));
  }
};

// -- hello

TEST_F(driver, admits_an_executor_that_knows_the_secret) {
  const auto first = admit();
  EXPECT_FALSE(first.failed) << first.failed.message;
  EXPECT_EQ(first.id, executor_id{1});
  EXPECT_TRUE(first.scheduler);
  const auto status = status_of(world, front);
  ASSERT_EQ(status.executors.size(), 1u);
  EXPECT_EQ(status.executors[0].info.host, "left");
  EXPECT_EQ(status.cluster_id, cluster_name);
  EXPECT_EQ(admit_executor(world, front, *secret, info, spawn_listening_executor(world, heard)).id, executor_id{2})
      << "ids are never reused";
}

TEST_F(driver, keeps_the_shape_of_an_executor_that_was_asked_for) {
  info.shape = shape_id{3};
  ASSERT_FALSE(admit().failed);
  EXPECT_EQ(status_of(world, front).executors.at(0).info.shape, shape_id{}) << "nobody asked for it";
  info.request = request_id{9};
  ASSERT_FALSE(admit_executor(world, front, *secret, info, spawn_listening_executor(world, heard)).failed);
  EXPECT_EQ(status_of(world, front).executors.at(1).info.shape, shape_id{3});
}

TEST_F(driver, refuses_another_secret) {
  const auto stranger = admit_executor(world, front, session_secret::generate(), info, peer);
  EXPECT_EQ(stranger.failed.code, ec::unauthenticated);
  EXPECT_THAT(stranger.failed.message, HasSubstr("does not know the secret"));
  EXPECT_EQ(admitted(), 0u);
}

TEST_F(driver, takes_a_proof_once) {
  const auto hello = introduce(world, front, peer_role::executor, *secret);
  EXPECT_FALSE(register_executor(world, front, hello.proof, info, peer).failed);
  const auto again = register_executor(world, front, hello.proof, info, spawn_listening_executor(world, heard));
  EXPECT_EQ(again.failed.code, ec::unauthenticated);
  EXPECT_EQ(admitted(), 1u);
}

TEST_F(driver, uses_up_a_challenge_with_a_wrong_proof) {
  const auto hello = introduce(world, front, peer_role::executor, *secret);
  auto wrong = hello.proof;
  wrong.client_proof[0] = static_cast<char>(wrong.client_proof[0] ^ 1);
  EXPECT_EQ(register_executor(world, front, wrong, info, peer).failed.code, ec::unauthenticated);
  EXPECT_EQ(register_executor(world, front, hello.proof, info, peer).failed.code, ec::unauthenticated)
      << "a second guess is free";
  EXPECT_EQ(admitted(), 0u);
}

TEST_F(driver, takes_no_clients_proof_for_an_executor) {
  const auto hello = introduce(world, front, peer_role::client, *secret);
  EXPECT_EQ(register_executor(world, front, hello.proof, info, peer).failed.code, ec::unauthenticated);
  EXPECT_EQ(admitted(), 0u);
}

TEST_F(driver, takes_no_proof_that_comes_late) {
  const auto hello = introduce(world, front, peer_role::executor, *secret);
  world.pass(31s, 1s);
  EXPECT_EQ(register_executor(world, front, hello.proof, info, peer).failed.code, ec::unauthenticated);
}

TEST_F(driver, refuses_other_versions_clusters_and_nonces) {
  const auto answer_to = [&](const hello& h) {
    return world.request(
        front, [](const boxed<hello_challenge>&) {}, box(h));
  };
  const hello good = hello_opening{peer_role::executor, cluster_name}.message();
  EXPECT_FALSE(answer_to(good));
  auto h = good;
  h.version = protocol_version + 1;
  EXPECT_EQ(answer_to(h).code, ec::version_mismatch);
  h = good;
  h.cluster_id = "another";
  EXPECT_EQ(answer_to(h).code, ec::refused);
  h = good;
  h.client_nonce.pop_back();
  EXPECT_EQ(answer_to(h).code, ec::malformed);
  h = good;
  h.cluster_id = ""; // takes any
  EXPECT_FALSE(answer_to(h));
}

TEST_F(driver, keeps_a_bounded_number_of_open_challenges) {
  error last;
  int taken = 0;
  for (; taken < 5000 && !last; ++taken) last = introduce(world, front, peer_role::executor, *secret).failed;
  EXPECT_EQ(last.code, ec::overloaded);
  EXPECT_EQ(taken - 1, 1024);
  world.pass(31s, 1s);
  EXPECT_FALSE(admit().failed) << "strangers have closed the door for good";
}

TEST_F(driver, refuses_an_executor_without_an_incarnation) {
  info.epoch = 0;
  EXPECT_EQ(admit().failed.code, ec::malformed);
  EXPECT_EQ(admitted(), 0u);
}

TEST_F(driver, refuses_an_executor_that_advertises_what_cannot_be_and_goes_on) {
  ASSERT_FALSE(admit().failed);
  const auto refusal_of = [&](auto change) {
    auto bad = info;
    bad.request = request_id{5}; // somebody waits for it
    change(bad);
    const auto answer = admit_executor(world, front, *secret, bad, spawn_listening_executor(world, heard));
    EXPECT_TRUE(answer.failed);
    return answer.failed.message;
  };
  const auto gpus = [](std::int64_t n, std::vector<std::string> addresses, std::int64_t wanted = 0) {
    return [=](executor_info& bad) {
      bad.capacity.custom["gpu"] = {n, addresses};
      if (wanted > 0) bad.profile.executor["gpu"].amount = wanted;
    };
  };
  EXPECT_THAT(refusal_of([](auto& bad) { bad.capacity.cores = -1; }), HasSubstr("cores -1 must lie between"));
  EXPECT_THAT(refusal_of([](auto& bad) { bad.capacity.cores = INT64_MAX; }), HasSubstr("must lie between"));
  EXPECT_THAT(refusal_of([](auto& bad) { bad.capacity.memory = INT64_MAX; }), HasSubstr("2^63"));
  EXPECT_THAT(refusal_of(gpus(-1, {})), HasSubstr("gpu -1 must lie between"));
  EXPECT_THAT(refusal_of(gpus(2, {"0"})), HasSubstr("gpu 2 comes with 1 addresses"));
  EXPECT_THAT(refusal_of(gpus(2, {"0", "0"})), HasSubstr("is there twice"));
  EXPECT_THAT(refusal_of(gpus(1, {"a b"})), HasSubstr("gpu address \"a b\""));
  EXPECT_THAT(refusal_of([](auto& bad) { bad.profile.executor["cores"].amount = 0; }), HasSubstr("more than zero"));
  EXPECT_EQ(refusal_of(gpus(1, {"0"}, 2)),
            "the executor has less than its profile says: it needs gpu 2, has 1; give its machine what is missing, or "
            "ask for less");
  EXPECT_EQ(admitted(), 1u);
  info.request = request_id{5};
  EXPECT_FALSE(admit_executor(world, front, *secret, info, spawn_listening_executor(world, heard)).failed)
      << "none of them counts as the one that was asked for";
}

TEST_F(driver, takes_one_executor_for_each_request) {
  info.request = request_id{5};
  ASSERT_FALSE(admit().failed);
  const auto other = spawn_listening_executor(world, heard);
  const auto second = admit_executor(world, front, *secret, info, other);
  EXPECT_EQ(second.failed.code, ec::refused);
  EXPECT_THAT(second.failed.message, HasSubstr("request 5"));
  EXPECT_EQ(admitted(), 1u);
  world.end(peer);
  EXPECT_FALSE(admit_executor(world, front, *secret, info, other).failed) << "the first one is gone";
}

TEST_F(driver, refuses_an_executor_that_belongs_to_another_session) {
  const auto hello = introduce(world, front, peer_role::executor, *secret);
  const auto other = register_executor(world, front, hello.proof, info, peer, "session-before");
  EXPECT_EQ(other.failed.code, ec::refused);
  EXPECT_THAT(other.failed.message, HasSubstr("session-before"));
  EXPECT_EQ(admitted(), 0u);
  const auto again = introduce(world, front, peer_role::executor, *secret);
  EXPECT_FALSE(register_executor(world, front, again.proof, info, peer, "session-of-tests").failed);
}

TEST_F(driver, refuses_services_that_it_has_itself) {
  const auto hello = introduce(world, front, peer_role::services, *secret);
  peer_registration registration;
  registration.proof = hello.proof;
  registration.role = peer_role::services;
  const auto failed = world.request(
      front, [](const boxed<welcome>&, const dag_scheduler_actor&) {}, box(registration));
  EXPECT_EQ(failed.code, ec::refused);
}

TEST_F(driver, passes_on_which_broadcasts_are_withdrawn_and_those_of_a_client_that_is_gone) {
  ASSERT_FALSE(admit().failed);
  world.say(front, box(withdraw_broadcast{{5, 3}}));
  world.pass(100ms);
  ASSERT_FALSE(heard->orders.empty());
  EXPECT_THAT(heard->orders.back()->withdrawn, ElementsAre(broadcast_id{5, 3}));

  const auto client = spawn_client(world.system(), {});
  peer_registration registration;
  registration.proof = introduce(world, front, peer_role::client, *secret).proof;
  registration.program = 77;
  ASSERT_FALSE(world.request(
      front, [](const boxed<welcome>&) {}, box(std::move(registration)), client_actor{client}));
  shut_down(client);
  world.pass(100ms);
  EXPECT_THAT(heard->orders.back()->withdrawn, ElementsAre(broadcast_id{77, 0}));
}

// -- signs of life

TEST_F(driver, gives_up_an_executor_after_ten_seconds_of_silence) {
  ASSERT_FALSE(admit().failed);
  const auto dropped = status_of(world, front).dropped_messages;
  world.pass(9s, 50ms);
  EXPECT_EQ(admitted(), 1u);
  EXPECT_EQ(status_of(world, front).executors[0].state, "silent");
  world.pass(1500ms, 50ms);
  EXPECT_EQ(admitted(), 0u);
  EXPECT_EQ(heard->stops, 1u) << "it is told, where it lives after all";
  EXPECT_EQ(status_of(world, front).dropped_messages, dropped) << "its answer is expected";
}

TEST_F(driver, keeps_an_executor_that_beats) {
  const auto id = admit().id;
  for (std::uint64_t i = 1; i <= 30; ++i) {
    world.pass(1s, 50ms);
    beat(id, 77, i);
  }
  ASSERT_EQ(admitted(), 1u);
  EXPECT_EQ(status_of(world, front).executors[0].state, "active");
}

TEST_F(driver, does_not_count_old_or_foreign_beats) {
  const auto id = admit().id;
  beat(id, 77, 5);
  const auto dropped = status_of(world, front).dropped_messages;
  for (std::uint64_t i = 1; i <= 24; ++i) {
    world.pass(500ms, 50ms);
    beat(id, 77, 5);                  // repeated
    beat(id, 76, 100 + i);            // of an earlier incarnation
    beat(executor_id{99}, 77, 6 + i); // of nobody
  }
  const auto status = status_of(world, front);
  EXPECT_EQ(status.executors.size(), 0u) << "stale beats kept it alive";
  EXPECT_GE(status.dropped_messages, dropped + 3 * 24 - 1);
}

TEST_F(driver, takes_its_own_lateness_for_nobodys_silence) {
  ASSERT_FALSE(admit().failed);
  world.jump(60s); // as if this process had been stopped
  EXPECT_EQ(admitted(), 1u);
  EXPECT_EQ(status_of(world, front).executors[0].state, "active");
  world.pass(9s, 50ms);
  EXPECT_EQ(admitted(), 1u);
  world.pass(2s, 50ms);
  EXPECT_EQ(admitted(), 0u);
}

TEST_F(driver, beats_every_interval) {
  ASSERT_FALSE(admit().failed);
  const auto before = heard->heartbeats.size();
  world.pass(5s, 50ms);
  EXPECT_NEAR(static_cast<double>(heard->heartbeats.size() - before), 5, 1);
  for (std::size_t i = 1; i < heard->heartbeats.size(); ++i)
    EXPECT_LT(heard->heartbeats[i - 1]->number, heard->heartbeats[i]->number);
}

TEST_F(driver, says_to_each_executor_what_it_has_heard_of_it) {
  const auto id = admit().id;
  world.pass(1s, 50ms);
  EXPECT_EQ(heard->heartbeats.back()->heard, 0u);
  beat(id, 77, 5);
  world.pass(1s, 50ms);
  EXPECT_EQ(heard->heartbeats.back()->heard, 5u);
}

TEST_F(driver, lets_an_executor_go_that_says_goodbye) {
  const auto id = admit().id;
  const auto leave = [&](incarnation epoch) {
    return world.request(
        front, [](const boxed<acknowledged>&) {}, box(goodbye{id, epoch, "enough"}));
  };
  EXPECT_FALSE(leave(76));
  EXPECT_EQ(admitted(), 1u) << "a goodbye of an earlier incarnation";
  EXPECT_FALSE(leave(77));
  EXPECT_EQ(admitted(), 0u);
  EXPECT_EQ(heard->stops, 0u);
}

TEST_F(driver, notices_that_an_executor_is_gone) {
  ASSERT_FALSE(admit().failed);
  world.end(peer);
  EXPECT_EQ(admitted(), 0u);
}

TEST_F(driver, stops_its_executors_and_takes_no_more) {
  ASSERT_FALSE(admit().failed);
  bool over = false;
  EXPECT_FALSE(world.request(
      front, [&](const boxed<acknowledged>&) { over = true; }, box(stop_session{"the end"})));
  EXPECT_TRUE(over);
  EXPECT_EQ(heard->stops, 1u);
  EXPECT_EQ(admit_executor(world, front, *secret, info, spawn_listening_executor(world, heard)).failed.code,
            ec::refused);
}

TEST_F(driver, ends_with_its_scheduler_and_its_clients_hear_of_it) {
  bool lost = false;
  client_config config;
  config.driver = front;
  config.on_driver_gone = [&] { lost = true; };
  world.end_with_system(spawn_client(world.system(), std::move(config)));
  const auto admitted = admit();
  ASSERT_FALSE(admitted.failed);
  EXPECT_FALSE(lost);
  world.end(admitted.scheduler);
  EXPECT_TRUE(lost);
}

// -- jobs

TEST_F(driver, lets_submissions_wait_so_long_for_services_of_another_process) {
  auto config = plain_driver(secret);
  config.remote_services = true;
  config.request_timeout = 3s;
  const auto waiting = world.end_with_system(spawn_driver(world.system(), std::move(config)));
  const auto client = spawn_listening_client(world, std::make_shared<heard_by_client>());
  const auto job = testing::job_builder{}.stage("s", 1).make();
  auto answer = ask(world.self(), waiting, 10h, box(job_submission{job, {}}), client);
  world.pass(2s);
  EXPECT_FALSE(world.has_mail());
  world.pass(2s);
  ASSERT_TRUE(world.has_mail());
  error failed;
  answer.receive([](const boxed<job_accepted>&) {},
                 [&](const caf::error& why) { failed = from_caf_error(world.system(), why); });
  EXPECT_EQ(failed.code, ec::unreachable);
}

TEST_F(driver, gives_up_an_executor_that_lives_and_whose_orders_get_lost) {
  const auto hears = std::make_shared<heard_by_client>();
  const auto client = spawn_listening_client(world, hears);
  const auto admission = admit();
  ASSERT_FALSE(admission.failed);
  const auto job = testing::job_builder{}.stage("s", 1).make();
  EXPECT_FALSE(world.request(
      front, [](const boxed<job_accepted>&) {}, box(job_submission{job, {}}), client));
  world.pass(100ms);
  ASSERT_FALSE(heard->orders.empty()) << "which the executor never says that it has seen";
  for (std::uint64_t n = 1; n <= 11; ++n) {
    world.pass(1s);
    beat(admission.id, info.epoch, n);
  }
  EXPECT_EQ(admitted(), 1u);
  for (std::uint64_t n = 12; n <= 14; ++n) {
    world.pass(1s);
    beat(admission.id, info.epoch, n);
  }
  EXPECT_EQ(admitted(), 0u);
}

class submitting_client : public driver {
protected:
  local_client_actor spawn(bool wanted) {
    client_config config;
    config.driver = front;
    config.on_answer = [this, wanted](const boxed<job_submission>&, const result<job_id>& job) {
      answers.push_back(job);
      return wanted;
    };
    config.on_end = [this](const boxed<job_end>& end) { ends.push_back(end); };
    return world.end_with_system(spawn_client(world.system(), std::move(config)));
  }
  std::vector<result<job_id>> answers;
  std::vector<boxed<job_end>> ends;
};

TEST_F(submitting_client, tells_what_the_driver_answers) {
  const auto client = spawn(true);
  world.say(client, local(job_submission{testing::job_builder{}.stage("s", 1).make(), {}}));
  world.say(client, local(job_submission{}));
  world.pass(100ms);
  ASSERT_EQ(answers.size(), 2u);
  const auto accepted = std::count_if(answers.begin(), answers.end(), [](const auto& a) { return bool{a}; });
  EXPECT_EQ(accepted, 1) << "the other one has no job";
  EXPECT_THAT(ends, IsEmpty());
}

TEST_F(submitting_client, cancels_what_nobody_waits_for) {
  const auto client = spawn(false);
  world.say(client, local(job_submission{testing::job_builder{}.stage("s", 1).make(), {}}));
  world.pass(100ms);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0]->progress.state, job_state::cancelled);
  EXPECT_THAT(ends[0]->failure.message, HasSubstr("stopped waiting"));
}

// -- events

TEST_F(driver, tells_of_profiles_that_are_new) {
  const auto hears = std::make_shared<heard_by_client>();
  const auto client = spawn_listening_client(world, hears);
  world.say(front, box(subscribe_events{0, 100}), client);
  const auto wide = testing::make_profile({{"cores", 2}}, {{"cpus", "2"}});
  for (int i = 0; i < 2; ++i) {
    const auto job = testing::job_builder{}.profile(wide).stage("s", 1).with(1).make();
    EXPECT_FALSE(world.request(
        front, [](const boxed<job_accepted>&) {}, box(job_submission{job, {}}), client));
    world.pass(1s);
  }
  std::size_t added = 0;
  for (const auto& batch : hears->events)
    for (const auto& record : batch->records)
      if (const auto* fact = std::get_if<events::profile_added>(&record.content)) added += fact->content == wide;
  EXPECT_EQ(added, 1u);
}

// SL-10: it is registered before anybody could ask for the answer.
TEST(driver_log, says_what_executors_of_the_default_profile_leave_idle) {
  std::ostringstream written;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(written);
  testing::virtual_system world;
  auto config = plain_driver(std::make_shared<const session_secret>(session_secret::generate()));
  config.defaults = testing::make_profile({{"cores", 10}, {"gpu", 9}}, {{"cpus", "1"}, {"gpu", "1"}});
  config.loggers = [sink](std::string_view part) { return std::make_shared<spdlog::logger>(std::string{part}, sink); };
  world.end_with_system(spawn_driver(world.system(), std::move(config)));
  world.pass(1s);
  EXPECT_THAT(written.str(), HasSubstr("profile-note profile=0 1 of 10 cores stay idle"));
}

TEST_F(driver, feeds_a_subscriber_as_far_as_its_credit_goes) {
  const auto hears = std::make_shared<heard_by_client>();
  const auto client = spawn_listening_client(world, hears);
  const auto happen = [&](int count) {
    event_batch facts;
    for (int i = 0; i < count; ++i) facts.records.push_back({0, 0, events::job_submitted{job_id{7}, "job", 1, {}}});
    world.say(front, local(facts));
  };
  happen(3);
  world.say(front, box(subscribe_events{0, 2}), client);
  EXPECT_THAT(hears->event_numbers(), IsEmpty()) << "0: from now on";
  happen(5);
  happen(1);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(4, 5)) << "the credit is used up";
  world.say(front, box(subscribe_events{0, 1}), client);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(4, 5, 6));
  world.say(front, box(subscribe_events{2, 100}), client);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(4, 5, 6, 2, 3, 4, 5, 6, 7, 8, 9));
  hears->events.clear();
  happen(1);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(10)) << "the rest of the credit";
}

/// Another driver, whose history is looked at.
struct driver_with_a_history : driver {
  driver_config config = plain_driver(secret);
  std::vector<events::record> taken;
  std::shared_ptr<heard_by_client> hears = std::make_shared<heard_by_client>();
  client_actor client = spawn_listening_client(world, hears);

  void begin() {
    config.on_event = [this](const events::record& event) { taken.push_back(event); };
    front = world.end_with_system(spawn_driver(world.system(), std::move(config)));
    world.pass(1s);
  }
  void happen(int count) {
    event_batch facts;
    for (int i = 0; i < count; ++i) facts.records.push_back({0, 0, events::job_submitted{job_id{7}, "job", 1, {}}});
    world.say(front, local(facts));
  }
};

TEST_F(driver_with_a_history, cuts_off_a_subscriber_that_stays_without_credit) {
  config.max_event_lag = 4;
  begin();
  world.say(front, box(subscribe_events{0, 2}), client);
  happen(2);
  happen(4);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(1, 2));
  EXPECT_THAT(hears->cut_off, IsEmpty());
  happen(1);
  ASSERT_THAT(hears->cut_off, SizeIs(1));
  EXPECT_EQ(hears->cut_off[0]->last, 2u);
  happen(1);
  EXPECT_THAT(hears->cut_off, SizeIs(1)) << "it is forgotten";
  world.say(front, box(subscribe_events{hears->cut_off[0]->last + 1, 100}), client);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8)) << "it has missed nothing";
  EXPECT_EQ(hears->events.back()->skipped, 0u);
}

TEST_F(driver_with_a_history, says_how_many_events_are_no_longer_kept) {
  config.max_event_lag = 4;
  begin();
  happen(20);
  world.say(front, box(subscribe_events{3, 2}), client);
  EXPECT_THAT(hears->event_numbers(), ElementsAre(13, 14));
  EXPECT_EQ(hears->events.back()->skipped, 10u);
}

TEST_F(driver_with_a_history, gives_every_event_to_who_writes_them_down) {
  begin();
  happen(7);
  happen(1);
  std::vector<std::uint64_t> numbers;
  for (const auto& event : taken) numbers.push_back(event.number);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(driver, tells_of_the_alternatives_of_profiles_too) {
  const auto hears = std::make_shared<heard_by_client>();
  const auto client = spawn_listening_client(world, hears);
  world.say(front, box(subscribe_events{0, 100}), client);
  auto either = testing::make_profile({{"cores", 2}}, {{"cpus", "2"}});
  const auto other = testing::make_profile({{"cores", 3}}, {{"cpus", "3"}});
  either.alternatives = {other};
  EXPECT_FALSE(world.request(
      front, [](const boxed<job_accepted>&) {},
      box(job_submission{testing::job_builder{}.profile(either).stage("s", 1).with(1).make(), {}}), client));
  world.pass(1s);
  std::size_t added = 0;
  for (const auto& batch : hears->events)
    for (const auto& record : batch->records)
      if (const auto* fact = std::get_if<events::profile_added>(&record.content))
        added += fact->content.executor_amount("cores") == 3;
  EXPECT_EQ(added, 1u);
}

} // namespace
} // namespace troupe::actor_tests
