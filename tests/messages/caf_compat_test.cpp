// The spellings that hide which CAF this is.

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/type_ids.hpp>
#include <troupe/tests/support/patience.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

struct compat : ::testing::Test {
  struct config : caf::actor_system_config {
    config() {
      init_types();
      register_types(*this);
    }
  };
  config cfg;
  caf::actor_system system{cfg};
  caf::scoped_actor self{system};
};

// What the actors under test heard; promises are set once each.
struct ears {
  std::promise<std::string> unexpected, exception, error, forged;
  std::promise<caf::actor_addr> down;
  std::promise<std::string> exit;
};

template <class T>
T heard(std::promise<T>& from) {
  auto future = from.get_future();
  if (future.wait_for(troupe::testing::patience()) != std::future_status::ready)
    throw std::runtime_error{"nothing was heard"};
  return future.get();
}

/// Its one notice says what to do: `throw`, `watch` or anything else.
using odd_actor = handle<void(boxed<cancel_job>), boxed<acknowledged>(boxed<stop_session>)>;

struct odd_state {};

odd_actor::behavior_type odd(stateful_pointer<odd_actor, odd_state> self, std::shared_ptr<ears> e, odd_actor other,
                             bool mortal) {
  auto* system = &self->system();
  harden(self, {.on_unexpected = [e](const std::string& what) { e->unexpected.set_value(what); },
                .on_down = [e](const caf::actor_addr& who, const caf::error&) { e->down.set_value(who); },
                .on_error = [e, system](const caf::error& what) { e->error.set_value(describe(*system, what)); },
                .on_exit =
                    [e, system, mortal](const caf::actor_addr&, const caf::error& why) {
                      e->exit.set_value(describe(*system, why));
                      return mortal;
                    },
                .on_forged = [e](const std::string& what) { e->forged.set_value(what); },
                .on_exception = [e](const std::string& what) { e->exception.set_value(what); }});
  if (other) watch(self, other);
  return {
      [self, other](const boxed<cancel_job>& what) {
        if (what->reason == "throw") throw std::runtime_error{"on purpose"};
        if (what->reason == "ask")
          ask(self, other, troupe::testing::patience(), box(stop_session{})).then([](const boxed<acknowledged>&) {});
      },
      [](const boxed<stop_session>& why) -> caf::result<boxed<acknowledged>> {
        if (why->reason == "fine") return box(acknowledged{});
        return to_caf_error(make_error(ec::refused, "not now: " + why->reason));
      }};
}

/// Ends an actor that declines to.
void end_against_its_will(const odd_actor& actor) {
  dynamic_cast<detail::trusted_mailbox&>(*caf::actor_cast<caf::abstract_actor*>(actor))
      .take(caf::make_mailbox_element(nullptr, caf::make_message_id(), {},
                                      caf::exit_msg{actor.address(), caf::make_error(caf::exit_reason::kill)}));
  await_end(actor);
}

TEST_F(compat, hardened_actor_reports_what_is_unexpected) {
  auto e = std::make_shared<ears>();
  const auto actor = system.spawn(odd, e, odd_actor{}, true);
  caf::anon_send(caf::actor_cast<caf::actor>(actor), box(hello{}), box(goodbye{}));
  EXPECT_EQ(heard(e->unexpected), "troupe::boxed<troupe::hello>, troupe::boxed<troupe::goodbye>");
  bool alive = false;
  ask(self, actor, troupe::testing::patience(), box(stop_session{"fine"}))
      .receive([&](const boxed<acknowledged>&) { alive = true; }, [](const caf::error&) {});
  EXPECT_TRUE(alive);
  shut_down(actor);
}

TEST_F(compat, hardened_actor_ends_after_an_exception_and_watchers_hear_of_it) {
  auto e = std::make_shared<ears>();
  const auto actor = system.spawn(odd, e, odd_actor{}, true);
  auto w = std::make_shared<ears>();
  const auto watcher = system.spawn(odd, w, actor, true);
  // The watcher has looked before the other throws: it answers in order.
  ask(self, watcher, troupe::testing::patience(), box(stop_session{"fine"}))
      .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { FAIL(); });
  tell(self, actor, box(cancel_job{{}, "throw"}));
  EXPECT_EQ(heard(e->exception), "on purpose");
  EXPECT_EQ(heard(w->down), actor.address());
  shut_down(watcher);
}

