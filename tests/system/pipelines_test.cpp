// Stages of different profiles that feed each other partition by partition, with real processes.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/rendezvous.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::Le;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// An executor of so many cores and so much memory for tasks that take all of it.
resource_profile whole(std::int64_t cores, const std::string& memory) {
  return resource_profile_builder{}
      .require(executor_resource_requests{}.cores(cores).memory(memory))
      .require(task_resource_requests{}.cpus(static_cast<int>(cores)))
      .build();
}

std::vector<std::int64_t> up_to(std::int64_t count, std::int64_t factor = 1) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 0; n < count; ++n) all.push_back(n * factor);
  return all;
}

std::size_t files_in(const std::string& directory, const std::string& prefix) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator{directory})
    count += entry.path().filename().string().starts_with(prefix);
  return count;
}

void mark(const std::string& directory, const std::string& name) { std::ofstream{directory + "/" + name}; }

/// That it ran once more.
void count(const std::string& directory, const std::string& name) {
  std::ofstream{directory + "/" + name, std::ios::app} << 'x';
}

/// On executors of two profiles: `made` numbers its partitions, `used` takes them up.
class pipelines_of_a_cluster : public ::testing::Test {
protected:
  testing::temporary_directory marks;
  rendezvous meeting;
};

TEST_F(pipelines_of_a_cluster, end_where_there_is_room_for_one_executor) {
  test_cluster cluster{
      {.master = "local-cluster[1,2,1g]", .conf = {"troupe.dynamic-allocation.executor-idle-timeout=1h"}}};
  auto session = cluster.make_session();
  const auto doubled = session.range(0, 6, 6)
                           .map(with(marks.path()),
                                [](const std::string& directory, std::int64_t n) {
                                  count(directory, std::to_string(n));
                                  return n + 1;
                                })
                           .with_resources(whole(2, "64m"))
                           .map([](std::int64_t n) { return (n - 1) * 2; })
                           .with_resources(whole(2, "96m"))
                           .collect();
  EXPECT_THAT(doubled, ElementsAreArray(up_to(6, 2)));
  EXPECT_EQ(session.last_job().stages.size(), 2u);
  for (const auto n : up_to(6))
    EXPECT_EQ(fs::file_size(marks.path() + "/" + std::to_string(n)), 1u) << "it was handed over, and not made again";
  cluster.check_clean();
}

TEST_F(pipelines_of_a_cluster, keep_who_has_what_was_not_read_yet) {
  test_cluster cluster{
      {.master = "local-cluster[2,1,1g]", .conf = {"troupe.dynamic-allocation.executor-idle-timeout=100ms"}}};
  auto session = cluster.make_session();
  auto running = std::async(std::launch::async, [&] {
    return session.range(0, 1, 1)
        .map(with(meeting.directory()),
             [](const std::string& where, std::int64_t n) {
               std::ofstream{where + "/made.pid"} << ::getpid();
               return n + 1;
             })
        .with_resources(whole(1, "64m"))
        .map(with(meeting.directory()),
             [](const std::string& where, std::int64_t n) {
               arrive(where, "use");
               return n * 2;
             })
        .with_resources(whole(1, "96m"))
        .collect();
  });
  const auto user = meeting.await("use").front();
  pid_t maker = 0;
  std::ifstream{meeting.directory() + "/made.pid"} >> maker;
  EXPECT_NE(maker, user);
  const auto is_gone = [&] { return ::kill(maker, 0) != 0; };
  EXPECT_FALSE(testing::wait_until(is_gone, 600ms)) << "before six idle time-outs were over";
  meeting.open("use");
  EXPECT_THAT(running.get(), ElementsAre(2));
  EXPECT_TRUE(testing::wait_until(is_gone)) << "it holds nothing any more";
  cluster.check_clean();
}

