// Outputs that outlive their executors, since a shuffle service keeps them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class takeover : public ::testing::Test {
protected:
  /// Two maps on one executor, which is asked to go before the reducers, under a profile that it does not satisfy.
  void run_maps() {
    maps_on = h.add(executor_builder{}.cores(2));
    resource_profile wide;
    wide.executor["cores"] = {4, {}, {}};
    wide.task["cpus"] = share::whole(4);
    job = h.submit(job_builder{}.profile(wide).stage("map", 2).buckets(1).stage("reduce", 1).with(1).reads(0));
    h.succeed_all(maps_on);
    ASSERT_THAT(h.attempts_of(job, 1), IsEmpty());
  }
  executor_id add_service() { return h.add(executor_builder{}.shuffle_service()); }
  /// The service says that it has what it was asked to keep.
  void take_all(executor_id service) {
    auto report = h.executor(service).report({});
    report.taken_over = h.executor(service).takeovers();
    h.deliver(report);
  }
  bool is_serving(executor_id e) {
    h.tick();
    for (const auto& idle : h.loads.back().idle)
      if (idle.executor == e) return idle.serving;
    ADD_FAILURE() << "it is not idle";
    return false;
  }
  /// Where the next reducer is told to read.
  std::vector<executor_id> sources() {
    const auto e = h.add(executor_builder{}.cores(4));
    const auto* const install = h.executor(e).installed(h.stage_of(job, 1));
    std::vector<executor_id> all;
    if (install)
      for (const auto& endpoint : install->inputs.at(0).endpoints) all.push_back(endpoint.executor);
    return all;
  }

  scheduler_harness h;
  executor_id maps_on;
  job_id job;
};

TEST_F(takeover, outputs_are_the_services_own_once_it_has_them) {
  run_maps();
  const auto service = add_service();
  EXPECT_TRUE(h.release(maps_on).serving);
  ASSERT_THAT(h.executor(service).takeovers(), SizeIs(1));
  EXPECT_EQ(h.executor(service).takeovers()[0].from.executor, maps_on);
  EXPECT_THAT(h.executor(service).takeovers()[0].blocks, SizeIs(2));
  EXPECT_TRUE(is_serving(maps_on)) << "until the service has said so";
  h.release(maps_on);
  EXPECT_THAT(h.executor(service).takeovers(), SizeIs(1)) << "asked once";
  take_all(service);
  EXPECT_FALSE(is_serving(maps_on)) << "it may go";
  h.lose(maps_on, "it was asked to end", false);
  EXPECT_THAT(h.events<events::map_output_lost>(), IsEmpty());
  EXPECT_THAT(sources(), ElementsAre(service));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  EXPECT_THAT(h.progress(job).stages[0].failures, 0u);
  h.check_idle();
}

TEST_F(takeover, a_service_that_comes_later_is_asked_then) {
  run_maps();
  EXPECT_TRUE(h.release(maps_on).serving);
  const auto service = add_service();
  ASSERT_THAT(h.executor(service).takeovers(), SizeIs(1));
  take_all(service);
  EXPECT_FALSE(is_serving(maps_on));
}

TEST_F(takeover, what_a_lost_service_kept_is_made_again) {
  run_maps();
  const auto service = add_service();
  h.release(maps_on);
  take_all(service);
  h.lose(maps_on, "it was asked to end", false);
  h.lose(service);
  EXPECT_THAT(h.events<events::map_output_lost>(), SizeIs(2));
  h.add(executor_builder{}.cores(2));
  h.add(executor_builder{}.cores(4));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(takeover, the_next_service_is_asked_where_one_was_lost_too_early) {
  run_maps();
  const auto first = add_service();
  h.release(maps_on);
  h.lose(first);
  EXPECT_THAT(h.events<events::map_output_lost>(), IsEmpty()) << "the executor has them still";
  const auto second = add_service();
  ASSERT_THAT(h.executor(second).takeovers(), SizeIs(1));
  take_all(second);
  EXPECT_FALSE(is_serving(maps_on));
}

TEST_F(takeover, what_is_needed_no_more_when_it_comes_is_dropped) {
  run_maps();
  const auto service = add_service();
  h.release(maps_on);
  const auto stage = h.stage_of(job, 0);
  h.cancel(job);
  take_all(service);
  EXPECT_THAT(h.last_orders[service].removed_stages, ElementsAre(stage));
  h.check_idle();
}

TEST_F(takeover, the_service_is_told_when_a_stage_goes) {
  run_maps();
  const auto service = add_service();
  h.release(maps_on);
  take_all(service);
  const auto stage = h.stage_of(job, 0);
  h.cancel(job);
  EXPECT_THAT(h.last_orders[service].removed_stages, ElementsAre(stage));
}

TEST_F(takeover, an_output_that_was_made_again_meanwhile_stays_where_it_is) {
  run_maps();
  const auto service = add_service();
  h.release(maps_on);
  h.lose(maps_on); // killed, before the service had anything
  const auto again = h.add(executor_builder{}.cores(2));
  h.succeed_all(again);
  take_all(service); // of the first attempts
  EXPECT_THAT(sources(), ElementsAre(again));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
  h.check_idle();
}

TEST_F(takeover, only_a_service_can_take_anything_over) {
  run_maps();
  const auto other = h.add(executor_builder{}.cores(1));
  executor_report forged = h.executor(other).report({});
  forged.taken_over = {{{maps_on, h.executor(maps_on).info().epoch, "127.0.0.1", 1},
                        {{h.stage_of(job, 0), 0, 0, 0}, {h.stage_of(job, 0), 99, 0, 0}}}};
  h.deliver(forged);
  EXPECT_THAT(sources(), ElementsAre(maps_on));
}

TEST_F(takeover, no_task_runs_on_a_service) {
  const auto service = add_service();
  const auto work = h.submit(job_builder{}.stage("work", 1));
  EXPECT_THAT(h.attempts(service), IsEmpty());
  h.add(executor_builder{});
  h.drain();
  EXPECT_EQ(h.progress(work).state, job_state::succeeded);
}

} // namespace
} // namespace troupe::testing
