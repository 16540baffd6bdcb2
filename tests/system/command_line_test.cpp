// The `troupe` program as a user types it: every subcommand, in processes of their own.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/system/program_process.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

std::string content_of(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream{file}.rdbuf();
  return text.str();
}

/// A directory with the ready-made configurations, and a run directory of its own, so that no cluster of the user's is
/// met. Nothing may be left of it at the end.
class command_line : public ::testing::Test {
protected:
  struct ended {
    int code = -1;
    std::string printed; ///< standard output
    std::string output;  ///< with standard error
  };

  void SetUp() override {
    // XDG_RUNTIME_DIR is what a user's machine has.
    ASSERT_EQ(setenv("XDG_RUNTIME_DIR", directory().c_str(), 1), 0);
    fs::copy(TROUPE_SOURCE_DIRECTORY "/configs", directory() + "/configs", fs::copy_options::recursive);
  }
  void TearDown() override {
    unsetenv("XDG_RUNTIME_DIR");
    const auto left = [&] { return testing::processes_of(directory()); };
    EXPECT_TRUE(testing::wait_until([&] { return left().empty(); })) << left().front().text();
    std::vector<std::string> sessions;
    EXPECT_TRUE(testing::wait_until([&] {
      sessions.clear();
      std::error_code none;
      for (const auto& entry : fs::directory_iterator{directory() + "/troupe", none})
        sessions.push_back(entry.path().string());
      return sessions.empty();
    })) << "left behind: "
        << sessions.front();
  }

  const std::string& directory() const { return scratch_.path(); }
  std::string config(const std::string& name) const { return directory() + "/configs/" + name; }
  std::string written(const std::string& name, const std::string& text) const {
    const auto file = directory() + "/" + name;
    std::ofstream{file} << text;
    return file;
  }

  /// A job of two commands that do not end by themselves; each says that it runs by a file in `arrived`.
  std::string naps() const {
    fs::create_directory(arrived());
    return written("naps.yaml", "name: naps\nstages:\n  nap: {tasks: 2, run: [sh, -c, '>" + arrived() +
                                    "/{partition}; exec sleep 1000']}\n");
  }
  std::string arrived() const { return directory() + "/arrived"; }
  bool both_nap() const {
    return testing::wait_until([&] { return fs::exists(arrived() + "/0") && fs::exists(arrived() + "/1"); });
  }

  /// A well-formed secret that no cluster has.
  std::string secret() const {
    const auto file = written("secret", std::string(64, 'a') + "\n");
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    return file;
  }

  static std::unique_ptr<program_process> started(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), TROUPE_PROGRAM);
    return std::make_unique<program_process>(std::move(arguments));
  }
  static ended end_of(program_process& process) {
    const auto code = process.wait();
    return {code.value_or(-1), process.printed(), process.output()};
  }
  static ended run(std::vector<std::string> arguments) { return end_of(*started(std::move(arguments))); }

  /// Waits until the process has printed what matches; gives the first group.
  static std::string awaited(const program_process& process, const std::string& pattern) {
    std::smatch found;
    std::string text;
    const bool seen = testing::wait_until([&] {
      text = process.printed();
      return std::regex_search(text, found, std::regex{pattern});
    });
    EXPECT_TRUE(seen) << pattern << " was never printed, but:\n" << process.output();
    return seen && found.size() > 1 ? found[1].str() : std::string{};
  }

  /// A node file for an executor of the cluster with that status.
  std::string executor_file(const std::string& status) const {
    const auto address = found_in(status, R"re("address": "([^"]+)")re");
    return written("node.yaml",
                   "node: {role: executor, driver: '" + address +
                       "'}\ntroupe: {executor: {cores: 1, memory: 1g, resource: {scratch: {amount: 2g}}}}\n");
  }

  /// The first group of the pattern's first match.
  static std::string found_in(const std::string& text, const std::string& pattern) {
    std::smatch found;
    EXPECT_TRUE(std::regex_search(text, found, std::regex{pattern})) << pattern << " is not in:\n" << text;
    return found.size() > 1 ? found[1].str() : std::string{};
  }

private:
  testing::temporary_directory scratch_;
};

TEST_F(command_line, runs_a_job_file_in_its_own_process) {
  const auto job = run({"run", config("reads.yaml")});
  EXPECT_EQ(job.code, 0) << job.output;
  EXPECT_THAT(job.output,
              AllOf(HasSubstr("reads succeeded"), ContainsRegex("count +2/2"), ContainsRegex("report +1/1")));
  EXPECT_THAT(content_of(directory() + "/configs/out/report/report.txt"), HasSubstr("the"));
  // The same on processes of this machine, for a program to read.
  const auto again = run({"run", config("reads.yaml"), "--master=local-cluster[2,2,2g]", "--json"});
  EXPECT_EQ(again.code, 0) << again.output;
  EXPECT_THAT(again.printed,
              AllOf(HasSubstr(R"("state": "succeeded")"), HasSubstr(R"("name": "report")"),
                    HasSubstr(R"("master": "local-cluster[2,2,2g]")"), HasSubstr(R"("master-because": "--master")")));
}

TEST_F(command_line, says_in_json_what_goes_wrong) {
  const auto wrong = written("wrong.yaml", "name: wrong\nstages:\n  a: {run: [x], after: [b]}\n");
  const auto refused = run({"run", wrong, "--json"});
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_THAT(refused.printed,
              StartsWith("{\n  \"error\": {\n    \"kind\": \"invalid-configuration\",\n    \"message\": \""));
  EXPECT_EQ(run({"run", wrong}).printed, "");
  EXPECT_THAT(run({"jobs", "--json"}).printed, HasSubstr(R"("kind": "unreachable")"));
  EXPECT_THAT(run({"cancel", "x", "--json"}).printed, HasSubstr(R"("message": "'x' is no job)"));
  EXPECT_THAT(run({"profile", "check", wrong, "--json"}).printed, HasSubstr("has no `profiles`"));
  // A job that fails is told in its own document, and in no other.
  const auto failing = run({"run", written("fails.yaml", "name: fails\nstages: {a: {run: ['false']}}\n"), "--json"});
  EXPECT_EQ(failing.code, 1) << failing.output;
  EXPECT_THAT(failing.printed, AllOf(HasSubstr(R"("state": "failed")"), HasSubstr("\n  \"error\": {\n")));
  EXPECT_THAT(failing.printed, Not(HasSubstr("\n}\n{")));
}

TEST_F(command_line, refuses_an_output_that_lies_on_an_input) {
  fs::create_directory(directory() + "/reads");
  const auto only = written("reads/a.txt", "the only copy");
  const auto job = written("over.yaml", "name: over\noutput: .\nstages:\n  reads: {for-each: 'reads/*.txt', run: [cp, "
                                        "/dev/null, '{output}'], outputs: ['{name}']}\n");
  const auto refused = run({"run", job});
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_THAT(refused.output,
              HasSubstr("over.yaml:4: stage reads: its output " + only + " would lie on the input " + only));
  EXPECT_EQ(content_of(only), "the only copy");
}

TEST_F(command_line, says_where_it_went_also_when_nobody_is_there) {
  const auto nobody =
      run({"run", config("reads.yaml"), "--master=127.0.0.1:1", "--conf", "troupe.security.secret-file=" + secret()});
  EXPECT_EQ(nobody.code, 4) << nobody.output;
  EXPECT_THAT(nobody.output, HasSubstr("jobs go to 127.0.0.1:1 (--master)"));
}

TEST_F(command_line, exit_codes_say_what_went_wrong) {
  EXPECT_EQ(run({"version"}).code, 0);
  const auto failing =
      written("fails.yaml", "name: fails\nstages:\n  no: {run: [sh, -c, 'echo because >&2; exit 7']}\n");
  const auto failed = run({"run", "--conf", "troupe.task.max-failures=1", failing});
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.output, AllOf(HasSubstr("stage no"), HasSubstr("exit code 7"), HasSubstr("because")));
  const auto mistyped = written("mistyped.yaml", "name: x\nstages:\n  a: {ruN: [true]}\n");
  const auto usage = run({"run", mistyped});
  EXPECT_EQ(usage.code, 2);
  EXPECT_THAT(usage.output, AllOf(HasSubstr("mistyped.yaml:3"), HasSubstr("ruN"), HasSubstr("run")));
  const auto node = written("node.yaml", "node: {role: driver}\ncaf:\n  scheduler.max-thread: 2\n");
  const auto option = run({"node", "--config-file=" + node});
  EXPECT_EQ(option.code, 2);
  EXPECT_THAT(option.output, AllOf(HasSubstr("node.yaml:3: caf.scheduler.max-thread = 2"),
                                   HasSubstr("did you mean caf.scheduler.max-threads?")));
  const auto alone = written("alone.yaml", "node: {role: executor, driver: '192.0.2.1:1'}\n"
                                           "troupe: {security.insecure: true, executor.cores: 1}\n");
  const auto unreachable = run({"node", "--config-file=" + alone});
  EXPECT_EQ(unreachable.code, 2) << unreachable.output;
  EXPECT_THAT(unreachable.output, HasSubstr("troupe.executor.bind-address is 127.0.0.1, where nobody at 192.0.2.1"));
  EXPECT_EQ(run({"run"}).code, 2);
  EXPECT_EQ(run({"frobnicate"}).code, 2);
  EXPECT_EQ(run({"run", directory() + "/nowhere.yaml"}).code, 2);
  const auto huge =
      written("huge.yaml", "name: huge\nprofiles:\n  big: {executor: {cores: 4096, memory: 1g}, task: {cpus: "
                           "1}}\nstages:\n  a: {profile: big, run: ['true']}\n");
  const auto infeasible = run({"run", huge, "--master=local-cluster[1,2,2g]"});
  EXPECT_EQ(infeasible.code, 3) << infeasible.output;
  EXPECT_THAT(infeasible.output, HasSubstr("4096"));
  const auto narrow =
      written("narrow.yaml", "cluster:\n  hosts: [{name: here, cores: 4, memory: 4g}]\n"
                             "  profiles:\n    cpu: {executor: {cores: 2, memory: 1g}, task: {cpus: 1}}\n"
                             "  executors: [{profile: cpu, count: 3}]\n");
  const auto crowded = run({"cluster", "up", "--config-file=" + narrow});
  EXPECT_EQ(crowded.code, 3) << crowded.output;
  EXPECT_THAT(crowded.output,
              HasSubstr("narrow.yaml:5: cluster.executors: 3 executors of profile cpu need 6 cores, the host has 4"));
  const auto talk = written("talks.yaml", "name: talks\nstages:\n  say: {run: ['true']}\n");
  const auto stillborn =
      run({"run", talk, "--master=local-cluster[1,1,1g]", "--conf", "troupe.executor.bind-address=203.0.113.1",
           "--conf", "troupe.security.insecure=true", "--conf", "troupe.scheduler.infeasible-timeout=500ms"});
  EXPECT_EQ(stillborn.code, 3) << stillborn.output;
  EXPECT_THAT(stillborn.output,
              ContainsRegex("it ended with exit code 1.*: \"troupe: executor: .*203\\.0\\.113\\.1.*\"; see "));
  const auto nobody = run({"jobs", "--master=127.0.0.1:1", "--conf", "troupe.security.secret-file=" + secret()});
  EXPECT_EQ(nobody.code, 4) << nobody.output;
  EXPECT_THAT(nobody.output, HasSubstr("127.0.0.1:1"));
  const auto unknown = run({"jobs", "--master=no-such-host.invalid:1", "--conf", "troupe.security.insecure=true",
                            "--conf", "troupe.security.secret-file=" + secret()});
  EXPECT_EQ(unknown.code, 4) << unknown.output;
  EXPECT_THAT(unknown.output, HasSubstr("the host name cannot be resolved"));
}

TEST_F(command_line, ctrl_c_ends_a_job_and_all_that_it_started) {
  for (const auto* master : {"local[2]", "local-cluster[1,2,2g]"}) {
    auto job = started({"run", naps(), std::string{"--master="} + master});
    EXPECT_TRUE(both_nap()) << job->output();
    job->kill(SIGINT);
    EXPECT_EQ(job->wait(), 130) << job->output();
    EXPECT_THAT(job->output(), HasSubstr("cancelled"));
    fs::remove_all(arrived());
  }
}

TEST_F(command_line, ctrl_z_stops_a_local_job_until_it_is_continued) {
  program_process job{{TROUPE_PROGRAM, "run", naps(), "--master=local[2]"}, true};
  EXPECT_TRUE(both_nap()) << job.output();
  const auto keeper = testing::children_of(job.pid()).at(0).pid;
  const auto worker = testing::children_of(keeper).at(0).pid;
  const auto stopped = [](pid_t pid) { return testing::look_at(pid).state == 'T'; };
  job.kill(SIGTSTP);
  EXPECT_TRUE(testing::wait_until([&] { return stopped(job.pid()) && stopped(worker); }));
  job.kill(SIGCONT);
  EXPECT_TRUE(testing::wait_until([&] { return !stopped(job.pid()) && !stopped(worker); }));
  job.kill(SIGINT);
  EXPECT_EQ(job.wait(), 130) << job.output();
}

TEST_F(command_line, ctrl_c_on_a_shared_cluster_ends_its_own_job_alone) {
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + config("cluster.yaml")}).code, 0);
  const auto nap = [&](const std::string& name) {
    return written(name + ".yaml", "name: " + name + "\nstages:\n  nap: {run: [sh, -c, '>" + directory() + "/" + name +
                                       "; until [ -e " + directory() + "/wake ]; do sleep 0.05; done']}\n");
  };
  auto mine = started({"run", nap("mine")});
  auto theirs = started({"run", nap("theirs")});
  ASSERT_TRUE(testing::wait_until([&] {
    return fs::exists(directory() + "/mine") && fs::exists(directory() + "/theirs");
  })) << mine->output()
      << theirs->output();
  mine->kill(SIGINT);
  EXPECT_EQ(mine->wait(), 130) << mine->output();
  EXPECT_TRUE(testing::wait_until([&] {
    const auto jobs = run({"jobs"}).printed;
    return jobs.find("cancelled") != jobs.npos && jobs.find("running") != jobs.npos;
  }));
  written("wake", "");
  EXPECT_EQ(end_of(*theirs).code, 0) << theirs->output();
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
}

