// The allocator with a backend that only keeps what it is told.

#include <map>
#include <optional>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/actors/fakes.hpp>

namespace troupe::actor_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct kept_backend : executor_backend {
  std::vector<executor_order> wanted;
  std::vector<launch_status> statuses;
  std::uint32_t room = 100;

  void converge(const std::vector<executor_order>& orders) override { wanted = orders; }
  std::vector<launch_status> snapshot() override { return statuses; }
  feasibility check(const executor_shape& shape) override { return {shape.shape.value == 1, true, "only shape 1"}; }
  std::uint32_t room_for(const executor_shape&) override { return room - static_cast<std::uint32_t>(wanted.size()); }
  std::vector<std::uint64_t> requests() const {
    std::vector<std::uint64_t> out;
    for (const auto& order : wanted) out.push_back(order.request.value);
    return out;
  }
  void all_run() {
    statuses.clear();
    for (const auto& order : wanted) statuses.push_back({order.request, order.shape.shape, launch_state::running, {}});
  }
};

/// Keeps what the allocator tells its scheduler, and consents as it is told.
struct heard_by_scheduler {
  std::vector<boxed<launch_report>> failures;
  std::vector<shape_status> shapes;
  std::vector<executor_id> asked;
  std::vector<events::executor_requested> requested;
  bool consent = true;
};

dag_scheduler_actor spawn_listening_scheduler(testing::virtual_system& world,
                                              std::shared_ptr<heard_by_scheduler> heard) {
  const auto behavior =
      [=](stateful_pointer<dag_scheduler_actor, no_state> self) -> dag_scheduler_actor::behavior_type {
    harden(self, {});
    return {
        [](const boxed<executor_report>&) {},
        [heard](const boxed<release_request>& request) {
          heard->asked.push_back(request->executor);
          return box(release_answer{request->executor, heard->consent, false, "as the test says"});
        },
        [heard](const boxed<launch_report>& report) { heard->failures.push_back(report); },
        [heard](const boxed<allocation_report>& report) { heard->shapes = report->shapes; },
        [heard](const boxed<event_batch>& facts) {
          for (const auto& record : facts->records)
            if (const auto* request = std::get_if<events::executor_requested>(&record.content))
              heard->requested.push_back(*request);
        },
    };
  };
  return world.end_with_system(world.system().spawn(behavior));
}

class allocator : public ::testing::Test {
protected:
  testing::virtual_system world;
  std::shared_ptr<kept_backend> backend = std::make_shared<kept_backend>();
  std::shared_ptr<heard_by_scheduler> heard = std::make_shared<heard_by_scheduler>();
  dag_scheduler_actor scheduler = spawn_listening_scheduler(world, heard);
  allocator_actor tested = start();
  executor_shape shape{shape_id{1}, testing::default_test_profile()};

  allocator_actor start() {
    allocator_config config;
    config.backend = backend;
    config.scheduler = scheduler;
    config.policy.idle_timeout = 10s;
    return world.end_with_system(spawn_allocator(world.system(), std::move(config)));
  }
  load_report report(std::uint64_t number, std::uint32_t wanted) const {
    load_report r;
    r.number = number;
    if (number == 1) r.new_shapes.push_back(shape);
    if (wanted > 0) r.loads.push_back({shape.shape, wanted, wanted, true});
    return r;
  }
};

TEST_F(allocator, starts_what_is_wanted) {
  world.say(tested, box(report(1, 3)));
  EXPECT_THAT(backend->requests(), ElementsAre(1, 2, 3));
}

TEST_F(allocator, tells_of_every_request) {
  world.say(tested, box(report(1, 2)));
  const events::executor_requested first{request_id{1}, shape.shape, to_string(shape.profile)};
  ASSERT_EQ(heard->requested.size(), 2u);
  EXPECT_EQ(heard->requested[0], first);
  EXPECT_EQ(heard->requested[1].request, request_id{2});
}

TEST_F(allocator, drops_an_older_report) {
  world.say(tested, box(report(1, 0)));
  world.say(tested, box(report(3, 0)));
  world.say(tested, box(report(2, 3)));
  EXPECT_THAT(backend->requests(), IsEmpty());
}

TEST_F(allocator, starts_no_more_than_there_is_room_for) {
  backend->room = 2;
  world.say(tested, box(report(1, 5)));
  EXPECT_THAT(backend->requests(), ElementsAre(1, 2));
  EXPECT_THAT(heard->shapes, ElementsAre(shape_status{shape.shape, 2, 3, allocation_obstacle::room}));
}

