// Driver and executors on hosts of their own: network namespaces, real addresses, links that can be cut. Needs root.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/network_namespaces.hpp>
#include <troupe/tests/system/late_attempt.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/roles.hpp>
#include <troupe/tests/system/stages.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::HasSubstr;

/// A driver on host 0 and an executor on each other one, with a job whose tasks wait at their points.
struct cluster_of_hosts {
  testing::test_network network{3};
  testing::temporary_directory base;
  rendezvous meeting;
  std::vector<std::string> words; ///< where the driver is, which cluster, secret, run directory
  std::unique_ptr<role_process> driver;
  std::vector<std::unique_ptr<role_process>> executors;

  /// @param job file of the job to run in place of that one
  /// @param own a directory that each host has for itself
  /// @param of_the_driver settings
  /// @param driver_timeout of the executors, with a driver that is out of reach
  /// @param abandon_timeout likewise
  explicit cluster_of_hosts(const std::string& job = {}, const std::string& own = {},
                            const std::vector<std::string>& of_the_driver = {},
                            const std::string& driver_timeout = "10s", const std::string& abandon_timeout = "1h") {
    const auto card = base.path() + "/card";
    std::vector<std::string> task{network.address(0), base.path() + "/run", card, meeting.directory(), "2"};
    if (!job.empty()) task.push_back(job);
    task.insert(task.end(), of_the_driver.begin(), of_the_driver.end());
    driver = std::make_unique<role_process>("driver-of-hosts", task, network.on(0));
    testing::wait_until([&] {
      words.clear();
      std::ifstream file{card};
      for (std::string word; file >> word;) words.push_back(word);
      return words.size() == 4;
    });
    if (words.size() != 4) throw test_cluster_error("the driver did not start: " + driver->output());
    for (std::size_t i = 1; i <= 2; ++i) {
      auto arguments = words;
      arguments.push_back("host-" + std::to_string(i));
      arguments.push_back(i == 1 ? "0.0.0.0" : network.address(i)); // peers reach both
      for (const auto& setting :
           {std::string{"troupe.security.insecure=true"}, "troupe.executor.driver-timeout=" + driver_timeout,
            "troupe.executor.abandon-timeout=" + abandon_timeout, std::string{"troupe.transfer.same-host=never"}})
        arguments.emplace_back(setting);
      auto before = network.on(i);
      if (!own.empty())
        for (const auto* word : {"unshare", "-m", "sh", "-c", R"(mount -t tmpfs none "$0" && exec "$@")", own.c_str()})
          before.emplace_back(word);
      executors.push_back(std::make_unique<role_process>("executor", arguments, before));
    }
  }
  std::string all_output() const { return driver->output() + executors[0]->output() + executors[1]->output(); }
};

TEST(hosts_of_a_network, run_a_job_with_shuffles_between_them) {
  cluster_of_hosts hosts;
  hosts.meeting.await("map", 2);
  for (const auto* point : three_points) hosts.meeting.open(point);
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("as expected"));
  for (auto& executor : hosts.executors) EXPECT_EQ(executor->wait(), 0) << executor->output();
}

TEST(hosts_of_a_network, one_that_is_cut_off_is_given_up_and_ends_by_itself) {
  cluster_of_hosts hosts{{}, {}, noticing_silence(), "6s", "20s"};
  hosts.meeting.await("map", 4); // all four tasks: two on each host
  hosts.network.cut(2);
  for (const auto* point : three_points) hosts.meeting.open(point);
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("as expected"));
  EXPECT_EQ(hosts.executors[0]->wait(), 0) << hosts.executors[0]->output();
  const auto code = hosts.executors[1]->wait();
  ASSERT_TRUE(code.has_value()) << "it waits for a driver that it cannot reach";
  EXPECT_EQ(*code, 4) << hosts.executors[1]->output();
  EXPECT_THAT(hosts.executors[1]->output(), HasSubstr("troupe.executor.abandon-timeout"));
}