TEST_F(command_line, a_second_cluster_of_one_name_is_told) {
  const auto file = written("cluster.yaml", "cluster:\n  hosts: [{name: here, cores: 1, memory: 1g}]\n");
  const auto first = run({"cluster", "up", "--config-file=" + file});
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_THAT(first.output, Not(HasSubstr("this name as well")));
  const auto second = run({"cluster", "up", "--config-file=" + file});
  ASSERT_EQ(second.code, 0) << second.output;
  const auto address = found_in(first.output, "is up at ([^:]+:[0-9]+)");
  EXPECT_THAT(second.output, AllOf(HasSubstr(" at " + address + " of yours has this name as well"),
                                   HasSubstr("--cluster=" + address + ", or give them names (troupe.app.name)")));
  for (const auto& up : {first, second})
    EXPECT_EQ(run({"cluster", "down", "--cluster=" + found_in(up.output, "is up at ([^:]+:[0-9]+)")}).code, 0);
}

TEST_F(command_line, a_driver_whose_port_is_taken_says_so) {
  const auto file = written("driver.yaml", "node: {role: driver}\ntroupe: {dynamic-allocation.enabled: false}\n");
  const auto first = started({"node", "--config-file=" + file});
  const auto address = awaited(*first, "driver (\\S+) cluster");
  const auto port = address.substr(address.rfind(':') + 1);
  const auto second = run({"node", "--config-file=" + file, "--conf", "troupe.driver.port=" + port});
  EXPECT_EQ(second.code, 2) << second.output;
  EXPECT_THAT(second.output,
              HasSubstr("cannot listen at " + address + ": somebody listens there; choose another port"));
  first->kill(SIGTERM);
  EXPECT_TRUE(first->wait().has_value());
}

TEST_F(command_line, what_a_process_was_told_to_ignore_does_not_end_it) {
  // As below nohup, and in the background of a script.
  const auto deaf = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all{"sh", "-c", "trap '' HUP INT; exec \"$@\"", "sh", TROUPE_PROGRAM};
    all.insert(all.end(), words.begin(), words.end());
    return std::make_unique<program_process>(std::move(all));
  };
  auto driver = deaf({"node", "--config-file=" + config("driver.yaml"), "--conf", "troupe.driver.port=0"});
  const auto address = awaited(*driver, "driver (\\S+) cluster");
  const auto secret_file = awaited(*driver, "secret-file (\\S+)");
  const auto file = written("configs/here.yaml", std::regex_replace(content_of(config("executor.yaml")),
                                                                    std::regex{"127.0.0.1:17077"}, address));
  auto executor = deaf({"node", "--config-file=" + file});
  const auto executor_pid = [&] {
    awaited(*executor, "executor (\\d+) cluster");
    return testing::children_of(testing::children_of(executor->pid()).at(0).pid).at(0).pid;
  }();
  fs::create_directory(arrived());
  const auto job =
      written("waits.yaml", "name: waits\nstages:\n  wait: {tasks: 2, run: [sh, -c, '>" + arrived() +
                                "/{partition}; until [ -e " + directory() + "/wake ]; do sleep 0.05; done']}\n");
  auto there = deaf({"run", job, "--master=" + address, "--conf", "troupe.security.secret-file=" + secret_file});
  EXPECT_TRUE(both_nap()) << there->output();
  for (const int signal : {SIGHUP, SIGINT}) {
    for (const auto* process : {driver.get(), executor.get(), there.get()}) process->kill(signal);
    ::kill(executor_pid, signal);
  }
  fs::remove_all(arrived());
  fs::create_directory(arrived());
  auto here = deaf({"run", job, "--master=local[2]"});
  EXPECT_TRUE(both_nap()) << here->output();
  here->kill(SIGINT);
  written("wake", "");
  EXPECT_EQ(end_of(*there).code, 0) << there->output();
  EXPECT_EQ(end_of(*here).code, 0) << here->output();
  for (const auto* process : {driver.get(), executor.get()}) process->kill(SIGTERM);
  EXPECT_EQ(end_of(*driver).code, 0) << driver->output();
  EXPECT_TRUE(executor->wait().has_value()) << executor->output();
}

