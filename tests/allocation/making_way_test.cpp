// Which idle executors go when there is no room for what waits.

#include "allocation_cluster.hpp"

namespace troupe::testing {
namespace {

TEST(allocation, idle_executors_of_another_shape_make_way_at_once) {
  cluster c;
  c.room = 2;
  c.waiting(plain, 2).load();
  c.waiting(plain, 0).admit_all(1s);
  c.report.idle[0].serving = true;
  c.load();
  c.waiting(gpu, 1, true).load();
  ASSERT_THAT(c.asked(), SizeIs(1)) << "no more than is missing";
  EXPECT_EQ(c.asked()[0], c.report.idle[1].executor) << "those without output first";
  c.policy.on_release_answer(c.asked()[0], true, false, c.out);
  c.admit_all(1s);
  c.report.idle[0].serving = true;
  c.load();
  EXPECT_EQ(c.count(gpu), 1u);
}

TEST(allocation, what_keeps_datasets_makes_way_after_others_that_do_not) {
  cluster c;
  c.room = 2;
  c.waiting(plain, 2).load();
  c.waiting(plain, 0).waiting(gpu, 1, true).admit_all(1s);
  c.report.idle[0].keeping = true;
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(c.report.idle[1].executor));
  c.waiting(gpu, 2, true).admit_all(1s);
  c.report.idle[0].keeping = true;
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(c.report.idle[0].executor)) << "rather than that nothing runs";
}

TEST(allocation, an_idle_executor_does_not_make_way_for_its_own_shape) {
  cluster c;
  c.room = 1;
  c.waiting(plain, 1).load();
  c.admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
}

TEST(allocation, as_many_make_way_as_are_missing) {
  cluster c;
  c.room = 4;
  c.waiting(plain, 4).load();
  c.waiting(plain, 0).waiting(gpu, 3, true).admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(3));
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty()) << "three are going already";
}

TEST(allocation, executor_that_only_serves_is_parked_and_takes_no_room) {
  cluster c;
  c.room = 1;
  c.waiting(plain, 1).load();
  c.waiting(plain, 0).waiting(gpu, 1, true).admit_all(1s, true);
  c.load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  c.policy.on_release_answer(c.asked()[0], true, true, c.out);
  ASSERT_THAT(c.wanted(), SizeIs(1));
  EXPECT_TRUE(c.wanted()[0].parked);
  c.report.idle[0].draining = true;
  c.load();
  EXPECT_EQ(c.count(gpu), 1u);
  EXPECT_EQ(c.count(plain), 1u) << "it still serves";
  c.report.idle[0].serving = false;
  c.load();
  EXPECT_EQ(c.count(plain), 0u) << "nobody needs its output any more";
}

TEST(allocation, idle_fixed_executor_makes_way_only_for_what_nothing_satisfies_and_comes_back) {
  allocation_policy::options fixed;
  fixed.fixed = {{plain, 1}};
  cluster c{fixed};
  c.room = 1;
  c.start();
  c.waiting(gpu, 1, false).admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.waiting(gpu, 1, true).load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  c.policy.on_release_answer(c.asked()[0], true, false, c.out);
  c.admit_all();
  c.load();
  EXPECT_EQ(c.count(gpu), 1u) << "what waits comes before what is fixed";
  c.waiting(gpu, 0).admit_all(60s);
  c.load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  c.policy.on_release_answer(c.asked()[0], true, false, c.out);
  c.admit_all();
  c.load();
  EXPECT_EQ(c.count(plain), 1u);
}

TEST(allocation, fixed_executor_does_not_take_back_what_it_left_for_a_larger_one) {
  allocation_policy::options fixed;
  fixed.fixed = {{plain, 1}};
  cluster c{fixed};
  c.hosts = hosts_of({2});
  c.start();
  c.waiting(wide, 1, true).admit_all();
  c.load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  // While its process ends it still holds its core, and the other one is too little for what waits.
  c.end_slowly = true;
  c.policy.on_release_answer(c.asked()[0], true, false, c.out);
  c.admit_all();
  for (int i = 0; i < 5; ++i) {
    c.load();
    EXPECT_THAT(c.wanted(), IsEmpty()) << "the free core is kept for the larger one";
  }
  c.end_slowly = false;
  c.load();
  EXPECT_EQ(c.count(wide), 1u);
  EXPECT_EQ(c.count(plain), 0u);
  // Served: the larger one goes when it has been idle for its time.
  c.waiting(wide, 0).admit_all(60s);
  c.load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  c.policy.on_release_answer(c.asked()[0], true, false, c.out);
  c.admit_all();
  c.load();
  EXPECT_EQ(c.count(plain), 1u) << "the fixed one comes back";
}