TEST(hosts_of_a_network, hand_files_over_where_they_share_no_file_system) {
  const testing::temporary_directory folder;
  const auto seen = folder.path() + "/seen";
  const auto own = folder.path() + "/out";
  std::filesystem::create_directory(seen);
  std::filesystem::create_directory(own);
  std::ofstream{folder.path() + "/job.yaml"} << R"(name: files
profiles:
  any: {executor: {cores: 1, memory: 64m}, task: {cpus: 1}}
stages:
  make:
    profile: any
    tasks: 3
    prefer: [host-1]
    run: [sh, -c, 'seq 300000 >"$1"; echo "$2" >>"$1"', make, "{output}", "{partition}"]
    outputs: ["made-{partition}"]
  use:
    profile: any
    prefer: [host-2]
    after: {make: one-to-one}
    run: [sh, -c, 'cp "$1" )" << seen << R"(/"$2"; echo "$1" >>)"
                                             << seen << R"(/names', use, "{input}", "{partition}"]
)";
  cluster_of_hosts hosts{folder.path() + "/job.yaml", own, {"troupe.locality.host-wait=never"}};
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("the job has succeeded"));
  EXPECT_TRUE(std::filesystem::is_empty(own)) << "each host has its own";
  for (const auto* partition : {"0", "1", "2"}) {
    std::ifstream file{seen + "/" + partition};
    std::string last;
    std::size_t lines = 0;
    for (std::string line; std::getline(file, line); ++lines) last = line;
    EXPECT_EQ(lines, 300'001u);
    EXPECT_EQ(last, partition);
  }
  std::ifstream names{seen + "/names"};
  for (std::string name; std::getline(names, name);)
    EXPECT_THAT(name, AllOf(HasSubstr("/made-"), HasSubstr(".inputs/"))) << "a copy, under its own name";
}

TEST(hosts_of_a_network, one_that_is_cut_off_publishes_nothing_over_the_accepted_attempt) {
  const late_attempt late{"host-2"};
  cluster_of_hosts hosts{late.job(), {}, noticing_silence(), "1h"};
  ASSERT_TRUE(late.await(0)) << hosts.all_output();
  hosts.network.cut(2);
  ASSERT_TRUE(late.await(1)) << "never declared lost: " << hosts.all_output();
  late.go(0); // its command ends now, and the job goes on
  hosts.network.heal(2);
  EXPECT_TRUE(hosts.executors[1]->wait().has_value()) << "it goes on without a driver";
  EXPECT_THAT(hosts.executors[1]->output(), HasSubstr("the driver has given it up"));
  EXPECT_EQ(late.output(), "") << "the first attempt was not accepted";
  late.go(1);
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("the job has succeeded"));
  EXPECT_EQ(late.output(), "1");
  EXPECT_THAT(late.in_place(), ::testing::ElementsAre("made"));
}

class killed_on_its_host : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(stages, killed_on_its_host, ::testing::ValuesIn(three_points),
                         [](const auto& stage) { return std::string{stage.param}; });

TEST_P(killed_on_its_host, costs_nothing_but_time) {
  cluster_of_hosts hosts;
  for (const auto* point : three_points) {
    if (point == std::string_view{GetParam()}) break;
    hosts.meeting.open(point);
  }
  hosts.meeting.await(GetParam(), 4); // all four tasks: two on each host
  hosts.executors[1]->kill(SIGKILL);
  for (const auto* point : three_points) hosts.meeting.open(point);
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("as expected"));
  EXPECT_EQ(hosts.executors[0]->wait(), 0) << hosts.executors[0]->output();
}

TEST(hosts_of_a_network, one_that_freezes_is_given_up) {
  cluster_of_hosts hosts{{}, {}, noticing_silence(), "6s"};
  hosts.meeting.await("map", 4);
  hosts.executors[1]->kill(SIGSTOP);
  for (const auto* point : three_points) hosts.meeting.open(point);
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("as expected"));
  hosts.executors[1]->kill(SIGCONT);
  EXPECT_TRUE(hosts.executors[1]->wait().has_value()) << "it goes on without a driver";
}

TEST(hosts_of_a_network, one_with_another_secret_is_refused_by_name) {
  cluster_of_hosts hosts;
  const auto secret = hosts.base.path() + "/another-secret";
  std::ofstream{secret} << std::string(64, 'b') << '\n';
  std::filesystem::permissions(secret, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  auto arguments = hosts.words;
  arguments.at(2) = secret;
  arguments.insert(arguments.end(), {"stranger", hosts.network.address(1), "troupe.security.insecure=true"});
  role_process stranger{"executor", arguments, hosts.network.on(1)};
  const auto code = stranger.wait();
  ASSERT_TRUE(code.has_value()) << "it was taken in";
  EXPECT_NE(*code, 0);
  EXPECT_THAT(stranger.output(), HasSubstr("does not know this secret"));
  for (const auto* point : three_points) hosts.meeting.open(point);
  EXPECT_EQ(hosts.driver->wait(), 0) << hosts.all_output();
  EXPECT_THAT(hosts.driver->output(), HasSubstr("as expected"));
}

} // namespace
} // namespace troupe::system_tests

int main(int argc, char** argv) {
  if (const auto code = troupe::testing::main_hook(argc, argv)) return *code;
  if (const auto code = troupe::system_tests::play_role(argc, argv)) return *code;
  std::string why;
  if (!troupe::testing::test_network::is_possible(why)) {
    std::cout << "skipped: " << why << '\n';
    constexpr int skipped = 77; // as CTest is told
    return skipped;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
