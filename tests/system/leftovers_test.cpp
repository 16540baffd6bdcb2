// What is left when a session is over, however it has ended: nothing but outputs.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <troupe/tests/system/users_folder.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class leftovers : public users_folder {
protected:
  /// Three tasks that end, then two that do not, in folders that they have made read-only. Each says that it has begun
  /// by a line in `begun`.
  std::string job() const {
    const auto file = at("job.yaml");
    std::ofstream{file}
        << "name: job\noutput: out/of/job\nstages:\n  quick: {tasks: 3, run: [sh, -c, 'echo x >\"$0\"; echo >>" +
               at("begun") + "', '{output}'], outputs: ['o{partition}']}\n" +
               "  nap: {tasks: 2, after: {quick: all}, run: [sh, -c, 'echo said; mkdir -p kept/here; chmod a-w "
               "kept/here "
               "kept; echo x >\"$0\"; echo >>" +
               at("begun") + "; exec sleep 1000', '{output}'], outputs: ['o{partition}']}\n";
    return file;
  }
  std::size_t begun() const {
    std::ifstream file{at("begun")};
    return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>{file}, {}, '\n'));
  }
  void await_begun(std::size_t tasks, const program_process& process) const {
    ASSERT_TRUE(testing::wait_until([&] { return begun() >= tasks; })) << process.output();
  }

  /// All that is there and no output: folders without any, and whatever Troupe uses itself.
  std::vector<std::string> left() const {
    std::vector<std::string> all;
    std::error_code ignored;
    std::error_code gone; // at any moment, what a process is removing
    for (fs::recursive_directory_iterator entry{at("out"), gone}, end; !gone && entry != end; entry.increment(gone))
      if (entry->path().filename() == ".troupe") {
        // What failed commands have printed stays, and what is whose.
        std::size_t kept = 0;
        for (fs::directory_iterator own{entry->path(), gone}; !gone && own != fs::directory_iterator{};
             own.increment(gone))
          if (const auto name = own->path().filename(); name == "logs" || name.extension() == ".jsonl")
            ++kept;
          else
            all.push_back(own->path().string());
        const auto beside = std::distance(fs::directory_iterator{entry->path().parent_path(), gone}, {});
        if (kept == 0 || (beside == 1 && !fs::exists(entry->path() / "logs"))) all.push_back(entry->path().string());
        entry.disable_recursion_pending();
      } else if (entry->path().filename().string().starts_with(".troupe") ||
                 (entry->is_directory(ignored) && fs::is_empty(entry->path(), ignored))) {
        all.push_back(entry->path().string());
      }
    if (gone && fs::exists(at("out"), ignored)) all.push_back("something that is being removed");
    if (fs::is_empty(at("out"), ignored) && !ignored) all.push_back(at("out"));
    for (const auto& base : {at("troupe"), at("disk/troupe-" + std::to_string(geteuid()))})
      for (fs::directory_iterator entry{base, ignored}, end; !ignored && entry != end; entry.increment(ignored))
        all.push_back(entry->path().string());
    return all;
  }
  void expect_nothing_left() const {
    std::vector<std::string> all;
    EXPECT_TRUE(testing::wait_until([&] { return (all = left()).empty(); }))
        << all.size() << " such as " << all.front();
  }
};

struct ending {
  const char* name;
  const char* master;
  int signal;
};

class leftovers_of : public leftovers, public ::testing::WithParamInterface<ending> {};
INSTANTIATE_TEST_SUITE_P(endings, leftovers_of,
                         ::testing::Values(ending{"hangup", "local[2]", SIGHUP},
                                           ending{"interrupt", "local[2]", SIGINT},
                                           ending{"terminate", "local[2]", SIGTERM},
                                           ending{"hangup_of_processes", "local-cluster[2,1,1g]", SIGHUP},
                                           ending{"interrupt_of_processes", "local-cluster[2,1,1g]", SIGINT},
                                           ending{"terminate_of_processes", "local-cluster[2,1,1g]", SIGTERM}),
                         [](const auto& e) { return std::string{e.param.name}; });