TEST_F(command_line, ctrl_c_and_kill_9_end_a_cluster_that_is_coming_up) {
  // Its executor never comes: it is to listen on an address that no machine has.
  const auto file = written("slow.yaml", "cluster:\n  hosts: [{name: here, cores: 2, memory: 2g}]\n"
                                         "  profiles:\n    p: {executor: {cores: 1, memory: 1g}, task: {cpus: 1}}\n"
                                         "  executors: [{profile: p, count: 1}]\n"
                                         "troupe: {executor.bind-address: 192.0.2.1, security.insecure: true, "
                                         "shutdown.grace: 60s}\n");
  const auto executor_was_seen = [&] {
    const auto all = testing::processes_of(directory());
    return std::any_of(all.begin(), all.end(), [](const auto& p) { return testing::is_executor(p.pid); });
  };
  for (const int signal : {SIGINT, SIGTERM}) {
    auto up = started({"cluster", "up", "--foreground", "--json", "--config-file=" + file});
    ASSERT_TRUE(testing::wait_until(executor_was_seen)) << up->output();
    up->kill(signal);
    EXPECT_EQ(up->wait(), 130) << up->output();
    EXPECT_THAT(up->output(), HasSubstr("interrupted: the cluster was not started"));
    EXPECT_THAT(up->printed(), HasSubstr(R"("kind": "cancelled")"));
  }
  // The driver in the background itself.
  {
    auto up = started({"cluster", "up", "--config-file=" + file});
    pid_t driver = 0;
    bool coming = false; // an executor was seen, though each ends at once
    ASSERT_TRUE(testing::wait_until([&] {
      const auto all = testing::processes_of(directory());
      for (const auto& p : all) {
        // What the driver has started itself guards it, or is an executor.
        const bool is_child =
            std::any_of(all.begin(), all.end(), [&](const auto& other) { return other.pid == p.parent; });
        if (testing::is_executor(p.pid))
          coming = true;
        else if (p.command_line.find("cluster up") != std::string::npos && p.pid != up->pid() && !is_child)
          driver = p.pid;
      }
      return coming && driver != 0;
    })) << up->output();
    ::kill(driver, SIGTERM);
    EXPECT_EQ(up->wait(), 130) << up->output();
    EXPECT_THAT(up->output(), HasSubstr("interrupted: the cluster was not started"));
  }
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    auto up = started({"cluster", "up", "--config-file=" + file});
    ASSERT_TRUE(testing::wait_until([&] { return testing::processes_of(directory()).size() > 1; })) << up->output();
    up->kill(signal);
    EXPECT_EQ(up->wait(), signal == SIGKILL ? 128 + SIGKILL : 130) << up->output();
    EXPECT_TRUE(testing::wait_until([&] { return testing::processes_of(directory()).empty(); }));
  }
}

TEST_F(command_line, what_a_command_leaves_behind_ends_with_it_however_well_it_hides) {
  // A session of its own, and nothing in its environment.
  const auto hidden = "env -i setsid /bin/sh -c 'sleep 1000; : " + directory() + "' &";
  const auto job = [&](const std::string& then) {
    return written("hides.yaml", "name: hides\nstages:\n  hide: {run: [sh, -c, \"" + hidden + " " + then + "\"]}\n");
  };
  const auto none_left = [&] {
    return testing::wait_until([&] { return testing::processes_of(directory()).empty(); });
  };
  for (const auto* master : {"local[2]", "local-cluster[1,2,2g]"}) {
    const auto done = run({"run", job("sleep 0.1"), std::string{"--master="} + master});
    EXPECT_EQ(done.code, 0) << done.output;
    EXPECT_TRUE(none_left()) << master;
    const auto killed = run({"run", job("sleep 0.1; kill -9 $$"), std::string{"--master="} + master});
    EXPECT_EQ(killed.code, 1) << killed.output;
    EXPECT_TRUE(none_left()) << master;
    auto interrupted =
        started({"run", job(": >" + directory() + "/runs; sleep 1000"), std::string{"--master="} + master});
    EXPECT_TRUE(testing::wait_until([&] { return fs::exists(directory() + "/runs"); })) << interrupted->output();
    interrupted->kill(SIGINT);
    EXPECT_EQ(interrupted->wait(), 130) << interrupted->output();
    EXPECT_TRUE(none_left()) << master;
    fs::remove(directory() + "/runs");
    auto shot = started({"run", job(": >" + directory() + "/runs; sleep 1000"), std::string{"--master="} + master});
    EXPECT_TRUE(testing::wait_until([&] { return fs::exists(directory() + "/runs"); })) << shot->output();
    shot->kill(SIGKILL);
    EXPECT_TRUE(none_left()) << master << ", after kill -9";
    fs::remove(directory() + "/runs");
  }
}

TEST_F(command_line, what_it_has_not_started_is_left_alone) {
  program_process shell{{"sh", "-c", "sleep 1000 & echo $!; exec \"$1\" run \"$2\" --master='local[2]'", "sh",
                         TROUPE_PROGRAM, config("reads.yaml")}};
  EXPECT_EQ(shell.wait(), 0) << shell.output();
  const auto sleeper = std::stoi(shell.printed());
  EXPECT_TRUE(testing::is_alive(sleeper));
  ::kill(sleeper, SIGKILL);
}

TEST_F(command_line, output_that_cannot_be_written_is_no_success) {
  for (const auto* words : {"config show", "--help"}) {
    program_process full{{"sh", "-c", "exec \"$1\" " + std::string{words} + " >/dev/full", "sh", TROUPE_PROGRAM}};
    const auto end = end_of(full);
    EXPECT_EQ(end.code, 1) << words;
    EXPECT_THAT(end.output, HasSubstr("standard output could not be written"));
  }
}

