#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/executor_pool.hpp>
#include <troupe/tests/support/builders.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;

task_batch range(partition_index first, std::uint32_t count) {
  task_batch b;
  b.stage = {1};
  b.first = first;
  b.count = count;
  return b;
}

std::vector<std::pair<partition_index, std::uint32_t>> runs(const lease_record& lease) {
  std::vector<std::pair<partition_index, std::uint32_t>> all;
  for (const auto& r : lease.runs) all.emplace_back(r.first, r.count);
  return all;
}

TEST(lease_record, neighbours_are_one_run) {
  lease_record lease;
  lease.add(range(0, 4));
  lease.add(range(4, 4));
  EXPECT_THAT(runs(lease), ElementsAre(std::pair{0u, 8u}));
  lease.add(range(20, 1));
  EXPECT_THAT(runs(lease), SizeIs(2));
  EXPECT_EQ(lease.in_flight, 9u);
}

TEST(lease_record, attempts_are_told_apart) {
  lease_record lease;
  auto batch = range(0, 3);
  batch.partitions = {0, 1, 2};
  batch.attempts = {0, 2, 2};
  lease.add(batch);
  EXPECT_FALSE(lease.remove({1}, 1, 0));
  EXPECT_FALSE(lease.remove({2}, 1, 2));
  EXPECT_TRUE(lease.remove({1}, 1, 2));
  EXPECT_FALSE(lease.remove({1}, 1, 2)) << "once";
  EXPECT_EQ(lease.in_flight, 2u);
}

TEST(lease_record, tasks_leave_at_either_end_and_in_the_middle) {
  lease_record lease;
  lease.add(range(0, 10));
  EXPECT_TRUE(lease.remove({1}, 0, 0));
  EXPECT_TRUE(lease.remove({1}, 9, 0));
  EXPECT_TRUE(lease.remove({1}, 4, 0));
  EXPECT_THAT(runs(lease), ElementsAre(std::pair{1u, 3u}, std::pair{5u, 4u}));
  EXPECT_FALSE(lease.remove({1}, 4, 0));
  for (const partition_index p : {1u, 2u, 3u, 5u, 6u, 7u, 8u}) EXPECT_TRUE(lease.remove({1}, p, 0));
  EXPECT_THAT(lease.runs, SizeIs(0));
  EXPECT_EQ(lease.in_flight, 0u);
}

struct executor_pool_test : ::testing::Test {
  executor_pool pool{profile_matching::compatible};
  std::uint64_t next = 1;

  executor_index add(const executor_builder& what) { return pool.add(what.make({next++}, 1), {}); }
  demand_index want(const resource_profile& p, std::string build = "build") {
    return pool.intern({{next++}, {1}, std::make_shared<const resource_profile>(p), std::move(build)});
  }
};

TEST_F(executor_pool_test, equal_demands_are_one) {
  const demand d{{4}, {1}, std::make_shared<const resource_profile>(default_test_profile()), "x"};
  EXPECT_EQ(pool.intern(d), pool.intern(d));
  auto other = d;
  other.build_id = "y";
  EXPECT_NE(pool.intern(d), pool.intern(other));
}