TEST_F(compat, hardened_actor_reports_errors_without_a_handler) {
  auto e = std::make_shared<ears>();
  const auto refusing = system.spawn(odd, std::make_shared<ears>(), odd_actor{}, true);
  const auto actor = system.spawn(odd, e, refusing, true);
  tell(self, actor, box(cancel_job{{}, "ask"}));
  EXPECT_NE(heard(e->error).find("not now"), std::string::npos);
  shut_down(actor);
  shut_down(refusing);
}

TEST_F(compat, hardened_actor_may_decline_to_end) {
  auto e = std::make_shared<ears>();
  const auto actor = system.spawn(odd, e, odd_actor{}, false);
  shut_down(actor);
  EXPECT_FALSE(heard(e->exit).empty());
  bool alive = false;
  ask(self, actor, troupe::testing::patience(), box(stop_session{"fine"}))
      .receive([&](const boxed<acknowledged>&) { alive = true; }, [](const caf::error&) {});
  EXPECT_TRUE(alive);
  end_against_its_will(actor);
}

TEST_F(compat, hardened_actor_refuses_orders_that_could_come_over_a_connection) {
  for (const auto why : {caf::exit_reason::kill, caf::exit_reason::user_shutdown}) {
    auto e = std::make_shared<ears>();
    const auto actor = system.spawn(odd, e, odd_actor{}, true);
    self->send_exit(actor, why);
    EXPECT_EQ(heard(e->forged), "an order to end");
    shut_down(actor);
    EXPECT_FALSE(heard(e->exit).empty());
    await_end(actor);
  }
}

TEST_F(compat, hardened_actor_believes_no_notice_that_could_come_over_a_connection) {
  auto e = std::make_shared<ears>();
  const auto watched = system.spawn(odd, std::make_shared<ears>(), odd_actor{}, true);
  const auto actor = system.spawn(odd, e, watched, true);
  self->send(caf::actor_cast<caf::actor>(actor), caf::down_msg{watched.address(), caf::error{}});
  EXPECT_EQ(heard(e->forged), "the notice of an end");
  shut_down(watched);
  EXPECT_EQ(heard(e->down), watched.address());
  shut_down(actor);
}

TEST_F(compat, watching_what_has_ended_gives_a_notice) {
  const auto watched = system.spawn(odd, std::make_shared<ears>(), odd_actor{}, true);
  shut_down(watched);
  await_end(watched);
  auto e = std::make_shared<ears>();
  const auto actor = system.spawn(odd, e, watched, true);
  EXPECT_EQ(heard(e->down), watched.address());
  shut_down(actor);
}

TEST_F(compat, errors_pass_through_a_request) {
  const auto actor = system.spawn(odd, std::make_shared<ears>(), odd_actor{}, true);
  error got;
  ask(self, actor, troupe::testing::patience(), box(stop_session{"busy"}))
      .receive([](const boxed<acknowledged>&) { FAIL(); },
               [&](const caf::error& e) { got = from_caf_error(system, e); });
  EXPECT_EQ(got, make_error(ec::refused, "not now: busy"));
  shut_down(actor);
}

TEST_F(compat, a_request_to_nobody_is_unreachable) {
  const auto actor = system.spawn(odd, std::make_shared<ears>(), odd_actor{}, true);
  shut_down(actor);
  await_end(actor);
  error got;
  ask(self, actor, troupe::testing::patience(), box(stop_session{"fine"}))
      .receive([](const boxed<acknowledged>&) { FAIL(); },
               [&](const caf::error& e) { got = from_caf_error(system, e); });
  EXPECT_EQ(got.code, ec::unreachable) << got.message;
}

using silent_actor = handle<boxed<acknowledged>(boxed<stop_session>)>;

using open_question = caf::typed_response_promise<boxed<acknowledged>>;

/// Keeps what it is asked, and never answers.
silent_actor::behavior_type silent(silent_actor::pointer self, std::shared_ptr<std::vector<open_question>> kept) {
  return {[self, kept](const boxed<stop_session>&) {
    kept->push_back(self->make_response_promise<boxed<acknowledged>>());
    return kept->back();
  }};
}