TEST_F(command_line, a_job_runs_where_the_standard_streams_are_closed) {
  for (const auto* closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"})
    for (const auto* master : {"local[2]", "local-cluster[1,2,2g]"}) {
      program_process shell{{"sh", "-c", "exec \"$1\" run \"$2\" --master=\"$3\" " + std::string{closed}, "sh",
                             TROUPE_PROGRAM, config("reads.yaml"), master}};
      EXPECT_EQ(shell.wait(), 0) << closed << " with " << master << ": " << shell.output();
    }
}

TEST_F(command_line, kill_9_leaves_neither_processes_nor_files) {
  for (const auto* master : {"local[2]", "local-cluster[1,2,2g]"}) {
    fs::create_directory(arrived());
    // With children in the background, one of them in a session of its own.
    const auto job = written("nest.yaml", "name: nest\nstages:\n  nap: {tasks: 2, run: [sh, -c, '>" + arrived() +
                                              "/{partition}; sleep 1000 & setsid sleep 1000 & wait']}\n");
    auto process = started({"run", job, std::string{"--master="} + master});
    EXPECT_TRUE(both_nap()) << process->output();
    process->kill(SIGKILL);
    EXPECT_EQ(end_of(*process).code, 128 + SIGKILL);
    std::vector<testing::seen_process> left;
    EXPECT_TRUE(testing::wait_until([&] { return (left = testing::processes_of(directory())).empty(); }))
        << master << ": " << left.front().text();
    fs::remove_all(arrived());
  }
}

TEST_F(command_line, reads_no_file_of_its_directory_unasked) {
  for (const auto* name : {"caf-application.conf", "caf-application.ini", "troupe.yaml"}) written(name, "}{ garbage");
  program_process here{
      {"sh", "-c", "cd \"$1\" && exec \"$2\" run \"$3\"", "sh", directory(), TROUPE_PROGRAM, config("reads.yaml")}};
  const auto end = end_of(here);
  EXPECT_EQ(end.code, 0) << end.output;
}

TEST_F(command_line, commands_write_to_local_directories_and_not_to_the_run_directory) {
  const auto job = written("where.yaml", "name: where\noutput: out\nstages:\n  look: {run: [sh, -c, 'pwd >\"$0\"', "
                                         "'{output}'], outputs: [place]}\n");
  for (const auto* master : {"local[1]", "local-cluster[1,1,1g]"}) {
    const auto end = run({"run", job, "--master", master, "--conf", "troupe.local.dir=" + directory() + "/disk"});
    ASSERT_EQ(end.code, 0) << end.output;
    EXPECT_TRUE(content_of(directory() + "/out/look/place").starts_with(directory() + "/disk/troupe-"))
        << master << ": " << content_of(directory() + "/out/look/place");
    for (const auto& entry : fs::directory_iterator{directory() + "/disk"}) EXPECT_TRUE(fs::is_empty(entry)) << entry;
  }
}

/// A machine whose disks cannot be written to, in a namespace of its own.
TEST_F(command_line, a_machine_without_a_disk_is_warned_of_once) {
  if (program_process{{"unshare", "-m", "true"}}.wait() != 0) GTEST_SKIP() << "this user may not mount anything";
  const auto job = written("says.yaml", "name: says\nstages: {a: {tasks: 2, run: [echo, something]}}\n");
  const auto hosts = written("one.yaml", "cluster:\n  hosts: [{name: here, cores: 1, memory: 1g}]\n");
  const auto without_disk = [&](const std::string& command) {
    program_process process{{"unshare", "-m", "--propagation", "private", "sh", "-c",
                             "mount -t tmpfs -o mode=700 tmpfs \"$0\" && mount -o bind,ro /var/tmp /var/tmp && exec " +
                                 std::string{TROUPE_PROGRAM} + " " + command,
                             directory() + "/memory"}};
    return end_of(process);
  };
  fs::create_directory(directory() + "/memory");
  const auto warning = std::regex{"warning: no disk was found, [^\n]*\\(troupe.local.dir\\)"};
  for (const auto& command : {"run " + job + " --master=local[1]", "run " + job + " --master=local-cluster[1,1,1g]",
                              "cluster up --config-file=" + hosts}) {
    setenv("XDG_RUNTIME_DIR", (directory() + "/memory").c_str(), 1);
    const auto end = without_disk(command);
    setenv("XDG_RUNTIME_DIR", directory().c_str(), 1);
    EXPECT_EQ(end.code, 0) << end.output;
    const std::sregex_iterator found{end.output.begin(), end.output.end(), warning};
    EXPECT_EQ(std::distance(found, std::sregex_iterator{}), 1) << command << ":\n" << end.output;
  }
  for (const auto& process : testing::processes_of(directory())) ::kill(process.pid, SIGKILL); // the cluster
}

TEST_F(command_line, a_cluster_takes_jobs_from_other_processes_until_it_is_taken_down) {
  const auto up = run({"cluster", "up", "--config-file=" + config("cluster.yaml"), "--conf",
                       "troupe.local.dir=" + directory() + "/disk"});
  ASSERT_EQ(up.code, 0) << up.output;
  EXPECT_THAT(up.printed, HasSubstr("2 executors"));
  // Nothing that stays keeps the folder busy in which the command was given.
  int executors = 0;
  for (const auto& process : testing::processes_of(directory())) {
    if (!testing::is_executor(process.pid)) continue;
    ++executors;
    EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(process.pid) + "/cwd"), "/") << process.text();
  }
  EXPECT_GE(executors, 2);
  EXPECT_THAT(run({"cluster", "status", "--json"}).printed, HasSubstr(R"("native": false)")) << "it has no functions";
  EXPECT_THAT(run({"cluster", "status"}).printed, AllOf(ContainsRegex("left.* 2 "), ContainsRegex("right.*gpu=0")));

  const auto gpu = run({"run", config("gpu.yaml")});
  EXPECT_EQ(gpu.code, 0) << gpu.output;
  EXPECT_THAT(gpu.output, ContainsRegex("jobs go to 127.0.0.1:[0-9]+ .cluster local-cluster, the one that runs in "));
  EXPECT_THAT(gpu.output, HasSubstr("gpu 0.5"));

  // Cancelled by another process than the one that waits for it.
  auto waiting = started({"run", naps()});
  EXPECT_TRUE(both_nap()) << waiting->output();
  EXPECT_THAT(run({"jobs"}).printed, AllOf(ContainsRegex("1 +succeeded.*gpu"), ContainsRegex("2 +running.*naps")));
  const auto cancelled = run({"cancel", "2"});
  EXPECT_EQ(cancelled.code, 0) << cancelled.output;
  const auto end = end_of(*waiting);
  EXPECT_EQ(end.code, 1) << end.output;
  EXPECT_THAT(end.output, HasSubstr("troupe cancel"));
  EXPECT_THAT(run({"cancel", "2"}).printed, HasSubstr("ended already"));
  EXPECT_EQ(run({"cancel", "99"}).code, 1);

  const auto talk =
      written("talks.yaml", "name: talks\nstages:\n  say: {run: [sh, -c, 'echo heard; echo seen >&2']}\n");
  EXPECT_EQ(run({"run", talk}).code, 0);
  EXPECT_THAT(run({"logs", "3"}).printed,
              AllOf(HasSubstr("== say 0.0.0 stdout\nheard\n"), HasSubstr("== say 0.0.0 stderr\nseen\n")));
  EXPECT_THAT(run({"logs", "3", "--stderr"}).printed, AllOf(Not(HasSubstr("heard")), HasSubstr("seen")));
  EXPECT_THAT(run({"logs", "--executor", "1"}).printed, HasSubstr("admitted"));
  EXPECT_THAT(run({"jobs", "--json"}).printed, HasSubstr(R"("name": "talks")"));

  const auto down = run({"cluster", "down"});
  EXPECT_EQ(down.code, 0) << down.output;
  EXPECT_EQ(run({"cluster", "status"}).code, 4);
}

