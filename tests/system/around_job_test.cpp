// A program that does something before and behind its job, and reads options of its own: as one process, with executors
// of its own, and as an executor itself.

#include <algorithm>
#include <fstream>
#include <regex>
#include <string_view>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::HasSubstr;

class around_job : public ::testing::TestWithParam<const char*> {
protected:
  std::string log() const { return scratch.path() + "/log"; }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::ifstream file{log()};
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }
  auto count(const std::string& line) const {
    const auto all = lines();
    return std::count(all.begin(), all.end(), line);
  }
  void expect_one_end() const {
    for (const auto* line : {"end", "exit", "destroyed"}) EXPECT_EQ(count(line), 1) << line;
  }
  std::string awaited(const program_process& process, const std::string& pattern) const {
    std::smatch found;
    std::string text;
    EXPECT_TRUE(testing::wait_until([&] {
      text = process.output();
      return std::regex_search(text, found, std::regex{pattern});
    })) << text;
    return found.size() > 1 ? found[1].str() : "";
  }

  testing::temporary_directory scratch;
};
INSTANTIATE_TEST_SUITE_P(masters, around_job, ::testing::Values("local[2]", "local-cluster[2,1,1g]"),
                         [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; });

TEST_P(around_job, what_stands_behind_it_is_done_once_and_executors_read_the_same_options) {
  program_process job{{TROUPE_AROUND_JOB, "--master", GetParam(), "--conf",
                       "troupe.run-directory=" + scratch.path() + "/run", "--limit", "20", "--log", log()}};
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_EQ(job.printed(),
            "before the job\nlimit 20\nlimit 20\nlimit 20\nlimit 20\nstarted by a task it said hello\n\n");
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(scratch.path()).empty(); }));
  expect_one_end();
  if (GetParam() == std::string_view{"local[2]"})
    EXPECT_EQ(count("begin"), 1);
  else
    EXPECT_GE(count("begin"), 2) << "executors read the options, too";
}

TEST_P(around_job, may_go_to_another_folder_first) {
  ASSERT_EQ(::mkdir((scratch.path() + "/sub").c_str(), 0700), 0);
  program_process job{{"sh", "-c", R"(cd "$1" && shift && exec "$@")", "sh", scratch.path(), TROUPE_AROUND_JOB,
                       "--master", GetParam(), "--conf", "troupe.run-directory=" + scratch.path() + "/run", "--folder",
                       "sub"}};
  EXPECT_EQ(job.wait(), 0) << job.output();
}

TEST(around_executor, without_a_start_ends_with_a_sentence) {
  program_process executor{{"env", "TROUPE_EXECUTOR=77,78:x", TROUPE_AROUND_JOB, "--master", "local[1]"}};
  EXPECT_NE(executor.wait().value_or(0), 0);
  EXPECT_THAT(executor.output(), HasSubstr("troupe: executor: start of the executor: it did not arrive"));
}

TEST_P(around_job, whatever_is_thrown_is_a_sentence) {
  for (const auto& [thrown, sentence] :
       {std::pair{"number", "troupe: the number 42 was thrown\n"}, std::pair{"text", "troupe: no good\n"},
        std::pair{"string", "troupe: a string\n"},
        std::pair{"other", "noted_at_the_end was thrown, which is no std::exception"},
        std::pair{"task-number", "the number 42 was thrown"}, std::pair{"task-other", "noted_at_the_end was thrown"}}) {
    program_process job{{TROUPE_AROUND_JOB, "--master", GetParam(), "--conf", "troupe.task.max-failures=1", "--conf",
                         "troupe.run-directory=" + scratch.path() + "/run", "--throw", thrown}};
    EXPECT_EQ(job.wait(), 1) << job.output();
    EXPECT_THAT(job.output(), HasSubstr(sentence));
  }
  EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(scratch.path()).empty(); }));
}

/// On a local cluster its last words are in a file that goes with the cluster.
TEST_P(around_job, tells_what_a_crashed_task_has_printed) {
  if (!std::string_view{GetParam()}.starts_with("local-cluster")) GTEST_SKIP() << "the program itself would crash";
  program_process job{{TROUPE_AROUND_JOB, "--master", GetParam(), "--conf", "troupe.task.max-failures=1", "--conf",
                       "troupe.run-directory=" + scratch.path() + "/run", "--throw", "task-crash"}};
  EXPECT_EQ(job.wait(), 1) << job.output();
  EXPECT_THAT(job.output(), ::testing::ContainsRegex("executor [0-9]+ has printed:\n(.*\n)*the last words"));
}

TEST_P(around_job, fails_where_what_it_prints_is_lost) {
  program_process job{{"sh", "-c", "exec \"$@\" >/dev/full", "sh", TROUPE_AROUND_JOB, "--master", GetParam(), "--conf",
                       "troupe.run-directory=" + scratch.path() + "/run"}};
  EXPECT_EQ(job.wait(), 1) << job.output();
  EXPECT_THAT(job.output(), HasSubstr("troupe: standard output could not be written"));
}

TEST_P(around_job, tells_of_each_attempt_that_has_failed) {
  program_process job{{TROUPE_AROUND_JOB, "--master", GetParam(), "--conf", "troupe.task.max-failures=2", "--conf",
                       "troupe.run-directory=" + scratch.path() + "/run", "--throw", "task-string"}};
  EXPECT_EQ(job.wait(), 1) << job.output();
  for (const auto* attempt : {"0", "1"})
    EXPECT_THAT(job.output(), ::testing::ContainsRegex("failed: stage 0 .*, partition 0, attempt " +
                                                       std::string{attempt} + " on executor .*: a string\n"));
  const bool has_own_processes = std::string_view{GetParam()}.starts_with("local-cluster");
  EXPECT_EQ(job.output().find("; tasks print to " + scratch.path() + "/run/") != std::string::npos, has_own_processes)
      << job.output();
}

using around_node = around_job;
INSTANTIATE_TEST_SUITE_P(masters, around_node, ::testing::Values("troupe://"));

TEST_P(around_node, does_nothing_of_it_as_a_driver_or_an_executor) {
  const auto written = [&](const std::string& name, const std::string& text) {
    std::ofstream{scratch.path() + "/" + name} << text;
    return scratch.path() + "/" + name;
  };
  const auto run = "troupe.run-directory=" + scratch.path() + "/run";
  program_process driver{{TROUPE_AROUND_JOB, "--conf", run,
                          "--config-file=" + written("driver.yaml", "node: {role: driver}\ntroupe: {driver.port: 0, "
                                                                    "security.secret-file: secret, "
                                                                    "dynamic-allocation.enabled: false}\n"),
                          "--log", log()}};
  const auto address = awaited(driver, "driver (\\S+) cluster");
  const auto file = written("executor.yaml", "node: {role: executor, driver: '" + address +
                                                 "'}\ntroupe: {security.secret-file: secret, executor: {cores: 1, "
                                                 "memory: 1g}}\n");
  program_process executor{{TROUPE_AROUND_JOB, "--conf", run, "--config-file=" + file, "--log", log()}};
  awaited(executor, "executor (\\d+) cluster");
  executor.kill(SIGTERM);
  EXPECT_EQ(executor.wait(), 0) << executor.output();
  EXPECT_EQ(executor.printed().find("before the job"), executor.printed().rfind("before the job"))
      << executor.printed();
  driver.kill(SIGTERM);
  EXPECT_TRUE(driver.wait().has_value());
  EXPECT_THAT(lines(), ::testing::ElementsAre("begin", "begin"));
}

} // namespace
} // namespace troupe::system_tests
