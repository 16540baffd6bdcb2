// Accumulators between real processes: attempts that fail, and an executor that is killed with what it has made.

#include <stdexcept>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/shapes.hpp>

namespace troupe::system_tests {
namespace {

class accumulators : public ::testing::TestWithParam<cluster_shape> {};
INSTANTIATE_TEST_SUITE_P(shapes, accumulators, ::testing::ValuesIn(all_shapes()),
                         [](const auto& param) { return param.param.name; });

TEST_P(accumulators, count_no_attempt_that_failed) {
  test_cluster cluster{GetParam().options()};
  auto session = cluster.make_session();
  const auto seen = session.accumulator("seen");
  const auto fail_once = [](const accumulator& s, std::int64_t n) {
    s.add(n);
    const auto& task = task_context::current();
    if (task.partition % 2 == 0 && task.attempt == 0) throw std::runtime_error("the first attempt of some tasks");
    return n;
  };
  EXPECT_EQ(session.range(0, 100, 8).map(with(seen), fail_once).count(), 100u);
  EXPECT_EQ(seen.value(), 4950);
  cluster.await_idle();
  cluster.check_clean();
}

/// A sort looks at the records in a job of its own, and keeps them for the next one.
TEST_P(accumulators, count_once_before_a_sort) {
  test_cluster cluster{GetParam().options()};
  auto session = cluster.make_session();
  const auto seen = session.accumulator("seen");
  const auto count = [](const accumulator& s, std::int64_t n) {
    s.add(1);
    return -n;
  };
  EXPECT_EQ(session.range(0, 100, 4).map(with(seen), count).sorted().collect().front(), -99);
  EXPECT_EQ(seen.value(), 100);
  cluster.check_clean();
}

TEST(accumulators_of_killed_executors, count_each_task_once) {
  const rendezvous meeting;
  test_cluster cluster{{.master = "local-cluster[2,1,1g]"}};
  auto session = cluster.make_session();
  const auto seen = session.accumulator("seen");
  background<std::size_t> job{cluster, [&] {
                                return session.range(0, 100, 4)
                                    .map(with(seen),
                                         [](const accumulator& s, std::int64_t n) {
                                           s.add(1);
                                           return std::pair{n % 7, n};
                                         })
                                    .group_by_key(2)
                                    .map(with(meeting.directory()),
                                         [](const std::string& where, const auto& group) {
                                           arrive(where, "reduce");
                                           return group.first;
                                         })
                                    .count();
                              }};
  // Both hold map outputs by now, which are made again.
  const auto busy = meeting.await("reduce", 2);
  for (const auto& e : cluster.executors())
    if (e.pid == busy.front()) cluster.kill(e);
  meeting.open("reduce");
  EXPECT_EQ(job.get(), 7u);
  EXPECT_EQ(seen.value(), 100);
  cluster.await_idle();
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
