// How many executors of each shape there should be, decided from load reports and snapshots.

#include "allocation_cluster.hpp"

namespace troupe::testing {
namespace {

TEST(allocation, executors_are_started_for_tasks_that_wait) {
  cluster c;
  c.waiting(plain, 3).load();
  EXPECT_EQ(c.count(plain), 3u);
  EXPECT_THAT(c.effects_of<effects::announce_request>(), SizeIs(3));
  ASSERT_THAT(c.effects_of<effects::converge>(), SizeIs(1));
  EXPECT_THAT(c.effects_of<effects::converge>()[0].wanted, SizeIs(3));
  c.load();
  EXPECT_EQ(c.count(plain), 3u) << "those that start count";
  c.waiting(plain, 5).load();
  EXPECT_EQ(c.count(plain), 5u);
}

TEST(allocation, room_and_the_limit_bound_what_is_started) {
  cluster c;
  c.room = 2;
  c.waiting(plain, 5).load();
  EXPECT_EQ(c.count(plain), 2u);
  allocation_policy::options few;
  few.max_executors = 3;
  cluster limited{few};
  limited.waiting(plain, 5).waiting(gpu, 5).load();
  EXPECT_THAT(limited.wanted(), SizeIs(3));
}

TEST(allocation, no_more_can_be_had_than_the_limit_allows) {
  allocation_policy::options few;
  few.max_executors = 3;
  const allocation_policy limited{few};
  EXPECT_EQ(limited.check(plain, [] { return feasibility{true, true, {}, 8}; }).most, 3u);
  EXPECT_EQ(limited.check(plain, [] { return feasibility{true, true, {}, 2}; }).most, 2u);
}

TEST(allocation, says_what_has_become_of_a_demand_when_that_changes) {
  cluster c;
  c.room = 2;
  const auto told = [](cluster& of) {
    std::vector<shape_status> last;
    for (const auto& report : of.effects_of<effects::report_shapes>()) last = report.shapes;
    return last;
  };
  c.waiting(plain, 5).load();
  EXPECT_THAT(told(c), ElementsAre(shape_status{plain.shape, 2, 3, allocation_obstacle::room}));
  c.load();
  EXPECT_THAT(told(c), IsEmpty()) << "as before";
  c.waiting(plain, 0).load();
  EXPECT_THAT(c.effects_of<effects::report_shapes>(), SizeIs(1)) << "nothing waits any more";
  allocation_policy::options few;
  few.max_executors = 3;
  cluster limited{few};
  limited.waiting(plain, 5).load();
  EXPECT_THAT(told(limited), ElementsAre(shape_status{plain.shape, 3, 2, allocation_obstacle::limit}));
  allocation_policy::options rigid;
  rigid.only_fixed = true;
  cluster fixed{rigid};
  fixed.waiting(plain, 1).load();
  EXPECT_THAT(told(fixed), ElementsAre(shape_status{plain.shape, 0, 1, allocation_obstacle::only_fixed}));
}

TEST(allocation, idle_executor_is_stopped_with_consent_after_its_time) {
  cluster c;
  c.waiting(plain, 1).load();
  c.waiting(plain, 0).admit_all(59s);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.admit_all(60s);
  c.load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  const auto e = c.asked()[0];
  EXPECT_EQ(c.count(plain), 1u) << "not without consent";
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty()) << "asked once";
  c.policy.on_release_answer(e, false, false, c.out);
  EXPECT_EQ(c.count(plain), 1u);
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(e)) << "and again after a refusal";
  c.out.clear();
  c.policy.on_release_answer(e, true, false, c.out);
  EXPECT_EQ(c.count(plain), 0u);
  EXPECT_THAT(c.effects_of<effects::converge>(), SizeIs(1));
}

TEST(allocation, release_without_an_answer_is_asked_for_again) {
  cluster c;
  c.waiting(plain, 1).load();
  c.waiting(plain, 0).admit_all(60s);
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(1));
  c.load(9s);
  EXPECT_THAT(c.asked(), IsEmpty());
  c.load(2s);
  EXPECT_THAT(c.asked(), SizeIs(1));
}