TEST_F(executor_pool_test, grants_take_what_releases_give_back) {
  add(executor_builder{}.cores(2));
  const auto d = want(default_test_profile());
  auto* first = pool.grant(d);
  auto* second = pool.grant(d);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(pool.grant(d), nullptr);
  EXPECT_FALSE(pool.has_room(d));
  EXPECT_EQ(pool.leases_of(d), 2u);
  EXPECT_EQ(pool.fault(), std::nullopt);
  pool.release(first->id);
  EXPECT_TRUE(pool.has_room(d));
  pool.settle();
  EXPECT_TRUE(pool.has_room(d));
  EXPECT_EQ(pool.free_slots(d), 1);
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, a_slot_that_came_back_is_passed_on_whole_or_in_parts) {
  const auto full = add(executor_builder{}.cores(2));
  const auto d = want(default_test_profile());
  const auto half = want(make_profile({}, {{"cpus", "0.5"}}));
  const auto first = pool.grant(d)->id;
  const auto second = pool.grant(d)->id;
  const auto slots = [&] { return std::pair{pool.free_slots(d), pool.free_slots(half)}; };

  pool.release(first);
  EXPECT_TRUE(pool.has_room_on(full, half));
  EXPECT_THROW(static_cast<void>(pool.free_slots(d)), std::logic_error) << "nobody has listed them";
  const auto whole = pool.grant(d);
  ASSERT_TRUE(whole);
  EXPECT_EQ(slots(), std::pair(0L, 0L)) << "as it was";
  EXPECT_EQ(pool.fault(), std::nullopt);

  pool.release(whole->id);
  ASSERT_TRUE(pool.grant(half));
  pool.settle();
  EXPECT_EQ(slots(), std::pair(0L, 1L));
  EXPECT_EQ(pool.fault(), std::nullopt);

  pool.release(second);
  ASSERT_TRUE(pool.grant(half));
  EXPECT_EQ(slots(), std::pair(1L, 2L));
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, slots_that_came_back_on_two_executors_are_taken_in_order) {
  const auto rich = add(executor_builder{}.cores(1).gpus(1));
  const auto plain = add(executor_builder{}.cores(1));
  const auto d = want(default_test_profile());
  const auto on_plain = pool.grant(d)->id;
  const auto on_rich = pool.grant(d)->id;
  pool.release(on_plain);
  pool.release(on_rich);
  auto* lease = pool.grant(d);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->executor, plain) << "the one without what it does not need, whichever came back last";
  lease = pool.grant(d);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->executor, rich);
  pool.settle();
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, an_executor_may_go_with_a_slot_that_just_came_back) {
  const auto e = add(executor_builder{}.cores(1));
  const auto d = want(default_test_profile());
  pool.release(pool.grant(d)->id);
  pool.remove(e);
  EXPECT_FALSE(pool.has_room(d));
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, a_refused_demand_is_tried_again_when_its_time_is_over) {
  const auto e = add(executor_builder{}.cores(2));
  const auto d = want(default_test_profile());
  const auto other = want(make_profile({}, {{"cpus", "0.5"}}));
  pool.mark_refused(e, d, time_point{1s}, "no");
  EXPECT_FALSE(pool.has_room(d));
  EXPECT_TRUE(pool.has_room(other));
  EXPECT_EQ(pool.refusal_of(d), "no");
  EXPECT_EQ(pool.satisfying(d), 1u) << "it still fits";
  EXPECT_FALSE(pool.forgive(time_point{999ms}));
  EXPECT_TRUE(pool.forgive(time_point{1s}));
  EXPECT_TRUE(pool.has_room(d));
  EXPECT_EQ(pool.refusal_of(d), std::nullopt);
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, a_barred_demand_never_is) {
  const auto e = add(executor_builder{});
  const auto d = want(default_test_profile());
  pool.bar(e, d);
  EXPECT_EQ(pool.satisfying(d), 0u);
  pool.forgive(time_point{1h});
  EXPECT_FALSE(pool.has_room(d));
  EXPECT_EQ(pool.nearest(d)->other, "refused it as a program of another build");
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, reserved_slots_are_for_one_demand) {
  const auto e = add(executor_builder{}.cores(2));
  const auto d = want(default_test_profile());
  const auto other = want(make_profile({}, {{"cpus", "0.5"}}));
  pool.reserve(e, d);
  EXPECT_TRUE(pool.has_room(d));
  EXPECT_FALSE(pool.has_room(other));
  EXPECT_EQ(pool.fault(), std::nullopt);
  pool.unreserve(e);
  EXPECT_TRUE(pool.has_room(other));
}

