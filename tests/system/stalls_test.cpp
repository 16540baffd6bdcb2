// Processes that stand still for some seconds, as those of a busy virtual machine do: no executor and no job is lost.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

constexpr auto stall = 4s;
/// For clients: less than the stall, so that a client would go which judged its driver by CAF's silence.
constexpr const char* short_timeout = "troupe.executor.heartbeat-timeout=3s";

std::string content_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

/// The first group of the pattern once the text has it.
std::string awaited(const std::function<std::string()>& text, const std::string& pattern) {
  std::smatch found;
  std::string seen;
  const bool there = testing::wait_until([&] {
    seen = text();
    return std::regex_search(seen, found, std::regex{pattern});
  });
  EXPECT_TRUE(there) << pattern << " was never seen, but:\n" << seen;
  return there && found.size() > 1 ? found[1].str() : std::string{};
}

std::unique_ptr<program_process> started(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TROUPE_PROGRAM);
  return std::make_unique<program_process>(std::move(arguments));
}

/// A cluster of two slots with a job whose tasks wait until they are opened, and a directory of its own, so that its
/// processes are found.
class busy_cluster {
public:
  explicit busy_cluster(int tasks = 2) : tasks_(tasks) {}
  busy_cluster(const busy_cluster&) = delete;
  busy_cluster& operator=(const busy_cluster&) = delete;
  /// Ends what a failed test has left.
  ~busy_cluster() {
    for (const auto& process : testing::processes_of(directory())) {
      ::kill(process.pid, SIGCONT);
      ::kill(process.pid, SIGKILL);
    }
  }
  const std::string& directory() const { return directory_.path(); }
  std::string written(const std::string& name, const std::string& text) const {
    const auto file = directory() + "/" + name;
    std::ofstream{file} << text;
    return file;
  }
  /// A task writes a line when it starts, so that one which runs again is seen.
  std::string job() const {
    return written("job.yaml", "name: waits\nstages:\n  wait:\n    tasks: " + std::to_string(tasks_) +
                                   "\n    run: [sh, -c, 'echo started >>" + directory() +
                                   "/task-{partition}; until [ -e " + directory() + "/open ]; do sleep 0.05; done']\n");
  }
  std::vector<std::string> with_run_directory(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--conf", "troupe.run-directory=" + directory() + "/run"});
    return arguments;
  }
  int tasks_begun() const {
    int count = 0;
    for (int i = 0; i < tasks_; ++i) count += !content_of(task(i)).empty();
    return count;
  }
  void await_tasks() const {
    ASSERT_TRUE(testing::wait_until([&] { return tasks_begun() == 2; })) << client->output();
  }
  void open() const { std::ofstream{directory() + "/open"}; }
  void expect_undisturbed_end() const {
    open();
    EXPECT_EQ(client->wait(), 0) << client->output();
    for (int i = 0; i < tasks_; ++i)
      EXPECT_EQ(content_of(task(i)), "started\n") << "it ran again:\n" << client->output();
  }

  std::unique_ptr<program_process> client; ///< which is the driver as well, where `driver` is not set
  pid_t driver = 0;
  std::vector<pid_t> executors;

private:
  std::string task(int partition) const { return directory() + "/task-" + std::to_string(partition); }

  int tasks_;
  testing::temporary_directory directory_;
};

/// The processes that run commands: parents of the shells of the tasks. A shell has a copy of itself as a child until
/// that has become `sleep`.
std::vector<pid_t> executors_of(const busy_cluster& cluster) {
  const auto is_shell = [](const testing::seen_process& process) { return process.command_line.starts_with("sh "); };
  std::set<pid_t> out;
  for (const auto& process : testing::processes_of(cluster.directory() + "/task-"))
    if (is_shell(process) && !is_shell(testing::look_at(process.parent))) out.insert(process.parent);
  return {out.begin(), out.end()};
}

/// Stops these processes and lets them go on after `stall`.
/// @returns whether this process has done so in time: it may have stood still itself, and the stall have been too long
bool stand_still(const std::vector<pid_t>& processes) {
  const auto begin = std::chrono::steady_clock::now();
  for (const auto pid : processes) EXPECT_EQ(::kill(pid, SIGSTOP), 0) << "process " << pid << " has ended";
  testing::wait_until([&] { return std::chrono::steady_clock::now() - begin >= stall; });
  for (const auto pid : processes) EXPECT_EQ(::kill(pid, SIGCONT), 0) << "process " << pid << " has ended";
  return std::chrono::steady_clock::now() - begin < stall + 1s;
}