TEST(allocation, consent_whose_answer_was_lost_is_learned_from_the_report) {
  cluster c;
  c.waiting(plain, 2).load();
  c.waiting(plain, 0).admit_all(60s);
  c.load();
  c.report.idle[0].draining = true;
  c.report.idle[1].draining = true;
  c.report.idle[1].serving = true;
  c.load();
  ASSERT_THAT(c.wanted(), SizeIs(1));
  EXPECT_TRUE(c.wanted()[0].parked);
  EXPECT_THAT(c.effects_of<effects::converge>(), SizeIs(1));
}

TEST(allocation, two_executors_of_one_request_do_no_harm) {
  cluster c;
  c.waiting(plain, 1).load();
  c.waiting(plain, 0).admit_all(1s);
  auto second = c.report.idle[0];
  second.executor.value += 100;
  second.draining = true;
  c.report.idle.push_back(second);
  c.load();
  EXPECT_THAT(c.wanted(), IsEmpty());
}

TEST(allocation, two_executors_of_one_request_do_no_harm_beside_others) {
  cluster c;
  c.waiting(plain, 3).load();
  c.waiting(plain, 0).admit_all(1s);
  ASSERT_GE(c.report.idle.size(), 2u);
  auto second = c.report.idle[0];
  second.executor.value += 100;
  second.draining = true;
  const auto first = c.report.idle[0];
  // What the second one says, after the first one was found idle, ends the request of both.
  c.report.idle.push_back(second);
  c.waiting(wide, 1);
  c.load();
  EXPECT_THAT(c.wanted(), ::testing::Each(::testing::Field(&executor_order::request, ::testing::Ne(first.request))));
}

TEST(allocation, serving_executor_may_go_for_idleness_where_its_output_outlives_it) {
  for (const bool outlives : {false, true}) {
    allocation_policy::options options;
    options.outputs_outlive = outlives;
    cluster c{options};
    c.waiting(plain, 1).load();
    c.waiting(plain, 0).admit_all(1h, true);
    c.load();
    EXPECT_EQ(c.asked().size(), outlives ? 1u : 0u);
  }
}

TEST(allocation, serving_executor_is_not_stopped_for_idleness) {
  cluster c;
  c.waiting(plain, 1).load();
  c.waiting(plain, 0).admit_all(1h, true);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
}

TEST(allocation, executors_that_are_gone_are_forgotten_and_waiting_tasks_get_others) {
  cluster c;
  c.waiting(plain, 1).load();
  c.admit_all();
  c.load();
  const auto first = c.wanted()[0].request;
  c.report.present.clear();
  c.report.idle.clear();
  c.load();
  ASSERT_THAT(c.wanted(), SizeIs(1));
  EXPECT_NE(c.wanted()[0].request, first);
}

TEST(allocation, fixed_executors_are_started_kept_and_replaced) {
  allocation_policy::options fixed;
  fixed.dynamic = false;
  fixed.fixed = {{plain, 2}};
  cluster c{fixed};
  c.start();
  EXPECT_EQ(c.count(plain), 2u);
  c.admit_all(10h);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.report.present.pop_back();
  c.report.idle.pop_back();
  c.load();
  EXPECT_EQ(c.count(plain), 2u);
  EXPECT_EQ(c.wanted()[1].request, request_id{3}) << "under a number of its own";
}

TEST(allocation, fixed_executors_without_room_at_the_start_come_later) {
  allocation_policy::options fixed;
  fixed.fixed = {{plain, 2}};
  cluster c{fixed};
  c.room = 1;
  c.start();
  EXPECT_EQ(c.count(plain), 1u);
  c.room = 2;
  c.load();
  EXPECT_EQ(c.count(plain), 2u);
}

TEST(allocation, without_dynamic_allocation_only_what_nothing_satisfies_is_started) {
  allocation_policy::options still;
  still.dynamic = false;
  cluster c{still};
  c.waiting(plain, 3, false).load();
  EXPECT_EQ(c.count(plain), 0u);
  c.waiting(gpu, 1, true).load();
  EXPECT_EQ(c.count(gpu), 1u);
  c.waiting(gpu, 0).admit_all(10h);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty()) << "and nothing is stopped for idleness";
}