TEST_F(pipelines_of_a_cluster, end_where_the_producer_has_to_pause_on_the_only_executor) {
  test_cluster cluster{
      {.master = "local-cluster[1,2,1g]",
       .conf = {"troupe.dynamic-allocation.executor-idle-timeout=1h", "troupe.pipeline.max-unconsumed=100b"}}};
  auto session = cluster.make_session();
  const auto sizes = session.range(0, 4, 4)
                         .map([](std::int64_t) { return std::string(100, 'x'); })
                         .with_resources(whole(2, "64m"))
                         .map([](const std::string& text) { return text.size(); })
                         .with_resources(whole(2, "96m"))
                         .collect();
  EXPECT_EQ(sizes, std::vector<std::size_t>(4, 100));
  cluster.check_clean();
}

TEST_F(pipelines_of_a_cluster, keep_a_fast_producer_close_to_a_slow_consumer) {
  test_cluster cluster{{.master = "local-cluster[2,1,1g]", .conf = {"troupe.pipeline.max-unconsumed=500k"}}};
  auto session = cluster.make_session();
  const auto leads = session.range(0, 30, 30)
                         .map(with(marks.path()),
                              [](const std::string& directory, std::int64_t n) {
                                mark(directory, "made." + std::to_string(n));
                                return std::pair{n, std::string(100'000, 'x')};
                              })
                         .with_resources(whole(1, "64m"))
                         .map(with(marks.path()),
                              [](const std::string& directory, const std::pair<std::int64_t, std::string>& made) {
                                std::this_thread::sleep_for(20ms);
                                const auto lead = files_in(directory, "made.") - files_in(directory, "used.");
                                mark(directory, "used." + std::to_string(made.first));
                                return made.second.size() == 100'000 ? lead : 1000;
                              })
                         .with_resources(whole(1, "96m"))
                         .collect();
  ASSERT_EQ(leads.size(), 30u);
  // Five wait to be read, one is being read, and a few more may have been on their way when the pause was decided.
  EXPECT_THAT(leads, ::testing::Each(Le(9u)));
  cluster.check_clean();
}

/// The first consumer stands still until half of the partitions have been made, and the last producer until then.
class pipelines_that_lose_somebody : public ::testing::TestWithParam<const char*> {};

TEST_P(pipelines_that_lose_somebody, make_what_is_missing_again_and_fail_no_stage) {
  const rendezvous meeting;
  test_cluster cluster{{.master = "local-cluster[2,1,1g]"}};
  auto session = cluster.make_session();
  auto running = std::async(std::launch::async, [&] {
    return session.range(0, 8, 8)
        .map(with(meeting.directory()),
             [](const std::string& where, std::int64_t n) {
               if (n == 4) arrive(where, "make");
               return n;
             })
        .with_resources(whole(1, "64m"))
        .map(with(meeting.directory()),
             [](const std::string& where, std::int64_t n) {
               if (n == 2) arrive(where, "use");
               return n * 2;
             })
        .with_resources(whole(1, "96m"))
        .collect();
  });
  // Of the four partitions that were made two have been read.
  const auto maker = meeting.await("make").front();
  const auto user = meeting.await("use").front();
  ASSERT_NE(maker, user);
  ::kill(std::string{GetParam()} == "producer" ? maker : user, SIGKILL);
  meeting.open("make");
  meeting.open("use");
  EXPECT_THAT(running.get(), ElementsAreArray(up_to(8, 2)));
  const auto job = session.last_job();
  ASSERT_EQ(job.stages.size(), 2u);
  for (const auto& stage : job.stages) EXPECT_EQ(stage.attempt, 0u) << stage.name;
  cluster.check_clean();
}
INSTANTIATE_TEST_SUITE_P(the, pipelines_that_lose_somebody, ::testing::Values("producer", "consumer"),
                         [](const auto& param) { return std::string{param.param}; });

/// The first consumer has read its partition, and what it made is lost before the others have read theirs.
class producers_of_lost_consumers : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(that, producers_of_lost_consumers, ::testing::Bool(),
                         [](const auto& param) { return std::string{param.param ? "may_differ" : "repeat"}; });

TEST_P(producers_of_lost_consumers, run_again_only_where_nothing_was_kept) {
  const testing::temporary_directory marks;
  const rendezvous meeting;
  test_cluster cluster{{.master = "local-cluster[3,1,1g]"}};
  auto session = cluster.make_session();
  auto made = session.range(0, 2, 2).map(with(marks.path()), [](const std::string& directory, std::int64_t n) {
    count(directory, std::to_string(n));
    return n;
  });
  if (GetParam()) made = made.indeterminate();
  auto running = std::async(std::launch::async, [&] {
    return made.with_resources(whole(1, "64m"))
        .map(with(meeting.directory()),
             [](const std::string& where, std::int64_t n) {
               if (n == 0) std::ofstream{where + "/used.pid"} << ::getpid();
               if (n == 1) arrive(where, "use");
               return std::pair{n, n};
             })
        .with_resources(whole(1, "96m"))
        .reduce_by_key(std::plus<>{}, 2)
        .count();
  });
  meeting.await("use");
  EXPECT_TRUE(testing::wait_until([&] {
    const auto status = cluster.jobs().status();
    return status && !status->jobs.empty() && status->jobs.back().stages.at(1).done == 1;
  }));
  pid_t user = 0;
  std::ifstream{meeting.directory() + "/used.pid"} >> user;
  ::kill(user, SIGKILL);
  EXPECT_TRUE(testing::wait_until([&] {
    const auto all = cluster.executors();
    return std::none_of(all.begin(), all.end(), [&](const auto& e) { return e.pid == user; });
  })) << "that it is lost is known before the stage is complete";
  meeting.open("use");
  EXPECT_EQ(running.get(), 2u);
  EXPECT_EQ(fs::file_size(marks.path() + "/0"), GetParam() ? 1u : 2u);
  EXPECT_EQ(fs::file_size(marks.path() + "/1"), 1u);
  cluster.check_clean();
}

TEST_F(pipelines_of_a_cluster, overlap_as_their_events_tell) {
  const testing::temporary_directory events;
  {
    test_cluster cluster{{.master = "local-cluster[2,1,1g]",
                          .conf = {"troupe.event-log.enabled=true", "troupe.event-log.directory=" + events.path()}}};
    auto session = cluster.make_session();
    auto running = std::async(std::launch::async, [&] {
      return session.range(0, 4, 4)
          .map(with(meeting.directory()),
               [](const std::string& where, std::int64_t n) {
                 if (n == 3) arrive(where, "make");
                 return n;
               })
          .with_resources(whole(1, "64m"))
          .map(with(meeting.directory()),
               [](const std::string& where, std::int64_t n) {
                 if (n == 2) arrive(where, "use");
                 return n;
               })
          .with_resources(whole(1, "96m"))
          .count();
    });
    meeting.await("make");
    meeting.await("use"); // the consumer has come to its third task before the producer ends its fourth
    meeting.open("use");
    ASSERT_TRUE(testing::wait_until([&] {
      const auto status = cluster.jobs().status();
      return status && !status->jobs.empty() && status->jobs.back().stages.size() == 2 &&
             status->jobs.back().stages[1].done == 3;
    }));
    meeting.open("make");
    EXPECT_EQ(running.get(), 4u);
    cluster.check_clean();
  }
  // Tasks of the consumer have ended between those of the producer.
  std::string timeline;
  for (const auto& entry : fs::directory_iterator{events.path()}) {
    std::ifstream in{entry.path()};
    for (std::string line; std::getline(in, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event.value("Event", "") == "TroupeTasksSucceeded")
        timeline += std::string(event.value("Number of Tasks", 1u), event.value("Stage ID", 0u) % 2 == 1 ? 'm' : 'u');
    }
  }
  EXPECT_EQ(timeline.size(), 8u) << timeline;
  EXPECT_LT(timeline.find('u'), timeline.rfind('m')) << timeline;
  EXPECT_EQ(timeline.substr(timeline.size() - 2), "mu") << timeline;
}

} // namespace
} // namespace troupe::system_tests