TEST_F(command_line, bad_input_is_refused_by_name_while_other_jobs_run) {
  const auto hosts = written("hosts.yaml", "cluster:\n  hosts: [{name: here, cores: 4, memory: 4g}]\n");
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + hosts}).code, 0);
  fs::create_directory(arrived());
  const auto until_told =
      written("waits.yaml", "name: waits\nstages:\n  wait: {tasks: 2, run: [sh, -c, '>" + arrived() +
                                "/{partition}; until [ -e " + arrived() + "/go ]; do sleep 0.02; done']}\n");
  auto waiting = started({"run", until_told});
  EXPECT_TRUE(both_nap()) << waiting->output();

  const auto refused = [&](const std::string& profile, int code, const std::string& words) {
    const auto job =
        written("bad.yaml", "name: bad\nprofiles:\n  p: " + profile + "\nstages:\n  a: {profile: p, run: ['true']}\n");
    const auto end = run({"run", job});
    EXPECT_EQ(end.code, code) << end.output;
    EXPECT_THAT(end.output, HasSubstr(words));
  };
  refused("{executor: {cores: -1}}", 2, "bad.yaml:3: profile p: executor.cores = -1: must be");
  refused("{executor: {memroy: 1g}}", 2, "profile p: executor has no field `memroy`; did you mean memory?");
  refused("{executor: {cores: 9000000}}", 3, "no host has 9000000 cores: the largest of 1 host has 4");
  refused("{executor: {resource: {memroy: {amount: 1}}}}", 3,
          "no host has memroy 1: the largest of 1 host has 0; did "
          "you mean memory?");

  const auto address = found_in(run({"cluster", "status", "--json"}).printed, R"re("address": "([^"]+)")re");
  const auto turned_away = [&](const std::string& text, const std::string& limit, int code, const std::string& words) {
    const auto script = written("find", "#!/bin/sh\n" + text + "\n");
    fs::permissions(script, fs::perms::owner_all);
    const auto node = written("node.yaml", "node: {role: executor, driver: '" + address +
                                               "'}\ntroupe:\n  resources.discovery-timeout: " + limit +
                                               "\n  executor: "
                                               "{resource: {fpga: {amount: 2, discovery-script: find}}}\n");
    const auto end = run({"node", "--config-file=" + node});
    EXPECT_EQ(end.code, code) << end.output;
    EXPECT_THAT(end.output, HasSubstr(words));
  };
  turned_away(R"(echo '{"name": "fpga", "addresses": ["f0"]}')", "60s", 3,
              "resource fpga: 2 addresses are needed and there are only 1 (f0, from ");
  turned_away("sleep 1000", "100ms", 2, "had not ended after 100 ms (troupe.resources.discovery-timeout)");
  turned_away("cat /dev/zero", "60s", 2, "prints more than 1048576 bytes");

  EXPECT_THAT(run({"cluster", "status"}).printed, HasSubstr("2 executors, 1 unfinished job"));
  written("arrived/go", "");
  const auto end = end_of(*waiting);
  EXPECT_EQ(end.code, 0) << end.output;
  EXPECT_THAT(end.output, ContainsRegex("wait +2/2 +0 ")) << "none has failed";
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
}

TEST_F(command_line, groups_and_stages_are_cancelled_by_name_and_number) {
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + config("cluster.yaml")}).code, 0);
  // Of one core each, so that both run at once.
  const auto nap = [&](const std::string& name, const std::string& head) {
    return written(name + ".yaml", "name: " + name + "\n" + head +
                                       "profiles: {small: {executor: {cores: 1, memory: 256m}, task: {cpus: 1}}}\n"
                                       "stages:\n  first: {profile: small, run: [\"true\"]}\n"
                                       "  nap: {profile: small, after: {first: all}, run: [sh, -c, '>" +
                                       directory() + "/" + name + "; exec sleep 1000']}\n");
  };
  auto grouped = started({"run", nap("grouped", "group: nightly\n")});
  ASSERT_TRUE(testing::wait_until([&] { return fs::exists(directory() + "/grouped"); })) << grouped->output();
  auto alone = started({"run", nap("alone", "")});
  ASSERT_TRUE(testing::wait_until([&] { return fs::exists(directory() + "/alone"); })) << alone->output();
  EXPECT_THAT(run({"jobs"}).printed,
              AllOf(ContainsRegex("1 +running.* grouped +nightly\n"), ContainsRegex(" alone\n")));
  EXPECT_EQ(found_in(run({"jobs", "--json"}).printed, R"re("group": "([^"]+)")re"), "nightly");

  const auto unknown = run({"cancel", "--group", "weekly"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.output, HasSubstr("there is no job of group 'weekly'"));
  const auto group = run({"cancel", "--group", "nightly"});
  EXPECT_EQ(group.code, 0) << group.output;
  EXPECT_EQ(group.printed, "job 1 is cancelled\n");
  EXPECT_EQ(end_of(*grouped).code, 1);
  EXPECT_THAT(run({"cancel", "--group", "nightly"}).printed, HasSubstr("had ended already"));

  EXPECT_THAT(run({"cancel", "2", "--stage", "0"}).printed, HasSubstr("stage 0 (first) was complete already"));
  EXPECT_THAT(run({"cancel", "2", "--stage", "2"}).output, HasSubstr("job 2 has no stage 2"));
  EXPECT_EQ(run({"cancel", "2", "--stage", "first"}).code, 2);
  EXPECT_THAT(run({"jobs"}).printed, ContainsRegex("2 +running")) << "none of these has ended it";
  const auto stage = run({"cancel", "2", "--stage", "1"});
  EXPECT_EQ(stage.printed, "stage 1 (nap) is cancelled, so job 2 has failed\n") << stage.output;
  const auto end = end_of(*alone);
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.output, HasSubstr("stage 1 (nap) was cancelled"));
  EXPECT_THAT(run({"jobs"}).printed, ContainsRegex("2 +failed"));
  EXPECT_THAT(run({"cancel", "2", "--stage", "1"}).printed, HasSubstr("ended already: failed"));

  EXPECT_EQ(run({"cancel"}).code, 2);
  EXPECT_EQ(run({"cancel", "1", "--group", "nightly"}).code, 2);
  EXPECT_EQ(run({"cancel", "--group", "nightly", "--stage", "1"}).code, 2);
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
}

TEST_F(command_line, a_driver_that_is_stopped_is_waited_for_until_the_request_time_out_is_over) {
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + config("cluster.yaml")}).code, 0);
  const auto status = run({"cluster", "status", "--json"}).printed;
  const auto driver = std::stoi(found_in(status, R"("pid": (\d+),\s+"secret-file")"));
  const auto node = executor_file(status);
  // CAF gives a handshake up at its next heartbeat: here there are several before the driver goes on.
  const std::string often = "troupe.executor.heartbeat-interval=50ms";
  // Longer than the driver is stopped here, however long that takes.
  const std::string patient = "troupe.driver.request-timeout=1h";
  ASSERT_EQ(::kill(driver, SIGSTOP), 0);
  const auto late = run({"jobs", "--conf", often, "--conf", "troupe.driver.request-timeout=300ms"});
  EXPECT_EQ(late.code, 4) << late.output;
  EXPECT_THAT(late.output, HasSubstr("no answer came within 300ms (troupe.driver.request-timeout)"));
  auto called_off = started({"node", "--config-file=" + node, "--conf", often, "--conf", patient});
  auto executor = started({"node", "--config-file=" + node, "--conf", often, "--conf", patient});
  auto jobs = started({"jobs", "--conf", often, "--conf", patient});
  EXPECT_FALSE(jobs->wait(std::chrono::milliseconds{500})) << jobs->output(); // some heartbeats long
  const auto logs = [&] {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator{directory() + "/troupe"})
      count += fs::exists(entry.path() / "executor.log");
    return count;
  };
  EXPECT_TRUE(testing::wait_until([&] { return logs() == 2; }));
  EXPECT_FALSE(executor->wait(std::chrono::milliseconds{0})) << executor->output();
  called_off->kill(SIGINT);
  EXPECT_EQ(end_of(*called_off).code, 0) << called_off->output();
  ASSERT_EQ(::kill(driver, SIGCONT), 0);
  EXPECT_EQ(end_of(*jobs).code, 0) << jobs->output();
  EXPECT_THAT(jobs->printed(), HasSubstr("no jobs"));
  awaited(*executor, "executor (\\d+) cluster");
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
  EXPECT_TRUE(executor->wait().has_value()) << executor->output();
}

TEST_F(command_line, the_log_of_an_executor_that_has_ended_is_printed_while_its_cluster_runs) {
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + config("cluster.yaml")}).code, 0);
  const auto status = [] { return run({"cluster", "status", "--json"}).printed; };
  const auto first = status();
  // An executor of another origin takes a number, so that later ones are called otherwise than their files.
  const auto node = executor_file(first);
  auto guest = started({"node", "--config-file=" + node});
  EXPECT_EQ(awaited(*guest, "executor (\\d+) cluster"), "3");
  EXPECT_THAT(status(), ContainsRegex(R"("scratch": \{\s*"amount": 2147483648)")) << "a size is not looked for";
  const auto run_directory = found_in(first, R"re("directory": "([^"]+)")re");
  const auto kill_executor = [&](const std::string& number) {
    ASSERT_TRUE(testing::wait_until([&] { return fs::exists(run_directory + "/log-of-executor-" + number); }));
    const auto listed = "\"executor\": " + number + ",";
    ASSERT_EQ(::kill(std::stoi(found_in(status(), listed + R"([^}]*?"pid": (\d+))")), SIGKILL), 0);
    ASSERT_TRUE(testing::wait_until([&] { return status().find(listed) == std::string::npos; }));
  };
  for (const std::string number : {"1", "4"}) {
    kill_executor(number);
    const auto log = run({"logs", "--executor", number});
    EXPECT_EQ(log.code, 0) << log.output;
    EXPECT_THAT(log.printed, HasSubstr("admitted executor=" + number + " "));
    EXPECT_EQ(run({"logs", "--executor", number, "--stderr"}).code, 0);
  }
  EXPECT_THAT(run({"logs", "--executor", "4", "--json"}).printed, HasSubstr("/executor-3.log"));

  guest->kill(SIGINT);
  EXPECT_EQ(end_of(*guest).code, 0) << guest->output();
  for (const auto* none : {"3", "99"}) {
    const auto log = run({"logs", "--executor", none});
    EXPECT_EQ(log.code, 1) << log.output;
    EXPECT_THAT(log.output, AllOf(HasSubstr("no executor"), HasSubstr("no log"), HasSubstr("troupe cluster status")));
  }
  for (const auto* wrong : {"../secret", "1/../../secret", "/etc/passwd", "-1", "1.", " 1"}) {
    const auto log = run({"logs", "--executor", wrong});
    EXPECT_EQ(log.code, 2) << log.output;
    EXPECT_EQ(log.printed, "");
  }
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
}

TEST_F(command_line, a_cluster_on_all_interfaces_is_reached_by_its_owner_without_further_settings) {
  const auto up = run({"cluster", "up", "--config-file=" + config("cluster.yaml"), "--conf",
                       "troupe.driver.bind-address=0.0.0.0", "--conf", "troupe.security.insecure=true"});
  ASSERT_EQ(up.code, 0) << up.output;
  const auto port = found_in(up.printed, R"(0\.0\.0\.0:(\d+))");
  for (const std::string place : {"local-cluster", "--master=127.0.0.1:", "--master=0.0.0.0:"}) {
    const auto status = run({"cluster", "status", place + (place.back() == ':' ? port : "")});
    EXPECT_EQ(status.code, 0) << place << ": " << status.output;
    EXPECT_THAT(status.printed, HasSubstr("cluster local-cluster at 127.0.0.1:" + port)) << place;
  }
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
}

TEST_F(command_line, one_of_several_clusters_is_named_in_the_same_way_everywhere) {
  for (const std::string name : {"one", "two"}) {
    const auto up =
        run({"cluster", "up", "--config-file=" + config("cluster.yaml"), "--conf", "troupe.app.name=" + name});
    ASSERT_EQ(up.code, 0) << up.output;
  }
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"jobs"}, {"cluster", "status"}, {"cluster", "down"}}) {
    const auto unclear = run(words);
    EXPECT_EQ(unclear.code, 2);
    EXPECT_THAT(unclear.output, AllOf(HasSubstr("--cluster=NAME"), HasSubstr("one at "), HasSubstr("two at ")));
  }
  EXPECT_EQ(run({"jobs", "--cluster=one"}).code, 0);
  EXPECT_THAT(run({"cluster", "status", "--cluster=one"}).printed, HasSubstr("cluster one at "));
  EXPECT_THAT(run({"cluster", "status", "two"}).printed, HasSubstr("cluster two at "));
  EXPECT_EQ(run({"cluster", "down", "one", "--cluster=two"}).code, 2);
  EXPECT_THAT(run({"cluster", "down", "--cluster=one"}).printed, HasSubstr("cluster one is down"));
  EXPECT_THAT(run({"cluster", "down", "two"}).printed, HasSubstr("cluster two is down"));
}