TEST(allocation, only_fixed_executors_are_started_where_there_are_to_be_no_others) {
  allocation_policy::options alone;
  alone.only_fixed = true;
  alone.fixed = {{plain, 1}};
  cluster c{alone};
  c.start();
  c.waiting(plain, 3).waiting(gpu, 1, true).admit_all(10h);
  c.load();
  EXPECT_EQ(c.count(plain), 1u);
  EXPECT_EQ(c.count(gpu), 0u);
  EXPECT_THAT(c.asked(), IsEmpty()) << "it makes way for nothing";
  c.report.present.clear();
  c.report.idle.clear();
  c.load();
  ASSERT_THAT(c.wanted(), SizeIs(1)) << "one that is gone is replaced";
  EXPECT_EQ(c.wanted()[0].request, request_id{2});
}

TEST(allocation, what_the_only_executors_do_not_satisfy_is_infeasible) {
  const auto of_backend = [] { return feasibility{true, true, "as the backend says", 4}; };
  allocation_policy::options options;
  options.fixed = {{wide, 1}};
  EXPECT_EQ(allocation_policy{options}.check(gpu, of_backend), of_backend());
  options.only_fixed = true;
  const allocation_policy alone{options};
  EXPECT_TRUE(alone.check(wide, of_backend).feasible);
  EXPECT_TRUE(alone.check(plain, of_backend).feasible) << "a larger one satisfies it";
  const auto refused = alone.check(gpu, of_backend);
  EXPECT_FALSE(refused.feasible);
  EXPECT_TRUE(refused.fixed) << "at once, not after the time-out";
  EXPECT_THAT(refused.sentence, HasSubstr("elastic: false"));
  options.exact_matching = true;
  const allocation_policy exact{options};
  EXPECT_TRUE(exact.check(wide, of_backend).feasible);
  EXPECT_TRUE(exact.check({{77}, wide.profile}, of_backend).feasible) << "of another build, with the same content";
  EXPECT_FALSE(exact.check(plain, of_backend).feasible);
}

TEST(allocation, executors_register_as_the_shape_that_was_wanted_and_fixed_ones_as_none) {
  allocation_policy::options options;
  options.fixed = {{wide, 1}};
  cluster c{options};
  c.policy.on_start(c.now, c.room_function(), c.out);
  c.waiting(gpu, 1).load();
  const auto orders = c.wanted();
  ASSERT_THAT(orders, SizeIs(2));
  EXPECT_EQ(orders[0].shape, wide);
  EXPECT_EQ(orders[0].identity(), shape_id{}) << "the file names a content and no profile";
  EXPECT_EQ(orders[1].identity(), gpu.shape);
}

TEST(allocation, failed_launches_are_reported_and_tried_again_more_and_more_slowly) {
  cluster c;
  c.waiting(plain, 1).load();
  duration pause = 1s;
  for (int i = 0; i < 8; ++i) {
    ASSERT_THAT(c.wanted(), SizeIs(1)) << i;
    const auto request = c.wanted()[0].request;
    c.snapshot({{request, {}, launch_state::gone, "exit code 127"}});
    const auto reported = c.effects_of<effects::report_launch_failure>();
    ASSERT_THAT(reported, SizeIs(1));
    EXPECT_EQ(reported[0].status.shape, plain.shape);
    EXPECT_EQ(reported[0].status.detail, "exit code 127");
    EXPECT_THAT(c.effects_of<effects::converge>(), SizeIs(1));
    c.load(pause - 1ms);
    EXPECT_THAT(c.wanted(), IsEmpty()) << i;
    c.load(1ms);
    pause = std::min<duration>(2 * pause, 32s);
  }
}

