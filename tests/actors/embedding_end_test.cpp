// The end of a driver in an application's own actor system: the system goes when the last task has ended, and not
// before, whatever its jobs are at.

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/tests/actors/embedded_application.hpp>
#include <troupe/tests/support/process_probe.hpp>

namespace troupe::actor_tests {
namespace {

closed_door door;

std::int64_t stand_at_the_door(std::int64_t number) {
  door.pass();
  return number;
}
std::int64_t end_at_once(std::int64_t number) { return number; }
constexpr auto stubborn = task<"embedding-end-stubborn", stand_at_the_door>;
constexpr auto quick = task<"embedding-end-quick", end_at_once>;
/// The first one of a gang holds up the others.
std::int64_t stand_in_a_gang(std::int64_t number) {
  if (number == 0) door.pass();
  task_context::current().barrier();
  return number;
}
std::int64_t fail_at_once(std::int64_t) { throw std::runtime_error{"it cannot be done"}; }
constexpr auto in_a_gang = task<"embedding-end-gang", stand_in_a_gang>;
constexpr auto failing = task<"embedding-end-fail", fail_at_once>;

template <class Task>
std::shared_ptr<const job_spec> gang_of(const Task& what) {
  job one{"gang"};
  one.stage("only").run(what).arguments(std::vector<std::int64_t>{0, 1}).barrier();
  return std::make_shared<const job_spec>(one.build({}, 0));
}

struct way_to_end {
  const char* name;
  bool stops_the_session;
};

class an_embedded_driver : public ::testing::TestWithParam<way_to_end> {
protected:
  void SetUp() override { door.close(); }
};
INSTANTIATE_TEST_SUITE_P(ends, an_embedded_driver,
                         ::testing::Values(way_to_end{"with_stop_session", true}, way_to_end{"without", false}),
                         [](const auto& e) { return std::string{e.param.name}; });

TEST_P(an_embedded_driver, lets_its_system_go_when_the_last_task_has_ended) {
  for (int round = 0; round < 2; ++round) { // twice in one process
    door.close();
    application_of_actors app{std::chrono::milliseconds{20}};
    EXPECT_FALSE(submit(*app.system, app.cluster.driver, job_of(quick, {1, 2, 3})).get().failure);
    auto running = submit(*app.system, app.cluster.driver, job_of(stubborn, {1, 2}));
    ASSERT_TRUE(door.await(2));
    auto waiting = submit(*app.system, app.cluster.driver, job_of(quick, {1})); // there is no slot for it
    if (GetParam().stops_the_session) app.stop_session();
    std::atomic<bool> gone = false;
    auto opens = std::async(std::launch::async, [&] {
      EXPECT_TRUE(testing::wait_until([&] { return app.lines->have("waits tasks="); }));
      EXPECT_FALSE(gone) << "its tasks still run";
      EXPECT_TRUE(running.get().failure) << "it ends with its driver, not with its tasks";
      EXPECT_TRUE(waiting.get().failure);
      door.open();
    });
    app.end();
    gone = true;
    opens.get();
  }
}

TEST_P(an_embedded_driver, lets_its_system_go_whose_tasks_end_within_the_grace) {
  application_of_actors app{testing::patience()};
  submit(*app.system, app.cluster.driver, job_of(stubborn, {1, 2}));
  ASSERT_TRUE(door.await(2));
  auto opens = std::async(std::launch::async, [] { door.open(); });
  if (GetParam().stops_the_session) app.stop_session();
  app.end();
  EXPECT_FALSE(app.lines->have("waits tasks="));
}

/// Two executors of one core; of each pair the first job takes what the second one waits for.
TEST_P(an_embedded_driver, lets_its_system_go_with_jobs_in_each_state) {
  const auto end = [&](application_of_actors& app) {
    if (GetParam().stops_the_session) app.stop_session();
    auto opens = std::async(std::launch::async, [] { door.open(); });
    app.end();
  };
  const auto hand_over = [](application_of_actors& app, std::shared_ptr<const job_spec> what) {
    return submit(*app.system, app.cluster.driver, std::move(what));
  };
  const auto hand_over_to_cancel = [](application_of_actors& app, std::shared_ptr<const job_spec> what) {
    auto told = std::make_shared<std::promise<ec>>();
    return std::pair{submit(*app.system, app.cluster.driver, std::move(what),
                            {.on_end = [told](const job_end& over) { told->set_value(over.failure.code); }}),
                     told};
  };
  {
    application_of_actors app{std::chrono::milliseconds{20}};
    EXPECT_TRUE(hand_over(app, job_of(failing, {1})).get().failure) << "one that has failed";
    const auto [running, end_of_running] = hand_over_to_cancel(app, job_of(stubborn, {1, 2}));
    ASSERT_TRUE(door.await(2));
    const auto [waiting, end_of_waiting] = hand_over_to_cancel(app, job_of(quick, {1}));
    waiting.cancel("before it has begun");
    EXPECT_EQ(end_of_waiting->get_future().get(), ec::cancelled);
    running.cancel("while its tasks hear nothing");
    EXPECT_EQ(end_of_running->get_future().get(), ec::cancelled);
    end(app);
  }
  door.close();
  {
    application_of_actors app{std::chrono::milliseconds{20}};
    auto running = hand_over(app, job_of(stubborn, {1}));
    ASSERT_TRUE(door.await(1));
    auto gang = hand_over(app, gang_of(quick)); // it has one slot of two
    end(app);
    EXPECT_EQ(running.wait_for(testing::patience()), std::future_status::ready);
    EXPECT_EQ(gang.wait_for(testing::patience()), std::future_status::ready);
  }
  door.close();
  {
    application_of_actors app{std::chrono::milliseconds{20}};
    auto gang = hand_over(app, gang_of(in_a_gang));
    ASSERT_TRUE(door.await(1)); // the other one waits at the barrier, or will
    auto behind = hand_over(app, gang_of(in_a_gang));
    end(app);
    EXPECT_EQ(gang.wait_for(testing::patience()), std::future_status::ready);
    EXPECT_EQ(behind.wait_for(testing::patience()), std::future_status::ready);
  }
}

TEST_P(an_embedded_driver, lets_its_system_go_where_nothing_runs) {
  application_of_actors app{std::chrono::seconds{1}};
  if (GetParam().stops_the_session) app.stop_session();
  app.end();
}

} // namespace
} // namespace troupe::actor_tests
