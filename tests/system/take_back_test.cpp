// Work that was queued behind a task which turns out to be long, with real executors.

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/tests/system/background.hpp>
#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using numbers = std::vector<std::int64_t>;
constexpr std::int64_t tasks = 2000;
constexpr std::int64_t long_one = tasks / 2; // many short ones come before it, so that others are queued behind it

class take_back : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, take_back, ::testing::Values("local[2]", "local-cluster[2,1,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(take_back, what_waits_behind_a_long_task_runs_elsewhere_before_that_has_ended) {
  const rendezvous meeting;
  test_cluster cluster{{.master = GetParam()}};
  auto session = cluster.make_session();
  background<numbers> job{cluster, [&] {
                            return session.range(0, tasks, tasks)
                                .map_partitions(with(meeting.directory()),
                                                [](const std::string& where, const numbers& part) {
                                                  if (part.at(0) == long_one) arrive(where, "long");
                                                  return part;
                                                })
                                .collect();
                          }};
  meeting.await("long");
  std::uint32_t done = 0;
  EXPECT_TRUE(testing::wait_until([&] {
    done = cluster.jobs().status()->jobs.at(0).stages.at(0).done;
    return done == tasks - 1;
  })) << done
      << " of " << tasks - 1 << " short tasks are done";
  EXPECT_FALSE(job.is_over());
  meeting.open("long");
  EXPECT_EQ(job.get().size(), static_cast<std::size_t>(tasks));
  EXPECT_EQ(cluster.jobs().status()->jobs.at(0).stages.at(0).failures, 0u);
  cluster.await_idle();
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