TEST_F(command_line, a_cluster_with_fixed_executors_gives_their_room_to_larger_ones_unless_it_may_not) {
  const auto file = [&](const std::string& elastic) {
    return written("cluster-" + elastic + ".yaml",
                   "cluster:\n  hosts: [{name: here, cores: 2, memory: 2g}]\n"
                   "  profiles:\n    p: {executor: {cores: 1, memory: 1g}, task: {cpus: 1}}\n"
                   "  executors: [{profile: p, count: 1}]\n  elastic: " +
                       elastic + "\n");
  };
  const auto small = written("small.yaml", "name: small\nstages:\n  a: {run: ['true']}\n");
  const auto large =
      written("large.yaml", "name: large\nprofiles:\n  two: {executor: {cores: 2, memory: 1g}, task: {cpus: 1}}\n"
                            "stages:\n  a: {profile: two, run: ['true']}\n");
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + file("true")}).code, 0);
  const auto served = run({"run", large});
  EXPECT_EQ(served.code, 0) << served.output;
  EXPECT_EQ(run({"cluster", "down"}).code, 0);

  ASSERT_EQ(run({"cluster", "up", "--config-file=" + file("false")}).code, 0);
  const auto refused = run({"run", large});
  EXPECT_EQ(refused.code, 3) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("cores 2"), HasSubstr("cluster.elastic: false")));
  EXPECT_EQ(run({"run", small}).code, 0);
  EXPECT_THAT(run({"cluster", "status"}).printed, HasSubstr("1 executor,"));
  EXPECT_EQ(run({"cluster", "down"}).code, 0);
}

TEST_F(command_line, nodes_are_launched_from_files_in_shells_of_their_own) {
  auto driver = started({"node", "--config-file=" + config("driver.yaml"), "--conf", "troupe.driver.port=0"});
  const auto address = awaited(*driver, "driver (\\S+) cluster");
  const auto secret_file = awaited(*driver, "secret-file (\\S+)");
  const auto with_address = [&](const std::string& name) {
    return written("configs/here-" + name,
                   std::regex_replace(content_of(config(name)), std::regex{"127.0.0.1:17077"}, address));
  };
  auto plain = started({"node", "--config-file=" + with_address("executor.yaml"), "--json"});
  auto with_gpu = started({"node", "--config-file=" + with_address("executor-gpu.yaml")});
  awaited(*plain, R"(\{"executor":\d+,"cluster":"[^"]+"\}\n)");
  awaited(*with_gpu, "executor (\\d+) cluster");

  const std::vector<std::string> there{"--master=" + address, "--conf", "troupe.security.secret-file=" + secret_file};
  const auto run_there = [&](std::vector<std::string> words) {
    words.insert(words.end(), there.begin(), there.end());
    return run(std::move(words));
  };
  const auto reads = run_there({"run", config("reads.yaml")});
  EXPECT_EQ(reads.code, 0) << reads.output;
  const auto gpu = run_there({"run", config("gpu.yaml")});
  EXPECT_EQ(gpu.code, 0) << gpu.output;

  // A stranger with a secret of its own is refused on both sides.
  const auto stranger = run({"jobs", "--master=" + address, "--conf", "troupe.security.secret-file=" + secret()});
  EXPECT_EQ(stranger.code, 4) << stranger.output;
  EXPECT_THAT(stranger.output, HasSubstr("secret"));
  EXPECT_THAT(driver->output(), HasSubstr("secret"));

  // One executor dies, the other one goes on; the driver ends in order, and the executor with it.
  plain->kill(SIGKILL);
  plain->wait();
  const auto after = run_there({"run", config("gpu.yaml")});
  EXPECT_EQ(after.code, 0) << after.output;
  // GPUs that are made up, as many as it is to have.
  auto made_up = started({"node", "--config-file=" + with_address("executor.yaml"), "--conf",
                          "troupe.executor.resource.gpu.amount=2", "--conf", "troupe.gpu.discovery=fake"});
  awaited(*made_up, "executor (\\d+) cluster");
  EXPECT_THAT(run_there({"cluster", "status"}).printed, ContainsRegex("gpu=fake-0,fake-1"));
  driver->kill(SIGTERM);
  EXPECT_EQ(end_of(*driver).code, 0) << driver->output();
  EXPECT_TRUE(with_gpu->wait().has_value()) << with_gpu->output();
  EXPECT_TRUE(made_up->wait().has_value()) << made_up->output();
}

TEST_F(command_line, an_executor_on_which_commands_fail_gets_no_more_of_their_profile_for_a_while) {
  auto driver = started({"node", "--config-file=" + config("driver.yaml"), "--conf", "troupe.driver.port=0", "--conf",
                         "troupe.exclude-on-failure.enabled=true", "--conf",
                         "troupe.exclude-on-failure.unschedulable-timeout=300ms"});
  const auto address = awaited(*driver, "driver (\\S+) cluster");
  const std::vector<std::string> there{"--master=" + address, "--conf",
                                       "troupe.security.secret-file=" + awaited(*driver, "secret-file (\\S+)")};
  const auto run_there = [&](std::vector<std::string> words) {
    words.insert(words.end(), there.begin(), there.end());
    return run(std::move(words));
  };
  const auto file = written("configs/here.yaml", std::regex_replace(content_of(config("executor.yaml")),
                                                                    std::regex{"127.0.0.1:17077"}, address));
  const auto job =
      written("job.yaml", "name: job\nstages:\n  work: {tasks: 8, run: [sh, -c, 'test -z \"$BROKEN\" || exit "
                          "3']}\n");
  const std::vector<std::string> patient{"run", job, "--json", "--conf", "troupe.task.max-failures=99"};

  program_process broken{{"env", "BROKEN=yes", TROUPE_PROGRAM, "node", "--config-file=" + file}};
  awaited(broken, "executor (1) cluster");
  const auto alone = run_there(patient);
  EXPECT_EQ(alone.code, 3) << alone.output;
  EXPECT_THAT(alone.output, AllOf(HasSubstr("stage 0 (work): the one executor that fits is excluded after failures "
                                            "(troupe.exclude-on-failure.enabled): executor 1 ("),
                                  HasSubstr("; the last failure: "), HasSubstr("exit code 3"),
                                  HasSubstr("(waited 300ms: troupe.exclude-on-failure.unschedulable-timeout)")));

  auto sound = started({"node", "--config-file=" + file});
  awaited(*sound, "executor (2) cluster");
  const auto first = run_there(patient);
  EXPECT_EQ(first.code, 0) << first.output;
  EXPECT_THAT(first.printed, Not(HasSubstr("\"failed-attempts\": 0,")))
      << "the failures of a job that failed are forgotten";
  EXPECT_THAT(run_there({"cluster", "status"}).printed, HasSubstr("excluded from 1 profile"));
  const auto second = run_there(patient);
  EXPECT_EQ(second.code, 0) << second.output;
  EXPECT_THAT(second.printed, HasSubstr("\"failed-attempts\": 0,")) << second.printed;
  driver->kill(SIGTERM);
  EXPECT_EQ(end_of(*driver).code, 0) << driver->output();
  EXPECT_TRUE(broken.wait().has_value()) << broken.output();
  EXPECT_TRUE(sound->wait().has_value()) << sound->output();
}

