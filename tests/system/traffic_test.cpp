// What passes through the network of a driver while its executors move data: next to nothing. Needs root.

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/tests/support/network_namespaces.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/roles.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::HasSubstr;

/// A driver on host 0 that moves data, and executors on hosts 1 and 2, which share no directory with it.
struct hosts_that_move_data {
  testing::test_network network{3};
  testing::temporary_directory base;
  rendezvous meeting;
  std::vector<run_directory> directories;
  std::unique_ptr<role_process> driver;
  std::vector<std::unique_ptr<role_process>> executors;

  hosts_that_move_data(const std::string& what, int megabytes, int executors_per_host) {
    const auto card = base.path() + "/card";
    driver = std::make_unique<role_process>(
        "driver-of-data",
        std::vector<std::string>{network.address(0), base.path() + "/run", card, meeting.directory(),
                                 std::to_string(2 * executors_per_host), what, std::to_string(megabytes)},
        network.on(0));
    std::vector<std::string> words;
    testing::wait_until([&] {
      words.clear();
      std::ifstream file{card};
      for (std::string word; file >> word;) words.push_back(word);
      return words.size() == 4;
    });
    if (words.size() != 4) throw test_cluster_error("the driver did not start: " + driver->output());
    for (std::size_t host = 1; host <= 2; ++host)
      for (int i = 0; i < executors_per_host; ++i) {
        const auto name = "host-" + std::to_string(host);
        auto own = run_directory::create(base.path() + "/" + name, std::to_string(i));
        if (!own) throw test_cluster_error(own.error().message);
        executors.push_back(std::make_unique<role_process>(
            "executor",
            std::vector<std::string>{words[0], words[1], words[2], own->path(), name, network.address(host),
                                     "troupe.security.insecure=true", "troupe.executor.driver-timeout=8s"},
            network.on(host)));
        directories.push_back(std::move(*own));
      }
  }

  struct moved {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t in_files = 0; ///< read and written, pipes included; what `send` and `recv` move is not
    /// Bytes that heartbeats and their answers may have taken meanwhile: a few hundred each, a few a second.
    std::uint64_t of_heartbeats = 0;
  };

  /// What passed through the driver's host, and the driver itself, between the begin and the end.
  moved of_the_driver() {
    meeting.await("begin");
    const auto before = network.traffic_of(0);
    const auto files_before = in_files_of(driver->pid());
    const auto begin = std::chrono::steady_clock::now();
    meeting.open("begin");
    meeting.await("end");
    const auto after = network.traffic_of(0);
    const auto files_after = in_files_of(driver->pid());
    const auto took = std::chrono::steady_clock::now() - begin;
    const auto seconds = static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(took).count());
    meeting.open("end");
    EXPECT_EQ(driver->wait(), 0) << driver->output();
    EXPECT_THAT(driver->output(), HasSubstr("as expected"));
    for (auto& executor : executors) EXPECT_EQ(executor->wait(), 0) << executor->output();
    return {after.sent - before.sent, after.received - before.received, files_after - files_before, 20'000 * seconds};
  }

private:
  static std::uint64_t in_files_of(pid_t process) {
    std::ifstream io{"/proc/" + std::to_string(process) + "/io"};
    std::uint64_t all = 0;
    std::uint64_t number = 0;
    for (std::string name; io >> name >> number;)
      if (name == "rchar:" || name == "wchar:") all += number;
    EXPECT_GT(all, 0u);
    return all;
  }
};

TEST(data_that_executors_move, does_not_pass_the_driver_in_a_shuffle_of_1_gb) {
  hosts_that_move_data hosts{"shuffle", 1000, 1};
  const auto between = hosts.network.traffic_of(1);
  const auto driver = hosts.of_the_driver();
  EXPECT_LT(driver.sent + driver.received + driver.in_files, 1'000'000u + driver.of_heartbeats);
  const auto moved = hosts.network.traffic_of(1);
  EXPECT_GT(moved.sent + moved.received - between.sent - between.received, 400'000'000u)
      << "half of it goes to the other host";
}

TEST(data_that_executors_move, does_not_pass_the_driver_when_1_gb_is_kept) {
  hosts_that_move_data hosts{"cache", 1000, 1};
  const auto driver = hosts.of_the_driver();
  EXPECT_LT(driver.sent + driver.received + driver.in_files, 1'000'000u + driver.of_heartbeats);
}

TEST(data_that_executors_move, is_sent_once_to_each_host_as_a_broadcast) {
  constexpr std::uint64_t size = 20'000'000;
  hosts_that_move_data hosts{"broadcast", size / 1'000'000, 2};
  const auto driver = hosts.of_the_driver();
  EXPECT_GT(driver.sent, 2 * size) << "one copy for each of two hosts";
  EXPECT_LT(driver.sent, 2 * size + size / 10 + driver.of_heartbeats) << "and no more, for two executors on each";
}

} // namespace
} // namespace troupe::system_tests