TEST(allocation, fixed_executor_comes_back_when_what_it_left_for_is_not_wanted_any_more) {
  allocation_policy::options fixed;
  fixed.fixed = {{plain, 2}};
  cluster c{fixed};
  c.hosts = hosts_of({2});
  c.start();
  c.waiting(wide, 1, true).admit_all();
  c.load();
  // One of them has got a task meanwhile, so that its core does not become free.
  c.answer(c.asked().at(0), true);
  c.answer(executor_id{102}, false);
  c.admit_all();
  c.report.idle.clear();
  c.load();
  EXPECT_EQ(c.count(plain), 1u);
  c.waiting(wide, 0).load();
  EXPECT_EQ(c.count(plain), 2u);
}

/// Four hosts of two cores with eight idle executors of one: 101 and 102 on the first, and so on.
struct eight_on_four_hosts : cluster {
  eight_on_four_hosts() {
    hosts = hosts_of({2, 2, 2, 2});
    waiting(plain, 8).load();
    waiting(plain, 0).admit_all(1s);
  }
  /// What the dag scheduler reports when that one has ended.
  void gone(executor_id executor) {
    std::erase_if(report.present, [&](request_id id) { return id.value + 100 == executor.value; });
    std::erase_if(report.idle, [&](const idle_executor& idle) { return idle.executor == executor; });
  }
  void idle_for(std::uint64_t executor, duration time) {
    report.idle.at(executor - 101).idle_nanoseconds = static_cast<std::uint64_t>(time.count());
  }
};

TEST(allocation, no_more_make_way_than_one_host_needs) {
  eight_on_four_hosts c;
  c.waiting(wide, 1, true).load();
  const auto asked = c.asked();
  ASSERT_THAT(asked, ElementsAre(executor_id{101}, executor_id{102}));
  // They are granted one after the other, and their processes take their time to end.
  c.end_slowly = true;
  for (const auto executor : asked) {
    c.answer(executor, true);
    c.gone(executor);
    c.load();
    EXPECT_THAT(c.asked(), IsEmpty()) << "after executor " << executor.value;
  }
  EXPECT_EQ(c.count(plain), 6u);
  c.snapshot({{request_id{1}, plain.shape, launch_state::running, {}},
              {request_id{2}, plain.shape, launch_state::running, {}},
              {request_id{3}, plain.shape, launch_state::running, {}}});
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty()) << "they are still on their way";
  c.end_slowly = false;
  c.load();
  EXPECT_EQ(c.count(wide), 1u);
  EXPECT_EQ(c.count(plain), 6u);
}

TEST(allocation, those_that_have_been_idle_longest_make_way_among_equal_hosts) {
  eight_on_four_hosts c;
  // One that has been idle for long has a neighbour that was busy a moment ago.
  c.idle_for(107, 50s);
  c.idle_for(103, 20s);
  c.idle_for(104, 10s);
  c.waiting(wide, 1, true).load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{103}, executor_id{104}));
}

TEST(allocation, fewer_make_way_where_a_part_is_free) {
  cluster c;
  c.hosts = hosts_of({2, 2});
  c.waiting(plain, 3).load();
  c.waiting(plain, 0).waiting(wide, 1, true).admit_all(10s);
  c.report.idle.at(2).idle_nanoseconds = 1;
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{103})) << "though the others have been idle for longer";
}

TEST(allocation, nobody_makes_way_for_what_would_find_no_room_even_then) {
  eight_on_four_hosts c;
  for (const std::uint64_t busy : {101, 104, 106, 107}) c.gone(executor_id{busy});
  for (std::uint64_t request = 1; request <= 8; ++request) c.report.present.push_back({request});
  c.waiting(wide, 1, true).load();
  EXPECT_THAT(c.asked(), IsEmpty()) << "on every host one is busy";
  c.report.idle.push_back({executor_id{107}, request_id{7}, 1, false, false});
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{108}, executor_id{107}));
}

TEST(allocation, one_that_does_not_go_is_made_up_for_where_the_fewest_have_to) {
  eight_on_four_hosts c;
  c.waiting(wide, 1, true).load();
  c.answer(executor_id{101}, true);
  c.answer(executor_id{102}, false); // it got a task just before
  c.gone(executor_id{101});
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{102})) << "and is idle again";
  c.answer(executor_id{102}, false);
  std::erase_if(c.report.idle, [](const idle_executor& idle) { return idle.executor.value == 102; });
  c.load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{103}, executor_id{104})) << "it works now";
}