TEST_P(leftovers_of, a_signal_are_outputs_alone) {
  for (const std::size_t moment : {0u, 1u, 5u}) { // tasks that have begun
    const auto process = started({"run", job(), "--master", GetParam().master});
    await_begun(moment, *process);
    if (moment == 0) ASSERT_TRUE(testing::wait_until([&] { return fs::exists(at("disk")); })) << process->output();
    process->kill(GetParam().signal);
    EXPECT_EQ(process->wait(), 130) << process->output();
    expect_nothing_left();
    EXPECT_FALSE(fs::exists(at("out/of/job/nap"))) << "after " << moment << " tasks";
    fs::remove_all(at("out"));
    fs::remove(at("begun"));
  }
}

class leftovers_of_killed : public leftovers, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(masters, leftovers_of_killed, ::testing::Values("local[2]", "local-cluster[2,1,1g]"),
                         [](const auto& e) { return std::string{e.index == 0 ? "in_process" : "processes"}; });

TEST_P(leftovers_of_killed, processes_are_removed_by_the_next_run_of_the_user) {
  const auto process = started({"run", job(), "--master", GetParam()});
  await_begun(5, *process);
  kill_all();
  EXPECT_FALSE(left().empty()) << "nobody was there who could have removed it";
  std::ofstream{at("next.yaml")} << "name: next\nstages: {a: {run: ['true']}}\n";
  EXPECT_EQ(run({"run", at("next.yaml"), "--master", "local[1]"}), 0) << last_output;
  EXPECT_THAT(left(), IsEmpty());
  EXPECT_TRUE(fs::exists(at("out/of/job/quick/o1")));
}

TEST_F(leftovers, of_a_cluster_that_was_killed_while_it_was_idle_are_none) {
  std::ofstream{at("cluster.yaml")} << "cluster:\n  hosts: [{name: here, cores: 2, memory: 1g}]\n";
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + at("cluster.yaml")}), 0) << last_output;
  EXPECT_FALSE(left().empty());
  const auto all = processes();
  const auto driver = std::find_if(all.begin(), all.end(), [&](const auto& p) {
    return std::none_of(all.begin(), all.end(),
                        [&](const auto& other) { return other.pid == testing::look_at(p.pid).parent; });
  });
  ASSERT_NE(driver, all.end());
  ::kill(driver->pid, SIGKILL);
  expect_nothing_left();
}

TEST_F(leftovers, of_commands_go_with_their_job_when_the_cluster_forgets_it) {
  std::ofstream{at("cluster.yaml")}
      << "cluster:\n  hosts: [{name: here, cores: 2, memory: 1g}]\n  executors: [{profile: "
         "default, count: 1}]\ntroupe.driver.retained-jobs: 1\n";
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + at("cluster.yaml")}), 0) << last_output;
  std::ofstream{at("says.yaml")} << "name: says\nstages: {a: {run: [echo, something]}}\n";
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(run({"run", at("says.yaml")}), 0) << last_output;
    if (i > 0) continue;
    for (const auto& p : processes()) // what an executor that has ended leaves is not its own to remove
      if (testing::is_executor(p.pid)) ::kill(p.pid, SIGKILL);
  }
  std::vector<std::string> jobs;
  EXPECT_TRUE(testing::wait_until([&] {
    jobs.clear();
    std::error_code ignored;
    for (fs::recursive_directory_iterator entry{at("disk"), ignored}, end; !ignored && entry != end;
         entry.increment(ignored))
      if (entry->path().parent_path().filename().string().starts_with("attempts-"))
        jobs.push_back(entry->path().filename().string());
    return jobs.size() == 1;
  }));
  EXPECT_THAT(jobs, ElementsAre("3"));
  EXPECT_EQ(run({"logs", "3"}), 0);
  EXPECT_THAT(last_output, ::testing::HasSubstr("something"));
  EXPECT_EQ(run({"cluster", "down"}), 0) << last_output;
  expect_nothing_left();
}

} // namespace
} // namespace troupe::system_tests
