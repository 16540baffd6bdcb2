// Outputs of accepted attempts, on threads of their own: so these actors run on real ones, too.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <mutex>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/actors/client.hpp>
#include <troupe/launcher/node_system.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/tests/actors/fakes.hpp>
#include <troupe/tests/support/process_probe.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::actor_tests {
namespace {

/// What an executor was ordered, by threads of CAF.
struct orders_heard {
  std::mutex mutex;
  std::vector<boxed<executor_orders>> all;
};

executor_actor::behavior_type listens(executor_actor::pointer self, const std::shared_ptr<orders_heard>& heard) {
  harden(self, {});
  return {[heard](const boxed<executor_orders>& orders) {
            const std::lock_guard lock{heard->mutex};
            heard->all.push_back(orders);
          },
          [](const boxed<driver_heartbeat>&) {}, [](const boxed<stop_session>&) { return box(acknowledged{}); }};
}

class publication : public ::testing::Test {
protected:
  /// An executor that does what it is told when the test says so.
  struct worker {
    std::shared_ptr<orders_heard> heard = std::make_shared<orders_heard>();
    executor_actor handle;
    admission admitted;
    std::unique_ptr<testing::fake_executor> logic;
    std::size_t applied = 0;

    std::vector<testing::fake_attempt> attempts() {
      const std::lock_guard lock{heard->mutex};
      for (; applied < heard->all.size(); ++applied)
        if (const auto fault = logic->apply(*heard->all[applied])) ADD_FAILURE() << *fault;
      return logic->attempts();
    }
    bool has_a_right() {
      const std::lock_guard lock{heard->mutex};
      return std::any_of(heard->all.begin(), heard->all.end(), [](const auto& o) { return !o->rights.empty(); });
    }
  };

  void TearDown() override {
    for (const auto& actor : executors) shut_down(actor);
    shut_down(client);
    shut_down(front);
  }
  worker join(incarnation epoch) {
    worker w;
    w.handle = system.spawn(listens, w.heard);
    executors.push_back(w.handle);
    caf::scoped_actor self{system};
    const hello_opening opening{peer_role::executor, cluster_name};
    executor_registration registration;
    registration.info = testing::executor_builder{}.make({}, epoch);
    ask(self, front, testing::patience(), box(opening.message()))
        .receive([&](const boxed<hello_challenge>& c) { registration.proof = *opening.answer(*c, *secret); },
                 [](const caf::error&) { ADD_FAILURE(); });
    ask(self, front, testing::patience(), box(std::move(registration)), w.handle)
        .receive(
            [&](const boxed<welcome>& answer, const dag_scheduler_actor& to) {
              w.admitted = {{}, answer->executor, to};
            },
            [](const caf::error&) { ADD_FAILURE(); });
    w.logic = std::make_unique<testing::fake_executor>(testing::executor_builder{}.make(w.admitted.id, epoch));
    return w;
  }
  void submit(const std::shared_ptr<const job_spec>& job) {
    caf::scoped_actor self{system};
    ask(self, front, testing::patience(), box(job_submission{job, {}}), client_actor{client})
        .receive([](const boxed<job_accepted>&) {}, [](const caf::error&) { ADD_FAILURE(); });
  }
  void succeed(worker& w, const testing::fake_attempt& a) {
    caf::scoped_actor self{system};
    tell(self, w.admitted.scheduler, box(w.logic->report({w.logic->success(a)})));
  }

  std::shared_ptr<const session_secret> secret = std::make_shared<const session_secret>(session_secret::generate());
  std::atomic<int> ends = 0;
  std::atomic<bool> complete = false; ///< at the end of the job
  std::function<bool()> look = [] { return true; };
  node_config config{false};
  caf::actor_system system{config};
  local_driver_actor front = spawn_driver(system, patient_driver(secret));
  local_client_actor client = spawn_client(system, [this] {
    client_config c;
    c.on_end = [this](const boxed<job_end>&) {
      complete = look();
      ++ends;
    };
    return c;
  }());
  std::vector<executor_actor> executors;
};

TEST_F(publication, is_over_when_the_end_is_told) {
  const testing::temporary_directory folder;
  auto w = join(1);
  submit(testing::job_builder{}.stage("make", 1).outputs(folder.path()).make());
  ASSERT_TRUE(testing::wait_until([&] { return !w.attempts().empty(); }));
  const auto a = w.attempts().at(0);
  const auto place = place_of("session-of-tests", a.stage, a.partition, a.attempt, w.admitted.id, folder.path());
  std::filesystem::create_directories(place.root);
  std::ofstream{place.path()} << "made";
  std::filesystem::create_directories(place.root + "/0.7-99"); // of an attempt that was given up
  look = [&] { return std::filesystem::exists(folder.path() + "/out-0") && !std::filesystem::exists(place.root); };
  succeed(w, a);
  ASSERT_TRUE(testing::wait_until([&] { return ends == 1; }));
  EXPECT_TRUE(complete) << "it was told before its outputs were in place, or something still waits";
}

TEST_F(publication, passes_on_when_its_executor_has_said_goodbye) {
  auto w = join(1);
  submit(testing::job_builder{}.stage("make", 1).outputs("/nowhere/that/is").make());
  ASSERT_TRUE(testing::wait_until([&] { return !w.attempts().empty(); }));
  succeed(w, w.attempts().at(0));
  ASSERT_TRUE(testing::wait_until([&] { return w.has_a_right(); })) << "the driver does not see it";
  caf::scoped_actor self{system};
  ask(self, front, testing::patience(), box(goodbye{w.admitted.id, 1, "done"}))
      .receive([](const boxed<acknowledged>&) {}, [](const caf::error&) { ADD_FAILURE(); });
  auto other = join(2);
  ASSERT_TRUE(testing::wait_until([&] { return !other.attempts().empty() || ends > 0; }));
  EXPECT_EQ(ends, 0) << "the job has failed, as if nobody knew what became of the first one";
  EXPECT_EQ(other.attempts().at(0).attempt, 1u);
}

} // namespace
} // namespace troupe::actor_tests