TEST_F(command_line, an_executor_that_is_killed_takes_along_what_its_commands_have_started) {
  auto driver = started({"node", "--config-file=" + config("driver.yaml"), "--conf", "troupe.driver.port=0"});
  const auto address = awaited(*driver, "driver (\\S+) cluster");
  const auto secret_file = awaited(*driver, "secret-file (\\S+)");
  const auto file = written("configs/here.yaml", std::regex_replace(content_of(config("executor.yaml")),
                                                                    std::regex{"127.0.0.1:17077"}, address));
  const auto job = written("nest.yaml", "name: nest\nstages:\n  nap: {run: [sh, -c, 'setsid sleep 1000 & sleep 1000 & "
                                        "echo $! >" +
                                            directory() + "/sleeper; wait']}\n");
  const auto dies_with = [&](program_process& running, const std::function<void(pid_t)>& kill) {
    ASSERT_TRUE(testing::wait_until([&] { return content_of(directory() + "/sleeper").ends_with('\n'); }))
        << running.output();
    const auto sleeper = std::stoi(content_of(directory() + "/sleeper"));
    kill(sleeper);
    // What is killed before its exec is a shell yet, and what is ending has no command line.
    EXPECT_TRUE(testing::wait_until([&] {
      const auto all = testing::processes_of(directory());
      return !testing::is_alive(sleeper) && std::none_of(all.begin(), all.end(), [](const auto& p) {
        return p.command_line.starts_with("s"); // sh, setsid, sleep
      });
    }));
    running.kill(SIGKILL);
    running.wait();
    fs::remove(directory() + "/sleeper");
  };
  const auto kill_keeper = [](pid_t sleeper) {
    const auto shell = testing::look_at(sleeper).parent;
    ::kill(testing::look_at(testing::look_at(shell).parent).parent, SIGKILL);
  };
  for (const bool front : {true, false}) {
    auto executor = started({"node", "--config-file=" + file, "--conf", "troupe.local.dir=" + directory() + "/disk"});
    awaited(*executor, "executor (\\d+) cluster");
    auto running = started({"run", job, "--master=" + address, "--conf", "troupe.security.secret-file=" + secret_file});
    dies_with(*running, [&](pid_t sleeper) {
      if (front)
        executor->kill(SIGKILL); // the process that the shell knows
      else
        kill_keeper(sleeper);
    });
    EXPECT_EQ(executor->wait(), 128 + SIGKILL);
  }
  auto elsewhere = started({"run", job, "--master=local-cluster[1,2,2g]", "--conf", "troupe.task.max-failures=1"});
  dies_with(*elsewhere, kill_keeper);
  auto here = started({"run", job, "--master=local[1]"});
  dies_with(*here, kill_keeper);
  driver->kill(SIGTERM);
  EXPECT_EQ(end_of(*driver).code, 0) << driver->output();
}

TEST_F(command_line, a_cpp_program_is_an_executor_of_its_own_stages_where_a_file_says_so) {
  auto driver = started({"node", "--config-file=" + config("driver.yaml"), "--conf", "troupe.driver.port=0", "--conf",
                         "troupe.scheduler.infeasible-timeout=300ms"});
  const auto address = awaited(*driver, "driver (\\S+) cluster");
  const auto file = written("configs/here.yaml", std::regex_replace(content_of(config("executor.yaml")),
                                                                    std::regex{"127.0.0.1:17077"}, address));
  const auto text = written("text", "to be or not to be\n");
  const std::vector<std::string> words{TROUPE_WORD_COUNT, "--master=" + address, "--conf",
                                       "troupe.security.secret-file=" + directory() + "/configs/local/secret", text};
  // One that has none of the program's functions, however much room it has, and one that has them.
  auto plain = started({"node", "--config-file=" + file});
  awaited(*plain, "executor (\\d+) cluster");
  program_process too_early{words};
  const auto refused = end_of(too_early);
  EXPECT_EQ(refused.code, 3) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("runs commands only"), HasSubstr("start one from the same executable")));
  program_process own{{TROUPE_WORD_COUNT, "--config-file=" + file}};
  awaited(own, "executor (\\d+) cluster");
  program_process job{words};
  const auto end = end_of(job);
  EXPECT_EQ(end.code, 0) << end.output << driver->output() << own.output();
  EXPECT_THAT(end.printed, AllOf(HasSubstr("2\tbe\n"), HasSubstr("1\tnot\n")));
  driver->kill(SIGTERM);
  EXPECT_EQ(end_of(*driver).code, 0) << driver->output();
  EXPECT_TRUE(own.wait().has_value()) << own.output();
  EXPECT_TRUE(plain->wait().has_value()) << plain->output();
}

TEST_F(command_line, limits_that_an_executor_of_a_node_does_not_enforce_are_named) {
  const auto file = written("node.yaml", "node: {role: executor, driver: '127.0.0.1:1'}\n");
  const std::vector<std::string> words{"node", "--config-file=" + file};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return run(more).output;
  };
  EXPECT_THAT(with({}), Not(HasSubstr("has no effect")));
  EXPECT_THAT(with({"--conf", "troupe.task.max-processes=20"}),
              AllOf(HasSubstr("troupe.task.max-processes = 20 has no effect on an executor of `troupe node`; let "
                              "`troupe cluster up` start"),
                    Not(HasSubstr("limits.cpu"))));
  EXPECT_THAT(with({"--conf", "troupe.executor.limits.cpu=affinity"}),
              AllOf(HasSubstr("troupe.executor.limits.cpu = affinity has no effect"), HasSubstr("CPUQuota"),
                    Not(HasSubstr("max-processes"))));
}

TEST_F(command_line, a_command_that_takes_more_memory_than_its_task_may_fails) {
  const auto greedy = [&](const std::string& profile) {
    return written("greedy.yaml", "name: greedy\nprofiles:\n  small: {task: {memory: 48m}}\nstages:\n"
                                  "  eat: {" +
                                      profile +
                                      "run: [sh, -c, 'echo $TROUPE_MEMORY >&2; cat /dev/zero | tail -c "
                                      "100000m']}\n");
  };
  for (const std::string master : {"local[2]", "local-cluster[1,2,2g]"}) {
    const auto failed =
        run({"run", greedy("profile: small, "), "--master=" + master, "--conf", "troupe.task.max-failures=1"});
    EXPECT_EQ(failed.code, 1) << failed.output;
    EXPECT_THAT(failed.output, AllOf(ContainsRegex("took more memory than its task may: [0-9]+[mg] of 48m"),
                                     HasSubstr("\n50331648\n")));
  }
  const auto by_default =
      run({"run", greedy(""), "--conf", "troupe.task.max-failures=1", "--conf", "troupe.task.memory=32m"});
  EXPECT_EQ(by_default.code, 1) << by_default.output;
  EXPECT_THAT(by_default.output, ContainsRegex("took more memory than its task may: [0-9]+[mg] of 32m"));
}

TEST_F(command_line, a_command_that_ran_out_of_memory_is_tried_again_with_more) {
  const auto hungry = [&](const std::string& profile) {
    return written("hungry.yaml", "name: hungry\nprofiles:\n  growing: {task: {memory: 24m}, memory-ceiling: 100m}\n"
                                  "stages:\n  eat: {" +
                                      profile +
                                      "run: [sh, -c, 'head -c 60m /dev/zero | tail -c 60m | wc -c >$1; "
                                      "echo attempt {attempt} had $TROUPE_MEMORY >>$1', sh, '{output}'], "
                                      "outputs: [counted]}\n");
  };
  for (const std::string master : {"local[2]", "local-cluster[1,2,2g]"}) {
    const auto done =
        run({"run", hungry("profile: growing, "), "--master=" + master, "--conf", "troupe.task.max-failures=1"});
    EXPECT_EQ(done.code, 0) << done.output;
    EXPECT_EQ(content_of(directory() + "/out/eat/counted"), "62914560\nattempt 2 had 100663296\n") << "24m, 48m, 96m";
  }
  const auto with = [&](const std::string& ceiling) {
    return run({"run", hungry(""), "--conf", "troupe.task.max-failures=1", "--conf", "troupe.task.memory=24m", "--conf",
                "troupe.task.memory-ceiling=" + ceiling});
  };
  EXPECT_EQ(with("96m").code, 0);
  const auto too_low = with("40m");
  EXPECT_EQ(too_low.code, 1) << too_low.output;
  EXPECT_THAT(too_low.output, ContainsRegex("attempt 1 .*took more memory than its task may: [0-9]+[mg] of 40m"));
  EXPECT_THAT(run({"profile", "check", written("p.yaml", "profiles: {p: {task: {memory: 24m}, memory-ceiling: 100m}}")})
                  .printed,
              HasSubstr("a task that runs out of memory is tried again with 48m, then 96m, then 100m\n"));
}