TEST_F(compat, a_request_without_an_answer_is_unreachable) {
  const auto actor = system.spawn(silent, std::make_shared<std::vector<open_question>>());
  error got;
  // Less than a millisecond must not become "no time-out".
  ask(self, actor, 100us, box(stop_session{}))
      .receive([](const boxed<acknowledged>&) { FAIL(); },
               [&](const caf::error& e) { got = from_caf_error(system, e); });
  EXPECT_EQ(got.code, ec::unreachable) << got.message;
  shut_down(actor);
}

TEST_F(compat, an_unknown_error_number_is_still_an_error) {
  const auto strange = caf::make_error(caf::sec::runtime_error, std::uint16_t{999}, std::string{"from the future"});
  EXPECT_EQ(from_caf_error(system, strange), make_error(ec::internal, "from the future"));
  const auto none = caf::make_error(caf::sec::runtime_error, std::uint16_t{0}, std::string{"says none"});
  EXPECT_EQ(from_caf_error(system, none), make_error(ec::internal, "says none"));
}

TEST(set_caf_option, sets_known_options) {
  caf::actor_system_config cfg;
  EXPECT_TRUE(set_caf_option(cfg, "scheduler.max-threads", "3"));
  EXPECT_TRUE(set_caf_option(cfg, "scheduler.policy", "sharing"));
  EXPECT_TRUE(set_caf_option(cfg, "middleman.heartbeat-interval", "250ms"));
  EXPECT_TRUE(set_caf_option(cfg, "middleman.connection-timeout", "2min"));
#if !TROUPE_CAF1
  EXPECT_EQ(caf::get_or(cfg, "scheduler.max-threads", std::size_t{0}), 3u);
  EXPECT_EQ(caf::get_or(cfg, "scheduler.policy", caf::atom("")), caf::atom("sharing"));
  EXPECT_EQ(caf::get_or(cfg, "middleman.heartbeat-interval", caf::timespan{}), caf::timespan{250ms});
  EXPECT_EQ(caf::get_or(cfg, "middleman.connection-timeout", caf::timespan{}), caf::timespan{2min});
#endif
}

TEST(set_caf_option, takes_effect) {
  caf::actor_system_config cfg;
  ASSERT_TRUE(set_caf_option(cfg, "scheduler.policy", "sharing"));
  ASSERT_TRUE(set_caf_option(cfg, "scheduler.max-threads", "3"));
  caf::actor_system system{cfg};
  EXPECT_EQ(system.scheduler().num_workers(), 3u);
}

TEST(set_caf_option, refuses_what_caf_would_drop_in_silence) {
  caf::actor_system_config cfg;
  for (const auto& [key, value] : {std::pair{"scheduler.max-threads", "three"},
                                   {"scheduler.max-threads", "-1"},
                                   {"scheduler.max-threads", "3ms"},
                                   {"scheduler.max-threads", ""},
                                   {"scheduler.max-threads", "9223372036854775808"},
                                   {"scheduler.policy", "fair"},
                                   {"middleman.heartbeat-interval", "1.5s"},
                                   {"middleman.heartbeat-interval", "250"},
                                   {"middleman.heartbeat-interval", "3000000h"}}) {
    const auto set = set_caf_option(cfg, key, value);
    ASSERT_FALSE(set) << key << " = " << value;
    EXPECT_EQ(set.error().code, ec::invalid_configuration);
    EXPECT_NE(set.error().message.find(key), std::string::npos);
    EXPECT_NE(set.error().message.find(" = " + std::string{value} + ": must be "), std::string::npos)
        << set.error().message;
  }
  for (const auto* key : {"scheduler.max-thread", "middleman.enable-automatic-connections", ""})
    EXPECT_FALSE(set_caf_option(cfg, key, "true")) << key;
  EXPECT_EQ(set_caf_option(cfg, "scheduler.max-thread", "2").error().message,
            "caf.scheduler.max-thread = 2: there is no such option of CAF; did you mean caf.scheduler.max-threads?");
}

} // namespace
} // namespace troupe
