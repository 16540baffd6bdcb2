// Outputs that outlive their executors, since a shuffle service keeps them.

#include <gmock/gmock-more-matchers.h>
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
  /// The service says that it has what it was asked for last.
  void take_blocks(executor_id service) {
    auto report = h.executor(service).report({});
    report.taken_over = {h.executor(service).takeovers().back()};
    h.deliver(report);
  }
  /// The same for the sockets, which come last.
  void take_all(executor_id service) {
    take_blocks(service);
    if (h.executor(service).takeovers().back().sockets) take_blocks(service);
  }
  /// It was asked for something and has got nothing.
  void take_nothing(executor_id service) {
    auto report = h.executor(service).report({});
    report.taken_over = {{h.executor(service).takeovers().back().from, {}}};
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
  take_blocks(service);
  EXPECT_TRUE(is_serving(maps_on)) << "until the service has its sockets, too";
  ASSERT_THAT(h.executor(service).takeovers(), SizeIs(2));
  EXPECT_TRUE(h.executor(service).takeovers()[1].sockets);
  EXPECT_THAT(h.executor(service).takeovers()[1].blocks, IsEmpty());
  take_blocks(service);
  EXPECT_THAT(h.executor(service).takeovers(), SizeIs(2));
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

TEST_F(takeover, what_could_not_be_taken_is_asked_for_again_but_not_for_ever) {
  run_maps();
  const auto service = add_service();
  h.release(maps_on);
  take_nothing(service);
  ASSERT_THAT(h.executor(service).takeovers(), SizeIs(2));
  EXPECT_THAT(h.executor(service).takeovers()[1].blocks, SizeIs(2));
  auto half = h.executor(service).report({});
  half.taken_over = {h.executor(service).takeovers().back()};
  half.taken_over[0].blocks.pop_back();
  h.deliver(half);
  ASSERT_THAT(h.executor(service).takeovers(), SizeIs(3));
  EXPECT_THAT(h.executor(service).takeovers()[2].blocks, SizeIs(1));
  for (int i = 0; i < 5; ++i) take_nothing(service); // some of them unasked
  EXPECT_THAT(h.executor(service).takeovers(), SizeIs(5)) << "three times in vain";
  EXPECT_TRUE(is_serving(maps_on)) << "it stays with what it has";
  h.add(executor_builder{}.cores(4));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST_F(takeover, what_is_not_wanted_any_more_is_dropped_by_the_service) {
  h.add(executor_builder{}.cores(1).gpus(1));
  maps_on = h.add(executor_builder{}.cores(2));
  const auto service = add_service();
  job_builder pipe;
  pipe.profile(make_profile({{"gpu", 1}}, {{"gpu", "1"}}));
  pipe.stage("make", 2).buckets(1).stage("use", 2).with(1).after(0, dependency_kind::one_to_one);
  job = h.submit(pipe);
  h.succeed_all(maps_on);
  h.release(maps_on);
  ASSERT_THAT(h.executor(service).takeovers(), SizeIs(1));
  ASSERT_THAT(h.executor(service).takeovers()[0].blocks, SizeIs(2));
  const auto reader = h.attempts_of(job, 1).at(0);
  h.succeed(reader);
  take_blocks(service);
  EXPECT_THAT(h.last_orders.at(service).consumed, ElementsAre(held_block{h.stage_of(job, 0), reader.partition, 0, 0}));
  h.drain();
  EXPECT_EQ(h.progress(job).state, job_state::succeeded);
}

TEST_F(takeover, results_of_ended_jobs_stay_with_their_executor_until_they_are_released) {
  const auto e = h.add(executor_builder{});
  const auto service = add_service();
  const auto done = h.submit(job_builder{}.stage("result", 1));
  h.deliver(h.executor(e).report({stored(h.attempts(e)[0], 5'000'000)}));
  ASSERT_NE(h.end_of(done), nullptr);
  EXPECT_TRUE(h.release(e).serving);
  EXPECT_THAT(h.executor(service).takeovers(), IsEmpty()) << "whoever fetches them comes to the executor";
  EXPECT_TRUE(is_serving(e));
  h.release_results(done);
  EXPECT_FALSE(is_serving(e));
  EXPECT_THAT(h.executor(service).takeovers(), IsEmpty()) << "nothing was taken, so nobody need answer there";
}

TEST_F(takeover, results_that_moved_are_named_at_their_new_place) {
  const auto first = h.add(executor_builder{});
  const auto second = h.add(executor_builder{});
  const auto service = add_service();
  const auto results = h.submit(job_builder{}.stage("result", 2));
  h.deliver(h.executor(first).report({stored(h.attempts(first)[0], 5'000'000)}));
  h.release(first);
  take_all(service);
  EXPECT_FALSE(is_serving(first));
  h.lose(first, "it was asked to end", false);
  h.drain();
  ASSERT_NE(h.end_of(results), nullptr);
  ASSERT_TRUE(h.end_of(results)->results);
  ASSERT_THAT(h.end_of(results)->results->elsewhere, SizeIs(1));
  EXPECT_EQ(h.end_of(results)->results->elsewhere[0].endpoint.executor, service);
  h.release_results(results);
  EXPECT_THAT(h.last_orders[service].removed_stages, SizeIs(1));
  h.lose(second);
  h.check_idle();
}

TEST_F(takeover, a_job_that_ends_meanwhile_leaves_its_results_where_they_were) {
  const auto e = h.add(executor_builder{});
  const auto service = add_service();
  const auto results = h.submit(job_builder{}.stage("result", 1));
  h.deliver(h.executor(e).report({stored(h.attempts(e)[0], 5'000'000)}));
  ASSERT_NE(h.end_of(results), nullptr);
  EXPECT_TRUE(h.release(e).serving);
  auto late = h.executor(service).report({});
  late.taken_over = {{{e, h.executor(e).info().epoch, "127.0.0.1", 1}, {{h.stage_of(results, 0), 0, 0, 0}}}};
  h.deliver(late);
  EXPECT_THAT(h.last_orders[service].removed_stages, SizeIs(1)) << "its copy is not wanted";
  EXPECT_TRUE(is_serving(e));
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