TEST_F(command_line, a_task_that_takes_long_gets_a_second_attempt) {
  const auto begun = [&](const std::string& folder, const std::vector<std::string>& conf) {
    fs::create_directories(directory() + "/" + folder);
    const auto file =
        written(folder + "/straggler.yaml", "name: straggler\nstages:\n  s: {tasks: 4, run: [sh, -c, "
                                            "'if [ {partition}{attempt} = 30 ]; then sleep 1000; fi; "
                                            "echo {attempt} >$1', sh, '{output}'], outputs: ['{partition}']}\n");
    std::vector<std::string> words{"run", file, "--master=local-cluster[2,1,1g]"};
    for (const auto& one : conf) words.insert(words.end(), {"--conf", one});
    return started(std::move(words));
  };
  const auto with = [&](const std::vector<std::string>& conf) { return end_of(*begun("here", conf)); };
  const std::string on = "troupe.speculation.enabled=true";
  const std::string soon = "troupe.speculation.min-task-runtime=10ms";
  const auto done = with({on, soon, "troupe.speculation.quantile=0.75"});
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_EQ(content_of(directory() + "/here/out/s/3"), "1\n") << "the number of the attempt";
  // Each of these keeps the second attempt away, for a stage time-out in which the other tasks are done and
  // it would be, too: a second and a half, and longer where the machine needs more for them.
  std::map<std::string, ended> ends{{"troupe.speculation.enabled=false", {}},
                                    {"troupe.speculation.quantile=1", {}},
                                    {"troupe.speculation.multiplier=1000000", {}},
                                    {"troupe.speculation.min-task-runtime=1h", {}}};
  const std::string all_but_one = "3 of 4 tasks are done";
  auto limit = std::chrono::milliseconds{1500};
  for (bool again = true; again && limit < testing::patience(); limit *= 2) {
    std::map<std::string, std::unique_ptr<program_process>> running;
    for (const auto& [key, end] : ends)
      if (end.output.find(all_but_one) == std::string::npos)
        running[key] = begun(key, {on, soon, "troupe.speculation.quantile=0.75",
                                   "troupe.stage.timeout=" + std::to_string(limit.count()) + "ms", key});
    again = false;
    for (const auto& [key, process] : running) {
      ends[key] = end_of(*process);
      again = again || (ends[key].code == 1 && ends[key].output.find(all_but_one) == std::string::npos);
    }
  }
  for (const auto& [key, end] : ends) {
    EXPECT_EQ(end.code, 1) << key << end.output;
    EXPECT_THAT(end.output, AllOf(HasSubstr("did not end within its time-out"), HasSubstr(all_but_one))) << key;
  }
  EXPECT_THAT(with({"troupe.speculation.quantile=1.5"}).output,
              HasSubstr("troupe.speculation.quantile = 1.5: must be an amount such as 0, 0.5 or 1/3"));
}

TEST_F(command_line, what_takes_too_long_fails) {
  const auto slow = [&](const std::string& more) {
    return written("slow.yaml", "name: slow\nstages:\n  nap: {tasks: 2, run: [sleep, 1000]" + more + "}\n");
  };
  const auto by_conf =
      run({"run", slow(""), "--conf", "troupe.task.max-failures=1", "--conf", "troupe.task.timeout=100ms"});
  EXPECT_EQ(by_conf.code, 1) << by_conf.output;
  EXPECT_THAT(by_conf.output, HasSubstr("sleep was ended because it ran for longer than its time-out of 100ms"));
  const auto by_file = run({"run", slow(", task-timeout: 50ms"), "--master=local-cluster[1,2,2g]", "--conf",
                            "troupe.task.max-failures=1", "--conf", "troupe.task.timeout=1h"});
  EXPECT_EQ(by_file.code, 1) << by_file.output;
  EXPECT_THAT(by_file.output, HasSubstr("longer than its time-out of 50ms"));
  const auto stage = run({"run", slow(""), "--conf", "troupe.stage.timeout=300ms"});
  EXPECT_EQ(stage.code, 1) << stage.output;
  EXPECT_THAT(stage.output, HasSubstr("stage 0 (nap) did not end within its time-out of 300ms: 0 of 2 tasks are done"));
}

TEST_F(command_line, profiles_and_settings_can_be_looked_at) {
  const auto check = run({"profile", "check", config("gpu.yaml")});
  EXPECT_EQ(check.code, 0) << check.output;
  EXPECT_THAT(check.printed, AllOf(HasSubstr("half-gpu"), HasSubstr("2 slots per executor")));
  EXPECT_THAT(run({"profile", "check", config("gpu.yaml"), "--json"}).printed, HasSubstr(R"("slots": 2)"));
  const auto sizes = written("sizes.yaml", "profiles: {m: {executor: {cores: 2, memory: 1g, resource: {gpu-memory: "
                                           "{amount: 40g}}}, task: {cpus: 1, resource: {gpu-memory: {amount: 16g}}}}}");
  EXPECT_THAT(run({"profile", "check", sizes}).printed,
              AllOf(HasSubstr("memory 1g, gpu-memory 40g; task: cpus 1, gpu-memory 16g"),
                    HasSubstr("2 slots per executor"), HasSubstr("8g of 40g gpu-memory stay idle")));
  EXPECT_THAT(run({"profile", "check", sizes, "--conf", "troupe.executor.min-memory-overhead=384m"}).printed,
              HasSubstr("memoryOverhead 384m"));
  const auto choices =
      written("choices.yaml", "profiles:\n"
                              "  gpu: {executor: {cores: 4, memory: 4g, resource: {gpu: {amount: 1}}},\n"
                              "        task: {resource: {gpu: {amount: 1}}}, alternatives: [wide]}\n"
                              "  wide: {executor: {cores: 16, memory: 4g}, task: {cpus: 8, memory: 2g},\n"
                              "         max-tasks-per-executor: 1, exclusive: true}\n");
  const auto both = run({"profile", "check", choices});
  EXPECT_EQ(both.code, 0) << both.output;
  EXPECT_THAT(
      both.printed,
      HasSubstr("gpu: executor: cores 4, memory 4g, gpu 1; task: cpus 1, gpu 1\n"
                "  1 slot per executor, limited by gpu\n"
                "  3 of 4 cores stay idle while every slot runs a task\n"
                "  advice: one task's gpu 1 allows 1 slot: let the executor have less of cores, or the task "
                "take more of it, or less of gpu\n"
                "  else executor: cores 16, memory 4g; task: cpus 8, memory 2g; at most 1 task per executor; "
                "exclusive\n"
                "    1 slot per executor, limited by max-tasks-per-executor\n"
                "    8 of 16 cores stay idle while every slot runs a task\n"
                "    2g of 4g memory stay idle while every slot runs a task\n"
                "    advice: the profile's own max-tasks-per-executor allows 1 slot: let the executor have less "
                "of cores and memory, or raise it\n"));
  EXPECT_THAT(run({"profile", "check", choices, "--json"}).printed,
              AllOf(HasSubstr(R"("alternatives": [)"), HasSubstr(R"("limited-by": "max-tasks-per-executor")")));
  const auto exact = run({"profile", "check", choices, "--conf", "troupe.scheduler.profile-matching=exact", "--conf",
                          "troupe.executor.cores=1"});
  EXPECT_EQ(exact.code, 0) << exact.output;
  EXPECT_THAT(exact.printed, HasSubstr("The configuration of cores (exec = 4 task = 1, runnable tasks = 4) leaves some "
                                       "of it unused due to resource gpu"));
  const auto refused = run({"profile", "check", choices, "--conf", "troupe.scheduler.support-matrix=spark"});
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_THAT(refused.output, HasSubstr("ResourceProfiles are only supported on YARN and Kubernetes"));
  const auto show =
      run({"config", "show", "--config-file=" + config("driver.yaml"), "--conf", "troupe.executor.cores=3"});
  EXPECT_EQ(show.code, 0) << show.output;
  EXPECT_THAT(show.printed, AllOf(ContainsRegex("troupe.driver.port.*17077.*driver.yaml"),
                                  ContainsRegex("troupe.executor.cores.*3.*--conf"), HasSubstr("troupe.log.level")));
  const auto wrong = run({"config", "show", "--conf", "troupe.taks.cpus=2"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.output, AllOf(HasSubstr("troupe.taks.cpus"), HasSubstr("troupe.task.cpus")));
}

} // namespace
} // namespace troupe::system_tests
