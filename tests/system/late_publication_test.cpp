// Attempts that were given up, on one machine: what they have made is not seen.

#include <csignal>
#include <fstream>
#include <memory>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/system/late_attempt.hpp>
#include <troupe/tests/system/roles.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A driver and two executors that were started by hand, as three processes.
struct by_hand {
  testing::temporary_directory base;
  std::unique_ptr<role_process> driver;
  std::vector<std::unique_ptr<role_process>> executors;

  explicit by_hand(const std::string& job) {
    const auto card = base.path() + "/card";
    std::vector<std::string> of_the_driver{"127.0.0.1", base.path() + "/run", card, base.path(), "2", job};
    for (const auto& setting : noticing_silence()) of_the_driver.push_back(setting);
    driver = std::make_unique<role_process>("driver-of-hosts", of_the_driver);
    std::vector<std::string> words;
    testing::wait_until([&] {
      words.clear();
      std::ifstream file{card};
      for (std::string word; file >> word;) words.push_back(word);
      return words.size() == 4;
    });
    if (words.size() != 4) throw test_cluster_error("the driver did not start: " + driver->output());
    for (const auto* host : {"host-1", "host-2"}) {
      auto arguments = words;
      arguments.insert(arguments.end(),
                       {host, "127.0.0.1", "troupe.executor.driver-timeout=6s", "troupe.executor.abandon-timeout=1h"});
      executors.push_back(std::make_unique<role_process>("executor", arguments));
    }
  }
};

TEST(late_publication, of_an_executor_that_was_paused_is_void) {
  const late_attempt late{"host-2"};
  by_hand cluster{late.job()};
  ASSERT_TRUE(late.await(0)) << cluster.driver->output();
  cluster.executors[1]->kill(SIGSTOP);
  late.go(0); // the command ends, and its executor does not see it
  ASSERT_TRUE(late.await(1)) << "never declared lost: " << cluster.driver->output();
  late.go(1);
  EXPECT_EQ(cluster.driver->wait(), 0) << cluster.driver->output();
  EXPECT_THAT(cluster.driver->output(), HasSubstr("the job has succeeded"));
  EXPECT_EQ(late.output(), "1");
  EXPECT_THAT(late.in_place(), ElementsAre("made")) << "nothing is left of what waited";
  cluster.executors[1]->kill(SIGCONT); // after the end of the job
  EXPECT_TRUE(cluster.executors[1]->wait().has_value()) << "it goes on without a driver";
  EXPECT_EQ(late.output(), "1");
  EXPECT_THAT(late.in_place(), ElementsAre("made"));
}

TEST(late_publication, of_an_executor_that_was_paused_is_void_while_the_job_goes_on) {
  const late_attempt late{"host-2"};
  by_hand cluster{late.job()};
  ASSERT_TRUE(late.await(0)) << cluster.driver->output();
  cluster.executors[1]->kill(SIGSTOP);
  late.go(0);
  ASSERT_TRUE(late.await(1)) << "never declared lost: " << cluster.driver->output();
  cluster.executors[1]->kill(SIGCONT);
  EXPECT_TRUE(cluster.executors[1]->wait().has_value()) << "it goes on without a driver";
  EXPECT_THAT(cluster.executors[1]->output(), HasSubstr("the driver has given it up"));
  EXPECT_EQ(late.output(), "") << "the first attempt was not accepted";
  late.go(1);
  EXPECT_EQ(cluster.driver->wait(), 0) << cluster.driver->output();
  EXPECT_EQ(late.output(), "1");
  EXPECT_THAT(late.in_place(), ElementsAre("made"));
}

} // namespace
} // namespace troupe::system_tests