TEST(allocation, a_launch_that_succeeds_ends_the_pauses) {
  cluster c;
  c.waiting(plain, 1).load();
  for (int i = 0; i < 3; ++i) {
    c.snapshot({{c.wanted().at(0).request, {}, launch_state::refused, "no room"}});
    c.load(10s);
  }
  c.admit_all();
  c.load();
  c.report.present.clear();
  c.report.idle.clear();
  c.load();
  c.snapshot({{c.wanted().at(0).request, {}, launch_state::gone, "exit code 1"}});
  c.load(1s);
  EXPECT_THAT(c.wanted(), SizeIs(1)) << "the first pause again";
}

TEST(allocation, one_that_never_says_hello_counts_as_failed) {
  cluster c;
  c.waiting(plain, 1).load();
  const auto request = c.wanted()[0].request;
  c.snapshot({{request, {}, launch_state::running, ""}}, 29s);
  EXPECT_THAT(c.wanted(), SizeIs(1));
  c.snapshot({{request, {}, launch_state::running, ""}}, 2s);
  EXPECT_THAT(c.wanted(), IsEmpty());
  EXPECT_THAT(c.effects_of<effects::report_launch_failure>().at(0).status.detail,
              AllOf(HasSubstr("launch-timeout"), HasSubstr("troupe::run")));
}

TEST(allocation, executors_that_keep_datasets_stay_longer) {
  allocation_policy::options options;
  options.idle_timeout = 5s;
  options.keeping_idle_timeout = 20s;
  cluster c{options};
  c.waiting(plain, 2).load();
  c.waiting(plain, 0).admit_all(6s);
  ASSERT_THAT(c.report.idle, SizeIs(2));
  c.report.idle[0].keeping = true;
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(c.report.idle[1].executor));
  c.admit_all(20s);
  c.report.idle[0].keeping = true;
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(c.report.idle[0].executor)) << "this one, too, in the end";
}

TEST(allocation, the_options_say_how_long_each_wait_is) {
  allocation_policy::options options;
  options.idle_timeout = 5s;
  options.launch_timeout = 3s;
  options.retry_pause = 7s;
  cluster c{options};
  c.waiting(plain, 1).load();
  const auto request = c.wanted().at(0).request;
  c.snapshot({{request, {}, launch_state::starting, ""}}, 2s);
  EXPECT_THAT(c.wanted(), SizeIs(1));
  c.snapshot({{request, {}, launch_state::starting, ""}}, 2s);
  EXPECT_THAT(c.wanted(), IsEmpty()) << "the launch took too long";
  c.load(6s);
  EXPECT_THAT(c.wanted(), IsEmpty()) << "the pause after a failure";
  c.load(1s);
  ASSERT_THAT(c.wanted(), SizeIs(1));
  c.waiting(plain, 0).admit_all(4s);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.admit_all(5s);
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(1)) << "idle for long enough";
}

TEST(allocation, end_of_an_executor_that_was_admitted_is_no_failed_launch) {
  cluster c;
  c.waiting(plain, 1).load();
  c.waiting(plain, 0).admit_all();
  c.load();
  c.snapshot({{c.wanted()[0].request, {}, launch_state::gone, "signal 9"}}, 1h);
  EXPECT_THAT(c.effects_of<effects::report_launch_failure>(), IsEmpty());
  EXPECT_THAT(c.wanted(), SizeIs(1)) << "the driver decides when it is gone";
}

TEST(allocation, reports_that_are_not_newer_are_ignored) {
  cluster c;
  c.waiting(plain, 2).load();
  auto old = c.report;
  old.number = 1;
  old.loads[0].executors_wanted = 50;
  c.out.clear();
  c.policy.on_load(old, c.now, c.room_function(), c.way_function(), c.out);
  EXPECT_THAT(c.out, IsEmpty());
  EXPECT_EQ(c.count(plain), 2u);
}

TEST(allocation, shapes_that_were_never_announced_and_strangers_are_left_alone) {
  cluster c;
  c.report.loads.push_back({{99}, 5, 5, true});
  c.report.idle.push_back({{1}, {}, 1'000'000'000'000, false, false});
  c.report.present.push_back({42});
  c.load();
  EXPECT_THAT(c.out, IsEmpty());
  c.policy.on_release_answer({7}, true, false, c.out);
  EXPECT_THAT(c.out, IsEmpty());
}

} // namespace
} // namespace troupe::testing