class stalls : public ::testing::Test {
protected:
  /// `troupe run --master local-cluster[…]`: the client is the driver.
  static void start_program(busy_cluster& c) {
    c.client = started(c.with_run_directory({"run", c.job(), "--master=local-cluster[2,1,1g]"}));
    c.await_tasks();
  }
  /// `troupe cluster up`, and a client that says `troupe run`.
  static void start_cluster(busy_cluster& c) {
    const auto file = c.written("cluster.yaml", "cluster:\n  hosts: [{name: left, cores: 1, memory: 1g}, "
                                                "{name: right, cores: 1, memory: 1g}]\n");
    const auto up = started(c.with_run_directory({"cluster", "up", "--config-file=" + file}));
    ASSERT_EQ(up->wait(), 0) << up->output();
    const auto status = started(c.with_run_directory({"cluster", "status", "--json"}));
    ASSERT_EQ(status->wait(), 0) << status->output();
    c.driver = std::stoi(awaited([&] { return status->printed(); }, R"re("pid": (\d+),\s+"secret-file")re"));
    c.client = started(c.with_run_directory({"run", c.job(), "--conf", short_timeout}));
    c.await_tasks();
  }
  /// Driver, executors and client in shells of their own.
  void start_nodes(busy_cluster& c) {
    const auto driver_file =
        c.written("driver.yaml", "node: {role: driver}\ntroupe: {driver.port: 0, security.secret-file: secret, "
                                 "dynamic-allocation.enabled: false, executor: {cores: 1, memory: 1g}}\n");
    nodes_.push_back(started(c.with_run_directory({"node", "--config-file=" + driver_file})));
    auto& driver = *nodes_.back();
    const auto address = awaited([&] { return driver.printed(); }, "driver (\\S+) cluster");
    const auto executor_file = c.written(
        "executor.yaml", "node: {role: executor, driver: '" + address +
                             "'}\ntroupe: {security.secret-file: secret, executor: {cores: 1, memory: 1g}}\n");
    for (int i = 0; i < 2; ++i) {
      nodes_.push_back(started(c.with_run_directory({"node", "--config-file=" + executor_file})));
      awaited([&] { return nodes_.back()->printed(); }, "executor (\\d+) cluster");
    }
    c.driver = driver.pid();
    c.client = started(
        c.with_run_directory({"run", c.job(), "--master=troupe://" + address, "--conf",
                              "troupe.security.secret-file=" + c.directory() + "/secret", "--conf", short_timeout}));
    c.await_tasks();
  }
  void stop_nodes() {
    for (const auto& node : nodes_) {
      node->kill(SIGTERM);
      EXPECT_TRUE(node->wait().has_value()) << node->output();
    }
  }

  /// One trial. @returns false where the stalls became longer than they should, and so say nothing of the product
  bool stand_still_and_go_on() {
    nodes_.clear();
    busy_cluster program, cluster, nodes;
    start_program(program);
    start_cluster(cluster);
    start_nodes(nodes);
    const std::vector<busy_cluster*> all{&program, &cluster, &nodes};
    std::vector<pid_t> drivers, executors, clients, everybody;
    for (auto* c : all) {
      c->executors = executors_of(*c);
      EXPECT_EQ(c->executors.size(), 2u);
      drivers.push_back(c->driver != 0 ? c->driver : c->client->pid());
      if (c->driver != 0) clients.push_back(c->client->pid());
      executors.insert(executors.end(), c->executors.begin(), c->executors.end());
    }
    for (const auto* group : {&drivers, &executors, &clients})
      everybody.insert(everybody.end(), group->begin(), group->end());
    for (const auto* group : {&drivers, &executors, &clients, &everybody})
      if (HasFailure() || !stand_still(*group)) return HasFailure();
    for (const auto* c : all) {
      EXPECT_EQ(executors_of(*c), c->executors) << c->client->output();
      c->expect_undisturbed_end();
    }
    stop_nodes();
    const auto down = started(cluster.with_run_directory({"cluster", "down"}));
    EXPECT_EQ(down->wait(), 0) << down->output();
    return true;
  }

  std::vector<std::unique_ptr<program_process>> nodes_;
};

TEST_F(stalls, of_seconds_cost_neither_executors_nor_jobs) {
  while (!stand_still_and_go_on()) {}
}

/// As with Ctrl-Z and `fg`. Executors begin nothing meanwhile, since the driver might be gone and others do their work.
TEST_F(stalls, of_a_driver_cost_nothing_although_its_executors_hold_still) {
  busy_cluster cluster{8}, nodes{8};
  start_cluster(cluster);
  start_nodes(nodes);
  for (auto* c : {&cluster, &nodes}) {
    c->executors = executors_of(*c);
    ASSERT_EQ(c->executors.size(), 2u);
    ASSERT_EQ(::kill(c->driver, SIGSTOP), 0);
  }
  const std::string holds = "holds: for ";
  const auto hold_in_logs = [&] {
    std::size_t count = 0;
    std::error_code none;
    for (fs::recursive_directory_iterator entry{cluster.directory() + "/run", none}, end; !none && entry != end;
         entry.increment(none))
      if (entry->path().filename().string().starts_with("executor-") && entry->path().extension() == ".log" &&
          !entry->is_symlink())
        count += content_of(entry->path()).find(holds) != std::string::npos;
    return count == 2;
  };
  EXPECT_TRUE(testing::wait_until(hold_in_logs));
  for (const auto& node : nodes_)
    if (node->pid() != nodes.driver)
      EXPECT_TRUE(testing::wait_until([&] { return node->output().find(holds) != std::string::npos; }))
          << node->output();
  for (const auto* c : {&cluster, &nodes}) c->open(); // room for those that are queued
  // Longer than a driver waits for its executors.
  const auto seen = std::chrono::steady_clock::now();
  testing::wait_until([&] { return std::chrono::steady_clock::now() - seen >= 12s; });
  for (const auto* c : {&cluster, &nodes}) EXPECT_EQ(c->tasks_begun(), 2) << "while nobody heard of it";
  for (auto* c : {&cluster, &nodes}) EXPECT_EQ(::kill(c->driver, SIGCONT), 0);
  for (auto* c : {&cluster, &nodes}) c->expect_undisturbed_end();
  stop_nodes();
  const auto down = started(cluster.with_run_directory({"cluster", "down"}));
  EXPECT_EQ(down->wait(), 0) << down->output();
}

} // namespace
} // namespace troupe::system_tests
