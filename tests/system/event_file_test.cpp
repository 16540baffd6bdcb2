// The file of a session's events: complete where it ends well, and up to the last line where its driver is killed.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class event_file : public ::testing::Test {
protected:
  void SetUp() override {
    // No cluster of the user's is met, and what is left can be found.
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", directory().c_str(), 1), 0);
    fs::create_directory(events());
    fs::create_directory(arrived());
  }
  void TearDown() override {
    unsetenv("XDG_RUNTIME_DIR");
    const auto left = [&] { return testing::processes_of(directory()); };
    EXPECT_TRUE(testing::wait_until([&] { return left().empty(); })) << left().front().text();
  }

  const std::string& directory() const { return scratch_.path(); }
  std::string events() const { return directory() + "/events"; }
  std::string arrived() const { return directory() + "/arrived"; }
  bool have_arrived(std::size_t tasks) const {
    return testing::wait_until(
        [&] { return static_cast<std::size_t>(std::distance(fs::directory_iterator{arrived()}, {})) >= tasks; });
  }
  std::string written(const std::string& name, const std::string& text) const {
    const auto file = directory() + "/" + name;
    std::ofstream{file} << text;
    return file;
  }
  static std::unique_ptr<program_process> started(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TROUPE_PROGRAM);
    return std::make_unique<program_process>(std::move(arguments));
  }

  /// The one file of events, line by line. What follows the last line feed is no line.
  std::vector<json> lines() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator{events()}) files.push_back(entry.path().string());
    EXPECT_EQ(files.size(), 1u);
    if (files.empty()) return {};
    EXPECT_EQ(fs::status(files[0]).permissions(), fs::perms::owner_read | fs::perms::owner_write);
    std::vector<json> out;
    std::ifstream in{files[0]};
    for (std::string line; std::getline(in, line) && !in.eof();) {
      out.push_back(json::parse(line, nullptr, false));
      EXPECT_TRUE(out.back().is_object()) << line;
    }
    return out;
  }
  /// Checks that the first line says who wrote it and that the others have the numbers from 1 on.
  static void expect_no_gap(const std::vector<json>& lines) {
    ASSERT_FALSE(lines.empty());
    EXPECT_EQ(lines[0].value("Event", ""), "TroupeLogStart");
    EXPECT_FALSE(lines[0].value("Troupe Version", "").empty());
    for (std::size_t i = 1; i < lines.size(); ++i) ASSERT_EQ(lines[i].value("Number", 0u), i) << lines[i].dump();
  }
  static std::map<std::string, std::size_t> counted(const std::vector<json>& lines) {
    std::map<std::string, std::size_t> out;
    for (const auto& line : lines) ++out[line.value("Event", "")];
    return out;
  }

private:
  testing::temporary_directory scratch_;
};

TEST_F(event_file, has_all_that_happened_on_three_executors) {
  // Each task waits for the other two, so that there have to be three executors.
  const auto job = written("meet.yaml", "name: meet\nstages:\n  meet: {tasks: 3, run: [sh, -c, '>" + arrived() +
                                            "/{partition}; until [ -e " + arrived() + "/0 -a -e " + arrived() +
                                            "/1 -a -e " + arrived() + "/2 ]; do sleep 0.02; done']}\n");
  auto process = started({"run", job, "--master=local-cluster[3,1,1g]", "--conf", "troupe.event-log.enabled=true",
                          "--conf", "troupe.event-log.directory=" + events(), "--conf", "troupe.executor.cores=1",
                          "--conf", "troupe.executor.memory=256m"});
  EXPECT_EQ(process->wait(), 0) << process->output();
  const auto all = lines();
  expect_no_gap(all);
  auto events = counted(all);
  EXPECT_EQ(events["SparkListenerJobStart"], 1u);
  EXPECT_EQ(events["SparkListenerStageSubmitted"], 1u);
  EXPECT_EQ(events["SparkListenerStageCompleted"], 1u);
  EXPECT_EQ(events["SparkListenerJobEnd"], 1u);
  EXPECT_EQ(events["SparkListenerExecutorAdded"], 3u);
  EXPECT_EQ(events["SparkListenerExecutorRemoved"], 3u) << "the end of the session is part of it";
  EXPECT_EQ(events["TroupeExecutorRequested"], 3u);
  EXPECT_EQ(events["TroupeLeaseGranted"], events["TroupeLeaseReleased"]);
  EXPECT_EQ(events["TroupeEventsMissing"], 0u);
  std::size_t tasks = 0;
  std::set<std::string> executors;
  std::set<std::uint64_t> announced;
  bool ended = false;
  for (const auto& line : all) {
    const auto event = line.value("Event", "");
    if (event == "TroupeTasksSucceeded") {
      tasks += line["Number of Tasks"].get<std::size_t>();
      executors.insert(line["Executor ID"]);
    }
    if (event == "SparkListenerResourceProfileAdded")
      announced.insert(line["Resource Profile Id"].get<std::uint64_t>());
    // EV-3: what names a profile names one that was announced.
    for (const auto* part : {"Stage Info", "Executor Info"})
      if (line.contains(part)) {
        EXPECT_TRUE(announced.contains(line[part].value("Resource Profile Id", 99u))) << line.dump();
      }
    if (event == "SparkListenerJobEnd") {
      ended = true;
      EXPECT_EQ(line["Job Result"]["Result"], "JobSucceeded");
    }
    if (ended) {
      EXPECT_NE(event.substr(0, 18), "SparkListenerStage") << "the job's end comes last of all that it did";
    }
  }
  EXPECT_EQ(tasks, 3u);
  EXPECT_EQ(executors.size(), 3u);
}

