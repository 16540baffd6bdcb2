// Map outputs that outlive the executor processes which made them.

#include <algorithm>
#include <future>
#include <map>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::Each;
using ::testing::Field;

using sums = std::map<std::int64_t, std::int64_t>;
using pair = std::pair<std::int64_t, std::int64_t>;

resource_profile cores(std::int64_t n) {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(n).memory("64m"))
      .require(task_resource_requests{}.cpus(static_cast<int>(n)))
      .build();
}

/// A host with room for either the executors of the maps or the one of the reducers.
class outputs_of_released_executors : public ::testing::Test {
protected:
  static test_cluster::options options(std::vector<std::string> conf = {}) {
    conf.push_back("troupe.dynamic-allocation.executor-idle-timeout=1h");
    return {.master = "local-cluster[1,4,4g]", .conf = std::move(conf)};
  }

  std::future<sums> start(test_cluster& cluster) {
    session_.emplace(cluster.make_session());
    return std::async(std::launch::async, [this] {
      const auto out =
          session_->range(0, 100'000, 4)
              .with_resources(cores(2))
              .map([](std::int64_t n) {
                return pair{n % 1000, n};
              })
              .group_by_key(3)
              .map_partitions(with(meeting.directory()),
                              [](const std::string& where,
                                 const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>& part) {
                                arrive(where, "reduce");
                                std::vector<pair> all;
                                for (const auto& [rest, values] : part) {
                                  std::int64_t sum = 0;
                                  for (const auto v : values) sum += v;
                                  all.emplace_back(rest, sum);
                                }
                                return all;
                              })
              .with_resources(cores(4))
              .collect();
      return sums{out.begin(), out.end()};
    });
  }
  static sums expected() {
    sums all;
    for (std::int64_t n = 0; n < 100'000; ++n) all[n % 1000] += n;
    return all;
  }
  static std::optional<test_cluster::executor> service_of(const test_cluster& cluster) {
    for (const auto& e : cluster.executors())
      if (e.status.info.shuffle_service) return e;
    return std::nullopt;
  }
  /// Waits until the service is there, and of the executors only those of the reducers.
  static bool await_service_alone(const test_cluster& cluster) {
    return testing::wait_until([&] {
      if (!service_of(cluster)) return false;
      const auto all = cluster.executors();
      return std::none_of(all.begin(), all.end(), [](const auto& e) {
        return !e.status.info.shuffle_service && e.status.info.capacity.cores < 4;
      });
    });
  }
  /// Of the map stage, the first one.
  std::vector<task_placement> map_placements() {
    std::vector<task_placement> maps;
    const auto first = session_->last_job().stages.at(0).stage;
    for (const auto& p : session_->last_placements())
      if (p.stage == first) maps.push_back(p);
    return maps;
  }

  rendezvous meeting;
  std::optional<session> session_;
};

TEST_F(outputs_of_released_executors, are_kept_by_the_shuffle_service) {
  test_cluster cluster{options()};
  auto result = start(cluster);
  meeting.await("reduce");
  EXPECT_TRUE(await_service_alone(cluster)) << "of the executors of the maps one is left";
  meeting.open("reduce");
  EXPECT_EQ(result.get(), expected());
  EXPECT_THAT(map_placements(), Each(Field(&task_placement::attempt, 0u))) << "nothing was made again";
  cluster.await_idle();
  cluster.check_clean();
}

TEST_F(outputs_of_released_executors, are_made_again_where_the_service_is_killed) {
  test_cluster cluster{options()};
  auto result = start(cluster);
  meeting.await("reduce"); // the first reducer has read its input, the others have not begun
  ASSERT_TRUE(await_service_alone(cluster));
  const auto service = service_of(cluster);
  ASSERT_TRUE(service);
  cluster.kill(*service);
  meeting.open("reduce");
  EXPECT_EQ(result.get(), expected());
  bool again = false;
  for (const auto& p : map_placements()) again = again || p.attempt > 0;
  EXPECT_TRUE(again) << "what it kept was lost";
  cluster.check_clean();
}

TEST_F(outputs_of_released_executors, stay_with_their_parked_executor_where_only_the_network_may_be_used) {
  test_cluster cluster{options({"troupe.transfer.same-host=never"})};
  auto result = start(cluster);
  meeting.await("reduce");
  EXPECT_FALSE(service_of(cluster));
  EXPECT_GT(cluster.executors().size(), 1u);
  meeting.open("reduce");
  EXPECT_EQ(result.get(), expected());
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
