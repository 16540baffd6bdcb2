// The end of a driver in an application's own actor system: the system goes when the last task has ended, and not
// before, whatever its jobs are at.

#include <atomic>
#include <chrono>
#include <future>

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

TEST_P(an_embedded_driver, lets_its_system_go_where_nothing_runs) {
  application_of_actors app{std::chrono::seconds{1}};
  if (GetParam().stops_the_session) app.stop_session();
  app.end();
}

} // namespace
} // namespace troupe::actor_tests
