// A job of an application's own in one call.

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include <gmock/gmock-more-matchers.h>

#include <troupe/tests/actors/embedded_application.hpp>
#include <troupe/tests/support/process_probe.hpp>

namespace troupe::actor_tests {
namespace {

using ::testing::HasSubstr;

closed_door held;

std::int64_t hold(std::int64_t number) {
  held.pass();
  return number;
}
std::int64_t twice(std::int64_t number) { return 2 * number; }
std::int64_t fail(std::int64_t) { throw std::runtime_error{"it cannot be done"}; }
std::string much(std::int64_t) { return std::string(3000, 'm'); }
constexpr auto holding = task<"submission-hold", hold>;
constexpr auto doubling = task<"submission-twice", twice>;
constexpr auto failing = task<"submission-fail", fail>;
constexpr auto talking = task<"submission-much", much>;

class submissions : public ::testing::Test {
protected:
  submissions() { held.close(); }
  ~submissions() override {
    held.open();
    app.end();
  }
  submitted_job hand_over(std::shared_ptr<const job_spec> what, bool keep = false) {
    return submit(*app.system, app.cluster.driver, std::move(what),
                  {.on_accepted = [this](job_id) { ++accepted; },
                   .on_progress = [this](const job_progress&) { ++progress; },
                   .on_success = [this](const job_end& end) { end_with("success", end, {}); },
                   .on_failure = [this](const error& why) { end_with("failure", {}, why); },
                   .on_cancelled = [this](const error& why) { end_with("cancelled", {}, why); },
                   .keep_results = keep});
  }
  /// Which handler was called last.
  std::string how_it_ended() {
    EXPECT_EQ(over.get_future().wait_for(testing::patience()), std::future_status::ready);
    return how;
  }
  void end_with(const char* which, const job_end& end, const error& why) {
    how += which; // more than once would be seen
    last = end;
    reason = why;
    over.set_value();
  }

  application_of_actors app{std::chrono::seconds{1}};
  std::atomic<int> accepted = 0;
  std::atomic<int> progress = 0;
  std::promise<void> over;
  std::string how;
  job_end last;
  error reason;
};

TEST_F(submissions, tell_of_progress_and_success) {
  hand_over(job_of(holding, {1, 2, 3}));
  EXPECT_TRUE(testing::wait_until([&] { return accepted == 1 && progress > 0; }));
  held.open();
  EXPECT_EQ(how_it_ended(), "success");
  ASSERT_TRUE(last.results);
  EXPECT_EQ(last.progress.stages.at(0).done, 3u);
}

TEST_F(submissions, are_told_of_an_end_that_comes_before_their_acceptance) {
  // Which of the two comes first is not settled; that all are told is.
  std::vector<std::future<job_end>> ends;
  for (int i = 0; i < 200; ++i) ends.push_back(submit(*app.system, app.cluster.driver, job_of(doubling, {i})));
  for (auto& end : ends) EXPECT_FALSE(end.get().failure);
}

TEST_F(submissions, tell_why_a_job_has_failed) {
  hand_over(job_of(failing, {1}));
  EXPECT_EQ(how_it_ended(), "failure");
  EXPECT_THAT(reason.message, HasSubstr("it cannot be done"));
}

TEST_F(submissions, tell_why_a_job_is_refused) {
  hand_over(std::make_shared<const job_spec>());
  EXPECT_EQ(how_it_ended(), "failure");
  EXPECT_EQ(accepted, 0);
  EXPECT_NE(reason.message, "");
}

TEST_F(submissions, are_cancelled_while_they_run) {
  const auto job = hand_over(job_of(holding, {1}));
  ASSERT_TRUE(held.await(1));
  job.cancel("nobody wants it");
  EXPECT_EQ(how_it_ended(), "cancelled");
  EXPECT_THAT(reason.message, HasSubstr("nobody wants it"));
}

TEST_F(submissions, are_cancelled_before_they_are_accepted) {
  hand_over(job_of(holding, {1})).cancel("at once");
  EXPECT_EQ(how_it_ended(), "cancelled");
}

TEST_F(submissions, end_with_their_driver) {
  hand_over(job_of(holding, {1}));
  ASSERT_TRUE(held.await(1));
  shut_down(app.cluster.driver);
  EXPECT_EQ(how_it_ended(), "failure");
  EXPECT_EQ(reason.code, ec::unreachable);
  EXPECT_THAT(reason.message, HasSubstr("the driver has ended"));
}

TEST_F(submissions, to_a_driver_that_has_ended_fail_with_a_sentence) {
  shut_down(app.cluster.driver);
  await_end(app.cluster.driver);
  hand_over(job_of(doubling, {1}));
  EXPECT_EQ(how_it_ended(), "failure");
  EXPECT_EQ(reason.code, ec::unreachable);
  EXPECT_THAT(reason.message, HasSubstr("the driver has ended"));
}

/// CAF lets no system go while a thread that it knows of lives on.
TEST(threads_that_submit, do_not_keep_the_system) {
  std::promise<void> submitted;
  std::promise<void> over;
  application_of_actors app{std::chrono::seconds{1}};
  std::thread other{[&] {
    EXPECT_FALSE(submit(*app.system, app.cluster.driver, job_of(doubling, {1})).get().failure);
    submitted.set_value();
    over.get_future().wait();
  }};
  submitted.get_future().wait();
  app.end();
  over.set_value();
  other.join();
}

/// Bytes that executors hold.
std::uint64_t held_bytes(const application_of_actors& app) {
  caf::scoped_actor self{*app.system};
  std::uint64_t bytes = 0;
  ask(self, app.cluster.driver, testing::patience(), box(status_query{}))
      .receive(
          [&](const boxed<cluster_status>& answer) {
            for (const auto& executor : answer->executors) bytes += executor.block_bytes;
          },
          [](const caf::error&) { ADD_FAILURE(); });
  return bytes;
}

TEST(results_of_submissions, stay_for_as_long_as_they_are_kept) {
  for (const bool keep : {true, false}) {
    application_of_actors app{std::chrono::seconds{1}, 100};
    std::promise<job_end> promise;
    submit(*app.system, app.cluster.driver, job_of(talking, {1}),
           {.on_success = [&](const job_end& end) { promise.set_value(end); }, .keep_results = keep});
    const auto end = promise.get_future().get();
    if (keep) {
      EXPECT_TRUE(testing::wait_until([&] { return held_bytes(app) > 0; }));
      release_results_of(*app.system, app.cluster.driver, end.job);
    }
    EXPECT_TRUE(testing::wait_until([&] { return held_bytes(app) == 0; }));
    app.end();
  }
}

} // namespace
} // namespace troupe::actor_tests