TEST_F(executor_pool_test, executors_that_go_take_their_leases_along) {
  const auto e = add(executor_builder{}.cores(2));
  const auto d = want(default_test_profile());
  const auto id = pool.grant(d)->id;
  pool.remove(e);
  EXPECT_EQ(pool.find_lease(id), nullptr);
  EXPECT_EQ(pool.satisfying(d), 0u);
  EXPECT_EQ(pool.lease_count(), 0u);
  EXPECT_EQ(add(executor_builder{}), e) << "the place is used again";
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(executor_pool_test, nearest_executor_is_the_one_that_lacks_least) {
  add(executor_builder{}.cores(1));
  const auto big = add(executor_builder{}.cores(8));
  const auto d = want(make_profile({{"cores", 4}, {"gpu", 1}}, {{"gpu", "1"}}));
  const auto nearest = pool.nearest(d);
  ASSERT_TRUE(nearest);
  EXPECT_EQ(nearest->executor, big);
  pool.drain(big);
  EXPECT_NE(pool.nearest(d)->executor, big) << "a draining one is no candidate";
}

// -- policy exact: spec MP-8

struct exact_pool_test : executor_pool_test {
  exact_pool_test() { pool = executor_pool{profile_matching::exact}; }

  demand_index want_shape(std::uint64_t shape, const resource_profile& p, bool any = false) {
    return pool.intern({{next++}, {shape}, std::make_shared<const resource_profile>(p), "build", any});
  }
  /// Started on request for that shape.
  executor_index add_shape(std::uint64_t shape, const resource_profile& p) {
    return add(executor_builder{}.started_for(p).request(next).shape({shape}));
  }
};

const auto gpu_profile = make_profile({{"cores", 2}, {"gpu", 1}}, {{"cpus", "1"}, {"gpu", "0.5"}});

TEST_F(exact_pool_test, an_executor_runs_tasks_of_the_shape_that_it_was_started_for) {
  const auto third = add_shape(3, gpu_profile);
  const auto fourth = add_shape(4, gpu_profile);
  const auto d = want_shape(4, gpu_profile);
  EXPECT_FALSE(pool.satisfies(third, d)) << "the content is the same, the profile is not";
  EXPECT_TRUE(pool.satisfies(fourth, d));
  const auto late = add_shape(3, gpu_profile);
  EXPECT_FALSE(pool.satisfies(late, d));
  EXPECT_EQ(pool.grant(d)->executor, fourth);
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(exact_pool_test, the_shape_decides_whatever_the_content) {
  const auto e = add_shape(3, make_profile({{"cores", 8}, {"gpu", 4}}, {{"cpus", "1"}}));
  EXPECT_TRUE(pool.satisfies(e, want_shape(3, gpu_profile)));
}

TEST_F(exact_pool_test, one_that_was_started_for_no_shape_is_there_for_equal_executor_halves) {
  const auto e = add(executor_builder{}.started_for(gpu_profile));
  EXPECT_TRUE(pool.satisfies(e, want_shape(7, gpu_profile)));
  EXPECT_TRUE(pool.satisfies(e, want_shape(8, make_profile({{"cores", 2}, {"gpu", 1}}, {{"cpus", "2"}}))));
  const auto smaller = want_shape(9, make_profile({{"cores", 1}, {"gpu", 1}}, {{"cpus", "1"}}));
  EXPECT_FALSE(pool.satisfies(e, smaller)) << "it would be large enough";
  EXPECT_EQ(pool.fault(), std::nullopt);
}

TEST_F(exact_pool_test, a_demand_for_any_executor_is_served_where_its_tasks_fit) {
  const auto rich = add_shape(3, gpu_profile);
  const auto plain = add_shape(1, default_test_profile());
  auto task = gpu_profile;
  task.executor.clear();
  const auto d = want_shape(1, task, true);
  EXPECT_TRUE(pool.satisfies(rich, d));
  EXPECT_FALSE(pool.satisfies(plain, d)) << "it has no gpu";
  pool.remove(rich);
  const auto nearest = pool.nearest(d);
  ASSERT_TRUE(nearest);
  ASSERT_THAT(nearest->lacks, SizeIs(1));
  EXPECT_EQ(to_string(nearest->lacks[0]), "needs gpu 0.5, has 0");
  EXPECT_EQ(nearest->other, "");
}

TEST_F(exact_pool_test, nearest_says_when_only_the_profile_is_another) {
  add_shape(3, gpu_profile);
  const auto nearest = pool.nearest(want_shape(4, gpu_profile));
  ASSERT_TRUE(nearest);
  EXPECT_THAT(nearest->lacks, SizeIs(0));
  EXPECT_EQ(nearest->other,
            "was started for another profile, though a large enough one (troupe.scheduler.profile-matching = exact)");
  const auto larger = pool.nearest(want_shape(5, make_profile({{"cores", 4}}, {{"cpus", "4"}})));
  EXPECT_EQ(larger->other, "was started for another profile (troupe.scheduler.profile-matching = exact)");
}

TEST_F(exact_pool_test, addresses_are_taken_in_the_order_of_their_texts) {
  add(executor_builder{}.started_for(make_profile({{"cores", 11}, {"gpu", 11}}, {{"gpu", "1"}})));
  const auto d = want_shape(2, make_profile({{"cores", 11}, {"gpu", 11}}, {{"gpu", "1"}}));
  std::vector<std::string> order;
  for (int i = 0; i < 4; ++i) order.push_back(pool.grant(d)->holding.resources.at("gpu").at(0).address);
  EXPECT_THAT(order, ElementsAre("0", "1", "10", "2"));
}

TEST_F(executor_pool_test, the_best_executors_with_room_come_in_the_order_of_grants) {
  const auto rich = add(executor_builder{}.gpus(1));
  const auto busy = add(executor_builder{}.cores(2));
  const auto idle = add(executor_builder{}.cores(2));
  const auto d = want(default_test_profile());
  ASSERT_TRUE(pool.grant_on(busy, d));
  EXPECT_THAT(pool.with_room(d, 9), ElementsAre(idle, busy, rich));
  EXPECT_THAT(pool.with_room(d, 2), ElementsAre(idle, busy));
  ASSERT_TRUE(pool.grant_on(rich, d));
  EXPECT_THAT(pool.with_room(d, 9), ElementsAre(idle, busy));
}

} // namespace
} // namespace troupe::testing