TEST(allocation, way_is_made_for_each_that_is_missing) {
  eight_on_four_hosts c;
  c.waiting(wide, 3, true).load();
  EXPECT_THAT(c.asked(), SizeIs(6));
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.waiting(wide, 4, true).load();
  EXPECT_THAT(c.asked(), SizeIs(2));
}

TEST(allocation, way_is_made_for_so_many_at_a_time) {
  cluster c;
  c.hosts = hosts_of(std::vector<std::int64_t>(100, 2));
  c.waiting(plain, 200).load();
  c.waiting(plain, 0).waiting(wide, 100, true).admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(2 * 64));
  for (const auto executor : c.asked()) c.answer(executor, true);
  c.admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(2 * 36)) << "the next report goes on";
}

/// A host of four cores: a fixed executor of two, two others of one.
struct one_fixed_and_two_others : cluster {
  static allocation_policy::options fixed() {
    allocation_policy::options opts;
    opts.fixed = {{wide, 1}};
    return opts;
  }
  one_fixed_and_two_others() : cluster(fixed()) {
    hosts = hosts_of({4});
    start();
    waiting(plain, 2).load();
    waiting(plain, 0).admit_all(1s);
  }
};

TEST(allocation, a_fixed_executor_stays_where_others_are_enough) {
  const executor_shape heavy{{6}, make_profile({{"cores", 2}, {"memory", std::int64_t{8} << 30}}, {{"cpus", "1"}})};
  one_fixed_and_two_others c;
  c.waiting(heavy, 1, true).load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{102}, executor_id{103})) << "though the fixed one alone would do";
}

TEST(allocation, a_fixed_executor_goes_for_what_is_still_missing) {
  const executor_shape heavy{{6}, make_profile({{"cores", 3}, {"memory", std::int64_t{8} << 30}}, {{"cpus", "1"}})};
  one_fixed_and_two_others c;
  c.waiting(heavy, 1, true).load();
  EXPECT_THAT(c.asked(), ElementsAre(executor_id{102}, executor_id{101}));
}

TEST(allocation, nobody_goes_because_of_the_limit_for_what_finds_no_room) {
  allocation_policy::options few;
  few.max_executors = 4;
  cluster c{few};
  c.hosts = hosts_of({2, 2});
  c.waiting(plain, 4).load();
  c.waiting(plain, 0).waiting(wide, 1, true).admit_all(1s);
  std::erase_if(c.report.idle, [](const idle_executor& idle) { return idle.request.value % 2 == 0; }); // busy
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
}

TEST(allocation, as_many_make_way_as_the_limit_demands_where_there_is_room) {
  allocation_policy::options few;
  few.max_executors = 3;
  cluster c{few};
  c.hosts = hosts_of({8});
  c.waiting(plain, 3).load();
  c.waiting(plain, 0).waiting(wide, 2, true).admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(2));
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
}

TEST(allocation, one_of_two_fixed_executors_makes_way_where_either_is_enough) {
  const executor_shape three{{4}, make_profile({{"cores", 3}}, {{"cpus", "1"}})};
  const executor_shape four{{5}, make_profile({{"cores", 4}}, {{"cpus", "1"}})};
  allocation_policy::options fixed;
  fixed.fixed = {{three, 2}};
  cluster c{fixed};
  c.hosts = hosts_of({4, 4});
  c.start();
  c.waiting(four, 1, true).admit_all(1s);
  c.report.idle.at(1).idle_nanoseconds *= 2;
  c.load();
  ASSERT_THAT(c.asked(), ElementsAre(executor_id{102}));
  c.end_slowly = true;
  c.answer(executor_id{102}, true);
  c.admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.end_slowly = false;
  c.load();
  EXPECT_EQ(c.count(four), 1u);
  EXPECT_EQ(c.count(three), 1u);
}

TEST(allocation, what_leaves_counts_where_the_backend_knows_no_hosts) {
  cluster c;
  c.room = 4;
  c.waiting(plain, 4).load();
  c.waiting(plain, 0).waiting(gpu, 1, true).admit_all(1s);
  c.load();
  ASSERT_THAT(c.asked(), SizeIs(1));
  c.answer(c.asked()[0], true);
  c.room = 3; // its process has not ended
  c.admit_all(1s);
  c.load();
  EXPECT_THAT(c.asked(), IsEmpty());
  c.snapshot({});
  c.load();
  EXPECT_THAT(c.asked(), SizeIs(1)) << "it has ended, and there is still no room";
}

} // namespace
} // namespace troupe::testing