TEST_F(event_file, of_a_driver_that_is_killed_is_complete_up_to_its_last_line) {
  const auto cluster = written("cluster.yaml", "cluster: {hosts: [{name: one, cores: 2, memory: 2g}]}\n"
                                               "troupe:\n  event-log: {enabled: true, directory: " +
                                                   events() + "}\n  executor: {cores: 1, memory: 256m}\n");
  auto up = started({"cluster", "up", "--config-file=" + cluster});
  ASSERT_EQ(up->wait(), 0) << up->output();
  auto status = started({"cluster", "status", "--json"});
  ASSERT_EQ(status->wait(), 0) << status->output();
  const auto session = json::parse(status->printed());
  // Many short tasks, and two that wait.
  const auto job = written("busy.yaml", "name: busy\nstages:\n  short: {tasks: 200, run: [\"true\"]}\n"
                                        "  nap: {tasks: 2, after: {short: all}, run: [sh, -c, '>" +
                                            arrived() + "/{partition}; exec sleep 1000']}\n");
  auto run = started({"run", job});
  EXPECT_TRUE(have_arrived(2)) << run->output();
  EXPECT_TRUE(testing::wait_until([&] { return counted(lines())["SparkListenerStageSubmitted"] == 2; }))
      << "what is decided is written soon";
  ASSERT_EQ(::kill(session.at("pid").get<pid_t>(), SIGKILL), 0);
  EXPECT_NE(run->wait(), 0) << run->output();
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(directory()).empty(); }));
  const auto all = lines();
  expect_no_gap(all);
  auto events = counted(all);
  EXPECT_EQ(events["SparkListenerJobStart"], 1u);
  EXPECT_EQ(events["SparkListenerStageSubmitted"], 2u);
  EXPECT_EQ(events["SparkListenerStageCompleted"], 1u);
  EXPECT_EQ(events["SparkListenerJobEnd"], 0u);
  started({"cluster", "status"})->wait(); // sweeps what the killed driver has left
}

TEST_F(event_file, needs_a_directory_that_exists) {
  const auto job = written("one.yaml", "name: one\nstages:\n  one: {run: [\"true\"]}\n");
  auto unset = started({"run", job, "--master=local[1]", "--conf", "troupe.event-log.enabled=true"});
  EXPECT_EQ(unset->wait(), 2) << unset->output();
  EXPECT_THAT(unset->output(), HasSubstr("troupe.event-log.directory is not set"));
  auto missing = started({"run", job, "--master=local[1]", "--conf", "troupe.event-log.enabled=true", "--conf",
                          "troupe.event-log.directory=/no/such"});
  EXPECT_EQ(missing->wait(), 2) << missing->output();
  EXPECT_THAT(missing->output(), HasSubstr("troupe.event-log.directory = /no/such: "));
  auto off = started({"run", job, "--master=local[1]", "--conf", "troupe.event-log.enabled=false", "--conf",
                      "troupe.event-log.directory=" + events()});
  EXPECT_EQ(off->wait(), 0) << off->output();
  EXPECT_TRUE(fs::is_empty(events()));
}

} // namespace
} // namespace troupe::system_tests