TEST_F(allocator, tells_of_launches_that_failed) {
  world.say(tested, box(report(1, 1)));
  backend->statuses = {{request_id{1}, shape.shape, launch_state::gone, "it ended with exit code 3"}};
  world.pass(200ms);
  ASSERT_EQ(heard->failures.size(), 1u);
  EXPECT_EQ(heard->failures[0]->statuses.at(0).detail, "it ended with exit code 3");
}

TEST_F(allocator, stops_an_idle_executor_only_with_consent) {
  world.say(tested, box(report(1, 1)));
  backend->all_run();
  auto idle = report(2, 0);
  idle.present = {request_id{1}};
  idle.idle.push_back({executor_id{9}, request_id{1}, std::uint64_t{11'000'000'000}, false, false});
  heard->consent = false;
  world.say(tested, box(idle));
  EXPECT_THAT(heard->asked, ElementsAre(executor_id{9}));
  EXPECT_THAT(backend->requests(), ElementsAre(1));
  heard->consent = true;
  idle.number = 3;
  world.say(tested, box(idle));
  EXPECT_THAT(backend->requests(), IsEmpty());
}

TEST_F(allocator, asks_nobody_about_an_executor_that_was_idle_for_a_moment) {
  world.say(tested, box(report(1, 1)));
  backend->all_run();
  auto idle = report(2, 0);
  idle.present = {request_id{1}};
  idle.idle.push_back({executor_id{9}, request_id{1}, std::uint64_t{9'000'000'000}, false, false});
  world.say(tested, box(idle));
  EXPECT_THAT(heard->asked, IsEmpty());
}

TEST_F(allocator, answers_what_is_feasible_from_its_backend) {
  feasibility_answer got;
  EXPECT_FALSE(world.request(
      tested, [&](const boxed<feasibility_answer>& a) { got = *a; },
      box(feasibility_query{{shape, {shape_id{2}, shape.profile}}})));
  ASSERT_EQ(got.answers.size(), 2u);
  EXPECT_TRUE(got.answers[0].feasible);
  EXPECT_FALSE(got.answers[1].feasible);
  EXPECT_EQ(got.answers[1].sentence, "only shape 1");
}

TEST_F(allocator, tells_how_an_executor_has_ended_as_soon_as_its_backend_has_seen_it) {
  world.say(tested, box(report(1, 1)));
  backend->all_run();
  std::optional<executor_exit> got;
  auto answer = ask(world.self(), tested, 1h, box(exit_query{request_id{1}}));
  world.pass(50ms);
  EXPECT_FALSE(world.has_mail());
  const executor_exit starved{exit_cause::memory_limit, 0, 9, 1 << 28, 1 << 27};
  backend->statuses = {{request_id{1}, shape.shape, launch_state::gone, "it was killed", starved}};
  world.pass(10ms);
  ASSERT_TRUE(world.has_mail());
  answer.receive([&](const boxed<exit_answer>& a) { got = a->exit; }, [](const caf::error&) {});
  EXPECT_EQ(got, starved);
}

TEST_F(allocator, does_not_wait_for_ever_for_an_end_and_not_at_all_for_one_that_it_knows_nothing_of) {
  world.say(tested, box(report(1, 1)));
  backend->all_run();
  std::optional<executor_exit> got;
  EXPECT_FALSE(world.request(
      tested, [&](const boxed<exit_answer>& a) { got = a->exit; }, box(exit_query{request_id{7}})));
  EXPECT_EQ(got, executor_exit{});
  got.reset();
  auto answer = ask(world.self(), tested, 1h, box(exit_query{request_id{1}}));
  world.pass(1s);
  EXPECT_FALSE(world.has_mail());
  world.pass(2s);
  ASSERT_TRUE(world.has_mail());
  answer.receive([&](const boxed<exit_answer>& a) { got = a->exit; }, [](const caf::error&) {});
  EXPECT_EQ(got, executor_exit{});
}

TEST_F(allocator, has_stopped_when_nothing_of_it_is_left) {
  world.say(tested, box(report(1, 2)));
  backend->all_run();
  bool over = false;
  auto answer = ask(world.self(), tested, 1h, box(stop_session{"the end"}));
  world.settle();
  EXPECT_THAT(backend->requests(), IsEmpty());
  world.pass(1s);
  backend->statuses.pop_back();
  world.pass(1s);
  world.say(tested, box(report(2, 5)));
  EXPECT_THAT(backend->requests(), IsEmpty()) << "started something after the end";
  EXPECT_FALSE(world.has_mail()) << "one still runs";
  backend->statuses = {{request_id{2}, shape.shape, launch_state::gone, "it ended with exit code 0"}};
  world.pass(1s);
  ASSERT_TRUE(world.has_mail());
  answer.receive([&](const boxed<acknowledged>&) { over = true; }, [](const caf::error&) {});
  EXPECT_TRUE(over);
}

} // namespace
} // namespace troupe::actor_tests
