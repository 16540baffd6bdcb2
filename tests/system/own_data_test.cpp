// What a user has, and what is called a result: whole or not there, with the words of a failure beside it.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>

#include <troupe/runtime/execution/publication_list.hpp>
#include <troupe/tests/system/users_folder.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class own_data : public users_folder {
protected:
  /// A job of one stage `make`, whose folder of outputs is `out/make`.
  std::string job(const std::string& stage) const {
    std::ofstream{at("job.yaml")} << "name: own\nstages:\n  make: {" << stage << "}\n";
    return at("job.yaml");
  }
  static std::string content(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  static std::size_t lines(const std::string& path) {
    const auto text = content(path);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::size_t count_of_outputs() const {
    std::size_t count = 0;
    std::error_code none;
    for (fs::directory_iterator entry{at("out/make"), none}, end; !none && entry != end; entry.increment(none))
      count += entry->path().filename().string().starts_with("o");
    return count;
  }
};

class on_masters : public own_data, public ::testing::WithParamInterface<const char*> {
protected:
  int run_job(const std::string& stage, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"run", job(stage), "--master", GetParam(), "--conf", "troupe.task.max-failures=2"});
    return run(std::move(more));
  }
};

class whole_results : public on_masters {};
class records : public on_masters {};
class failed_commands : public on_masters {};
class task_environment : public on_masters {};
const auto all_masters = ::testing::Values("local[2]", "local-cluster[2,1,1g]");
const auto name_of_master = [](const auto& at) { return std::string{at.index == 0 ? "in_process" : "processes"}; };
INSTANTIATE_TEST_SUITE_P(masters, whole_results, all_masters, name_of_master);
INSTANTIATE_TEST_SUITE_P(masters, records, all_masters, name_of_master);
INSTANTIATE_TEST_SUITE_P(masters, failed_commands, all_masters, name_of_master);
INSTANTIATE_TEST_SUITE_P(masters, task_environment, all_masters, name_of_master);

TEST_P(whole_results, that_cannot_be_put_in_place_fail_their_job_at_once) {
  EXPECT_EQ(run_job("run: [sh, -c, 'echo run >>" + at("runs") + "; cd " + folder.path() +
                    "; mkdir -p out/make/b; touch \"$@\"', sh, '{outputs}'], outputs: [a, b]"),
            1);
  EXPECT_THAT(last_output, HasSubstr("a directory is in its place"));
  EXPECT_EQ(lines(at("runs")), 1u) << "to run it again would not mend that";
  EXPECT_FALSE(fs::exists(at("out/make/a")));
  EXPECT_FALSE(fs::exists(at("out/make/.troupe")));
}

/// What a session leaves of which every process was killed, on another machine.
TEST_P(whole_results, are_completed_by_the_next_job_in_their_folder) {
  const auto out = at("out/make");
  const staging_place left{out + "/.troupe/killed-1-over", "0.0-7", out};
  fs::create_directories(left.path() + "/sub");
  std::ofstream{left.path() + "/sub/c"} << "other\n";
  std::ofstream{out + "/a"} << "one\n";
  ASSERT_EQ(write_publication_list(left, {"a", "sub/c"}), 0);
  EXPECT_EQ(run_job("run: ['false'], outputs: [a, sub/c]", {"--overwrite"}), 1) << last_output;
  EXPECT_EQ(content(out + "/a") + content(out + "/sub/c"), "one\nother\n");
  EXPECT_FALSE(fs::exists(out + "/.troupe"));
}

/// Killed at any moment of it, all processes at once.
TEST_P(whole_results, are_whole_or_not_there_when_everybody_was_killed) {
  constexpr std::size_t count = 3000;
  std::string names;
  for (std::size_t i = 0; i < count; ++i) names += (i == 0 ? "o" : ", o") + std::to_string(i);
  const auto file = job("run: [sh, -c, 'for f; do echo x >\"$f\"; done', sh, '{outputs}'], outputs: [" + names + "]");
  for (const bool journal_is_lost : {false, true}) {
    const auto process = started({"run", file, "--master", GetParam()});
    ASSERT_TRUE(testing::wait_until([&] { return count_of_outputs() > 0; })) << process->output();
    kill_all();
    if (journal_is_lost) { // as on another machine that sees the folder
      fs::remove_all(at("troupe"));
      fs::remove_all(at("disk"));
      EXPECT_EQ(run_job("run: ['false'], outputs: [o0]"), 1) << last_output;
    } else {
      EXPECT_EQ(run({"run", "--master", "local[1]",
                     [&] {
                       std::ofstream{at("next.yaml")} << "name: next\nstages: {next: {run: ['true']}}\n";
                       return at("next.yaml");
                     }()}),
                0)
          << last_output;
    }
    EXPECT_EQ(count_of_outputs(), count);
    fs::remove_all(at("out"));
  }
}

TEST_P(records, say_what_is_whose) {
  for (const auto* name : {"a.txt", "b.txt", "c.txt"}) std::ofstream{at(name)} << "text";
  const auto stage = [&](const std::string& inputs) {
    return "for-each: [" + inputs + "], run: [cp, '{input}', '{output}'], outputs: ['{stem}.out']";
  };
  EXPECT_EQ(run_job(stage("a.txt, b.txt, c.txt")), 0) << last_output;
  EXPECT_THAT(last_output, Not(HasSubstr("earlier run")));
  const auto record = at("out/.troupe/make.jsonl");
  auto text = content(record);
  EXPECT_THAT(text, HasSubstr(R"("job":"own","file":")" + at("job.yaml") +
                              R"(","stage":"make","command":["cp","{input}","{output}"],"profile":)"));
  EXPECT_THAT(text, HasSubstr("\"inputs\":[{\"path\":\"" + at("a.txt") + "\",\"bytes\":4,\"modified\":\"20"));
  EXPECT_EQ(lines(record), 4u) << text;

  std::ofstream{at("out/make/mine")} << "the user's";
  EXPECT_EQ(run_job(stage("b.txt")), 0) << last_output;
  EXPECT_THAT(last_output, HasSubstr("2 files of an earlier run in " + at("out/make") + ": a.out, c.out (job own, 20"));
  EXPECT_THAT(last_output, HasSubstr("1 file in " + at("out/make") + " that no run has recorded: mine\n"));
  EXPECT_EQ(lines(record), 5u) << "two tasks of the first run, one of this: " << content(record);

  fs::remove(at("out/make/a.out"));
  fs::remove(at("out/make/mine"));
  EXPECT_EQ(run_job("run: [sh, -c, 'exit 1'], outputs: [c.out]"), 1);
  EXPECT_THAT(last_output, HasSubstr("2 files of earlier runs in " + at("out/make") + ": b.out, c.out\n"));
  EXPECT_EQ(lines(record), 4u) << content(record);

  // Somebody else may have written it.
  std::ofstream{record, std::ios::app} << "{\"run\":\"x\",\"job\":5}\n"
                                       << std::string(100'000, '[') << "\n{\"run\":\"y\",\"outputs\":[\"b.out\",7]}\n";
  EXPECT_EQ(run_job("run: [sh, -c, 'exit 1'], outputs: [c.out]"), 1);
  EXPECT_THAT(last_output, HasSubstr("2 files of earlier runs in " + at("out/make") + ": b.out, c.out\n"));
  for (const auto* name : {"b.out", "c.out"}) fs::remove(at(std::string{"out/make/"} + name));
  EXPECT_EQ(run_job("run: [sh, -c, 'exit 1'], outputs: [c.out]"), 1);
  EXPECT_FALSE(fs::exists(record));

  // Nothing is written, nor removed, behind a link.
  fs::create_directory(at("elsewhere"));
  std::ofstream{at("elsewhere/make.jsonl")} << "the user's\n";
  fs::remove_all(at("out/.troupe"));
  fs::create_directory_symlink(at("elsewhere"), at("out/.troupe"));
  EXPECT_EQ(run_job("run: [sh, -c, 'exit 1'], outputs: [c.out]"), 1);
  EXPECT_EQ(run_job(stage("a.txt")), 0) << last_output;
  EXPECT_THAT(last_output, HasSubstr("could not be recorded there"));
  fs::remove(at("out/.troupe"));
  fs::create_directory(at("out/.troupe"));
  fs::create_symlink(at("elsewhere/make.jsonl"), record);
  EXPECT_EQ(run_job(stage("a.txt")), 0) << last_output;
  EXPECT_EQ(content(at("elsewhere/make.jsonl")), "the user's\n");
  EXPECT_FALSE(fs::exists(at("out/make/.troupe"))) << "what compares the folder finds outputs alone";
}

/// Whatever the job file says of it: a pattern for a shell, a folder, an option with a path.
TEST_P(records, tell_what_no_job_has_made_and_that_is_not_replaced) {
  const auto own = at("out/make/o");
  fs::create_directories(at("out/make"));
  const std::string stage =
      "run: [sh, -c, 'cd " + folder.path() + "; cat out/make/* | tr a-z A-Z >{output}'], outputs: [o]";
  const auto write_own = [&] {
    fs::remove(own);
    std::ofstream{own} << "the only copy\n";
  };
  write_own();
  EXPECT_EQ(run_job(stage), 2);
  EXPECT_THAT(last_output, HasSubstr("stage make: its output " + own +
                                     " would replace a file that no job has made; move what is there"));
  EXPECT_EQ(content(own), "the only copy\n");
  EXPECT_EQ(run_job(stage, {"--overwrite"}), 0) << last_output;
  EXPECT_EQ(content(own), "THE ONLY COPY\n");
  EXPECT_EQ(run_job(stage), 0) << "a job has made it: " << last_output;
  const auto keeps_marks = ::setxattr(at("job.yaml").c_str(), "user.probe", "x", 1, 0) == 0;
  fs::remove_all(at("out/.troupe"));
  if (keeps_marks) {
    EXPECT_EQ(run_job(stage), 0) << "that is seen without the record: " << last_output;
    std::ofstream{own, std::ios::app} << "curated\n"; // at once: by its time it could be the run's own
    EXPECT_EQ(run_job(stage), 2) << last_output;
    EXPECT_EQ(content(own), "THE ONLY COPY\ncurated\n");
    fs::rename(own, own + ".sav");
    write_own();
    EXPECT_EQ(run_job(stage), 2) << last_output;
  }
  fs::remove_all(own);
  fs::create_directory(own);
  EXPECT_EQ(run_job(stage), 2);
  EXPECT_THAT(last_output, HasSubstr("a folder lies at its output " + own));
}

/// The result of a tool that writes beside itself is gone with its directory.
TEST_P(records, tell_of_files_that_commands_leave_where_they_start) {
  EXPECT_EQ(run_job("run: [sh, -c, 'echo x >result.txt']"), 0) << last_output;
  EXPECT_THAT(last_output, HasSubstr("warning: stage make: its commands leave files in the directories that they start "
                                     "in, such as 'result.txt'"));
  EXPECT_EQ(run_job("run: [sh, -c, 'mkdir $1; echo x >$1/x; echo x >$0', '{output}', '~'], outputs: [o]"), 0)
      << last_output;
  EXPECT_THAT(last_output, HasSubstr("such as '~/x'"));
}

TEST_P(records, tell_of_what_a_killed_run_has_left) {
  const auto two = [&](const std::string& names) {
    return "for-each: [" + names + "], run: [cp, '{input}', '{output}'], outputs: ['{stem}.out']";
  };
  for (const auto* name : {"a.txt", "b.txt"}) std::ofstream{at(name)} << "text";
  std::ofstream{at("job.yaml")} << "name: own\nstages:\n  make: {" + two("a.txt, b.txt") +
                                       "}\n  wait: {after: {make: all}, run: [sleep, '1000']}\n";
  const auto process = started({"run", at("job.yaml"), "--master", GetParam()});
  ASSERT_TRUE(testing::wait_until([&] { return fs::exists(at("out/make/a.out")) && fs::exists(at("out/make/b.out")); }))
      << process->output();
  process->kill(SIGKILL);
  EXPECT_EQ(process->wait(), 128 + SIGKILL) << process->output();
  if (::setxattr(at("job.yaml").c_str(), "user.probe", "x", 1, 0) != 0) GTEST_SKIP() << "files here keep no marks";
  EXPECT_EQ(run_job(two("b.txt")), 0) << last_output;
  EXPECT_THAT(last_output, HasSubstr("1 file of an earlier run in " + at("out/make") + ": a.out\n"));
}

/// No line says any more that the first run has made what the second one has replaced.
TEST_P(records, say_what_a_run_has_replaced_that_did_not_end_in_order) {
  const std::string copies = "run: [sh, -c, 'cp $0 $1', '{input}', '{output}'], outputs: ['{stem}.out']";
  const auto line = [](const std::string& text, const std::string& output) {
    const auto found = text.find("\"outputs\":[\"" + output);
    const auto begin = found == text.npos ? text.npos : text.rfind('\n', found);
    return begin == text.npos ? std::string{} : text.substr(begin, text.find('\n', found) - begin);
  };
  for (const auto signal : {SIGINT, SIGKILL}) {
    for (const auto* name : {"a.txt", "b.txt", "c.txt"}) std::ofstream{at(name)} << "text";
    if (signal == SIGKILL && ::setxattr(at("a.txt").c_str(), "user.probe", "x", 1, 0) != 0)
      GTEST_SKIP() << "files here keep no marks";
    EXPECT_EQ(run_job("for-each: [a.txt, b.txt], " + copies, {"--overwrite"}), 0) << last_output;
    const auto earlier = content(at("out/.troupe/make.jsonl"));
    ASSERT_NE(line(earlier, "a.out"), "") << earlier;
    std::ofstream{at("a.txt")} << "longer";
    std::ofstream{at("job.yaml")} << "name: own\nstages:\n  make: {for-each: a.txt, " + copies +
                                         "}\n  wait: {after: {make: all}, run: [sleep, '1000']}\n";
    const auto process = started({"run", at("job.yaml"), "--overwrite", "--master", GetParam()});
    ASSERT_TRUE(testing::wait_until([&] { return content(at("out/make/a.out")) == "longer"; })) << process->output();
    process->kill(signal);
    EXPECT_EQ(process->wait(), signal == SIGINT ? 130 : 128 + SIGKILL) << process->output();
    auto said = process->output();
    if (signal == SIGKILL) { // the next one finds out
      EXPECT_EQ(run_job("for-each: c.txt, " + copies), 0) << last_output;
      said = last_output;
    }
    EXPECT_THAT(said,
                HasSubstr(signal == SIGINT ? "1 file of an earlier run in " + at("out/make") + ": b.out (job own, "
                                           : "2 files of earlier runs in " + at("out/make") + ": a.out, b.out\n"));
    const auto record = content(at("out/.troupe/make.jsonl"));
    EXPECT_THAT(record, HasSubstr(line(earlier, "b.out")));
    EXPECT_THAT(record, Not(HasSubstr(line(earlier, "a.out"))));
  }
}

/// What a command has made just before Ctrl-C may be put in place while the job is being cancelled.
TEST_P(records, have_what_was_put_in_place_while_its_job_was_cancelled) {
  std::ofstream{at("a.txt")} << "text";
  if (::setxattr(at("a.txt").c_str(), "user.probe", "x", 1, 0) != 0) GTEST_SKIP() << "files here keep no marks";
  const auto process = started(
      {"run",
       job("for-each: a.txt, run: [sh, -c, 'until [ -s " + at("pid") +
           " ]; do sleep 0.01; done; echo x >$0; kill -INT $(cat " + at("pid") + ")', '{output}'], outputs: [o]"),
       "--master", GetParam()});
  std::ofstream{at("pid-new")} << process->pid();
  fs::rename(at("pid-new"), at("pid"));
  EXPECT_EQ(process->wait(), 130) << process->output();
  EXPECT_EQ(content(at("out/.troupe/make.jsonl")).find("\"outputs\":[\"o\"]") != std::string::npos,
            fs::exists(at("out/make/o")))
      << process->output();
}

TEST_P(records, of_a_pipeline_say_what_was_read) {
  std::ofstream{at("a.txt")} << "text";
  std::ofstream{at("job.yaml")} << "name: own\nstages:\n  make: {for-each: a.txt, run: [cp, '{input}', '{output}'], "
                                   "outputs: [o]}\n  size: {after: {make: one-to-one}, run: [sh, -c, 'wc -c <$1 >$2', "
                                   "sh, '{input}', '{output}'], outputs: [n]}\n";
  for (const auto* bytes : {"4", "11"}) {
    EXPECT_EQ(run({"run", at("job.yaml"), "--master", GetParam()}), 0) << last_output;
    EXPECT_THAT(content(at("out/.troupe/size.jsonl")), HasSubstr(at("out/make/o") + "\",\"bytes\":" + bytes + ","));
    std::ofstream{at("a.txt")} << "longer text";
  }
}

TEST_P(failed_commands, have_said_why_when_all_is_over) {
  const std::string fails =
      "run: [sh, -c, 'echo the cause is here >&2; seq 2000 >&2; echo on the other; exit 3'], outputs: [o]";
  EXPECT_EQ(run_job(fails), 1);
  EXPECT_THAT(last_output, HasSubstr("the cause is here\n1\n2\n"));
  EXPECT_THAT(last_output, HasSubstr(" bytes are left out here]\n"));
  EXPECT_THAT(last_output, HasSubstr("1999\n2000\n"));
  const auto logs = at("out/.troupe/logs/");
  const auto begin = last_output.find(logs);
  ASSERT_NE(begin, std::string::npos) << last_output;
  const auto path = last_output.substr(begin, last_output.find(".err", begin) + 4 - begin);
  EXPECT_EQ(lines(path), 2001u) << path;
  EXPECT_EQ(content(path.substr(0, path.size() - 4) + ".out"), "on the other\n");
  std::size_t attempts = 0;
  for (const auto& entry : fs::directory_iterator{fs::path{path}.parent_path()})
    attempts += entry.path().extension() == ".err";
  EXPECT_EQ(attempts, 2u);

  std::ofstream{at("any.yaml")} << "name: any\nstages: {any: {for-each: out/make/*, run: [cat, '{input}']}}\n";
  EXPECT_EQ(run({"run", at("any.yaml"), "--master", "local[1]"}), 2) << "no pattern finds it: " << last_output;

  EXPECT_EQ(run_job(fails, {"--conf", "troupe.logs.max-size=1k"}), 1);
  EXPECT_THAT(last_output, Not(HasSubstr(".err"))) << "it is larger";
  EXPECT_THAT(last_output, HasSubstr(".out")) << "that is not";
  fs::remove_all(at("out"));
  EXPECT_EQ(run_job(fails, {"--conf", "troupe.logs.keep=0"}), 1);
  EXPECT_THAT(last_output, Not(HasSubstr(".err")));
  EXPECT_FALSE(fs::exists(at("out")));
}

TEST_P(failed_commands, have_said_why_where_their_user_cannot_wait) {
  for (const auto* name : {"a.txt", "b.txt"}) std::ofstream{at(name)} << "text";
  const auto process =
      started({"run",
               job("for-each: [a.txt, b.txt], run: [sh, -c, 'case {input} in *a.txt) trap \"\" TERM; touch " +
                   at("begun") + "; until [ -e " + at("go") + " ]; do sleep 0.01; done;; *) until [ -e " + at("begun") +
                   " ]; do sleep 0.01; done; exit 3;; esac']"),
               "--master", GetParam(), "--conf", "troupe.task.max-failures=1", "--conf", "troupe.task.kill-grace=1h"});
  ASSERT_TRUE(testing::wait_until([&] { return process->output().find("failed after") != std::string::npos; }))
      << process->output();
  process->kill(SIGINT);
  EXPECT_TRUE(testing::wait_until([&] {
    return process->output().find("troupe: waits for what is ending; a second Ctrl-C ends it at once\n") !=
           std::string::npos;
  })) << process->output();
  std::ofstream{at("go")} << "";
  EXPECT_EQ(process->wait(), 130) << process->output();
  EXPECT_THAT(process->output(), AllOf(HasSubstr("interrupted\n"), HasSubstr("exit code 3 with input " + at("b.txt"))));
}

TEST_P(failed_commands, say_that_what_they_have_printed_cannot_be_kept) {
  fs::create_directories(at("out/make"));
  for (const auto& place : {at("out/.troupe"), at("out/make/.troupe")}) std::ofstream{place} << "in its way";
  EXPECT_EQ(run_job("run: [sh, -c, 'echo no luck >&2; exit 3']"), 1);
  EXPECT_THAT(last_output,
              HasSubstr("what it has printed could not be kept: " + at("out/.troupe/logs: Not a directory")));
  EXPECT_THAT(last_output, HasSubstr("no luck"));
}

TEST_P(failed_commands, have_said_why_where_their_stage_took_too_long) {
  // Its time begins when it may begin: the executors are there by then, and a machine that stands still has its time.
  const auto file = at("late.yaml");
  std::ofstream{file}
      << "name: late\nstages:\n  warm: {run: ['true']}\n  make: {after: [warm], timeout: 5s, run: [sh, -c, "
         "'echo still at the beginning >&2; exec sleep 1000']}\n";
  EXPECT_EQ(run({"run", file, "--master", GetParam()}), 1);
  const auto logs = at("out/.troupe/logs");
  EXPECT_THAT(last_output, HasSubstr("see " + logs + " for what those that ran have printed"));
  std::string printed;
  std::error_code none;
  for (fs::recursive_directory_iterator entry{logs, none}, end; !none && entry != end; entry.increment(none))
    if (entry->path().extension() == ".err") printed += content(entry->path().string());
  EXPECT_EQ(printed, "still at the beginning\n");
}

TEST_P(task_environment, is_the_users_but_for_what_troupe_says) {
  const std::string shows = "run: [sh, -c, 'echo ${OMP_NUM_THREADS-unset} ${TROUPE_OF_ACTORS-unset} "
                            "${TROUPE_INPUT-unset} >\"$0\"', '{output}'], outputs: [o]";
  setenv("TROUPE_OF_ACTORS", "mine", 1);
  EXPECT_EQ(run_job(shows), 0) << last_output;
  EXPECT_EQ(content(at("out/make/o")), "1 mine unset\n");
  EXPECT_THAT(last_output, Not(HasSubstr("warning")));
  EXPECT_EQ(run_job(shows, {"--conf", "troupe.task.thread-variables=false"}), 0) << last_output;
  EXPECT_EQ(content(at("out/make/o")), "unset mine unset\n");
  setenv("TROUPE_INPUT", "/mine", 1);
  EXPECT_EQ(run_job(shows), 0) << last_output;
  unsetenv("TROUPE_INPUT");
  unsetenv("TROUPE_OF_ACTORS");
  EXPECT_EQ(content(at("out/make/o")), "1 mine unset\n");
  EXPECT_THAT(last_output, HasSubstr("commands do not see TROUPE_INPUT"));
}

/// The count passes through programs without Troupe, here a shell.
TEST_P(task_environment, says_how_many_programs_are_above_and_ends_what_would_never_end) {
  const std::string own = std::getenv("TROUPE_DEPTH");
  const auto with_depth = [&](const char* depth) {
    setenv("TROUPE_DEPTH", depth, 1);
    const auto status =
        run_job("run: [sh, -c, 'echo ${TROUPE_DEPTH-unset} >\"$0\"', '{output}'], outputs: [o]", {"--overwrite"});
    setenv("TROUPE_DEPTH", own.c_str(), 1);
    return status;
  };
  EXPECT_EQ(with_depth("3"), 0) << last_output;
  EXPECT_EQ(content(at("out/make/o")), std::string{GetParam()} == "local[2]" ? "4\n" : "5\n");
  EXPECT_EQ(with_depth("9"), 0) << last_output;
  EXPECT_EQ(with_depth("10"), 2);
  EXPECT_THAT(last_output, HasSubstr("TROUPE_DEPTH = 10, at most 9"));
}

/// However the command names them. It may be meant so, and is said.
TEST_F(own_data, what_an_earlier_run_has_left_where_a_command_looks_is_told) {
  for (const auto* name : {"a.txt", "b.txt"}) std::ofstream{at(name)} << name << "\n";
  const auto run_with = [&](const std::string& files, const std::string& reads) {
    std::ofstream{at("job.yaml")} << "name: own\nstages:\n  make: {for-each: [" << files
                                  << "], run: [cp, '{input}', '{output}'], outputs: ['{name}']}\n"
                                  << "  all: {after: [make], environment: {HERE: " << at("") << "}, run: [sh, -c, '"
                                  << reads << " >\"$0\"', '{output}'], outputs: [all]}\n";
    return run({"run", at("job.yaml")});
  };
  const auto whole_folder = "find " + at("out/make") + " -type f | sort | xargs cat";
  EXPECT_EQ(run_with("a.txt, b.txt", whole_folder), 0) << last_output;
  EXPECT_THAT(last_output, Not(HasSubstr("warning")));
  std::ofstream{at("out/make/notes")} << "the user\n"; // is no output
  const auto tells = HasSubstr("also finds " + at("out/make/a.txt") + ", which another run has made;");
  for (const auto& reads : {whole_folder, "cd " + at("") + "; cat out/make/*.txt", std::string{"cat $HERE/out/make/*"},
                            std::string{"cat ${HERE}/out/make/a.txt"}, "grep -rh . " + at("out"),
                            std::string{"cd $HERE/out; cat make/a*"}, std::string{"ls $HERE/out/*/a.txt"}}) {
    EXPECT_EQ(run_with("b.txt", reads), 0) << reads << last_output;
    EXPECT_THAT(last_output, AllOf(HasSubstr("warning: stage all: "), tells)) << reads;
    EXPECT_THAT(last_output, HasSubstr("write {inputs} with after: [make]"));
  }
  // Other files, folders of other names, and a folder of another host.
  for (const auto& reads : {"cat " + at("out/make/b.txt"), std::string{"cat $HERE/out/make/*.csv || true"},
                            std::string{"mkdir -p out/make; ls out/make $TMPDIR/out/make || true"},
                            "echo nas:" + at("out/make/"), "ls " + at("out/maker") + " || true"}) {
    EXPECT_EQ(run_with("b.txt", reads), 0) << reads << last_output;
    EXPECT_THAT(last_output, Not(HasSubstr("also finds"))) << reads;
  }
  // Of a stage that is no more, or is another job's.
  for (const std::string reads : {"*", "make"}) {
    std::ofstream{at("job.yaml")} << "name: own\nstages:\n  all: {run: [sh, -c, 'cat " << at("out/") << reads
                                  << "/b.txt >$1', sh, '{output}'], outputs: [all]}\n";
    EXPECT_EQ(run({"run", at("job.yaml")}), 0) << last_output;
    EXPECT_EQ(last_output.find("also finds " + at("out/make/b.txt")) != std::string::npos, reads == "*") << last_output;
  }
}

TEST_F(own_data, what_another_job_has_made_is_not_replaced_unasked) {
  EXPECT_EQ(run({"run", job("run: [sh, -c, 'echo one >\"$0\"', '{output}'], outputs: [o]")}), 0) << last_output;
  std::ofstream{at("other.yaml")} << "name: other\nstages:\n  make: {run: [sh, -c, 'echo two >\"$0\"', '{output}'], "
                                     "outputs: [o]}\n";
  EXPECT_EQ(run({"run", at("other.yaml")}), 2);
  EXPECT_THAT(last_output, HasSubstr("its output " + at("out/make/o") + " would replace what job own (" +
                                     at("job.yaml") + ") has made; give"));
  EXPECT_EQ(content(at("out/make/o")), "one\n");
  // A job that is renamed, or has another file, is the same.
  std::ofstream{at("job.yaml")} << "name: new\nstages: {make: {run: [touch, '{output}'], outputs: [o]}}\n";
  EXPECT_EQ(run({"run", at("job.yaml")}), 0) << last_output;
  fs::copy(at("job.yaml"), at("new.yaml"));
  EXPECT_EQ(run({"run", at("new.yaml")}), 0) << last_output;
  EXPECT_EQ(run({"run", at("other.yaml")}), 2) << last_output;
  EXPECT_EQ(run({"run", at("other.yaml"), "--overwrite"}), 0) << last_output;
  EXPECT_EQ(run({"run", at("other.yaml")}), 0) << "its own by now: " << last_output;
  EXPECT_EQ(content(at("out/make/o")), "two\n");
  fs::rename(at("other.yaml"), at("third.yaml"));
  const auto text = content(at("third.yaml"));
  std::ofstream{at("third.yaml")} << "name: third" << text.substr(text.find('\n'));
  EXPECT_EQ(run({"run", at("third.yaml")}), 0) << "the other job's file is no more: " << last_output;
}

TEST_F(own_data, one_run_at_a_time_makes_an_output) {
  const auto waits = job("run: [sh, -c, 'echo >" + at("begun") + "; until [ -e " + at("go") +
                         " ]; do sleep 0.1; done; echo done >\"$0\"', '{output}'], outputs: [o]");
  const auto begun = [&] {
    auto process = started({"run", waits});
    EXPECT_TRUE(testing::wait_until([&] { return fs::exists(at("begun")); })) << process->output();
    return process;
  };
  const auto first = begun();
  for (const auto& arguments : {std::vector<std::string>{"run", waits}, {"run", waits, "--overwrite"}}) {
    EXPECT_EQ(run(arguments), 2) << last_output;
    EXPECT_THAT(last_output, AllOf(HasSubstr("stage make: another run (process "),
                                   HasSubstr(", job own) is making " + at("out/make/o"))));
  }
  std::ofstream{at("beside.yaml")} << "name: beside\nstages: {other: {run: [touch, '{output}'], outputs: [o]}}\n";
  std::ofstream{at("apart.yaml")} << "name: own\nstages: {make: {run: [touch, '{output}'], outputs: [other]}}\n";
  for (const auto* other : {"beside.yaml", "apart.yaml"})
    EXPECT_EQ(run({"run", at(other)}), 0) << "other files: " << last_output;
  std::ofstream{at("go")};
  EXPECT_EQ(first->wait(), 0) << first->output();
  for (const auto* file : {"go", "begun"}) fs::remove(at(file));
  const auto killed = begun();
  kill_all();
  std::ofstream{at("go")};
  EXPECT_EQ(run({"run", waits}), 0) << "the other one was killed: " << last_output;
  EXPECT_EQ(content(at("out/make/o")), "done\n");
}

TEST_P(failed_commands, leave_why_each_of_them_has_failed) {
  EXPECT_EQ(run_job("run: [sh, -c, 'echo at $TROUPE_ATTEMPT_NUMBER >&2; exit 3'], outputs: [o]"), 1);
  std::string why;
  for (const auto& job : fs::directory_iterator{at("out/.troupe/logs")}) {
    why += content(job.path() / "why.txt");
    const fs::directory_iterator all{job};
    EXPECT_TRUE(std::any_of(begin(all), end(all), [](const auto& e) { return e.path().extension() == ".err"; }))
        << "in the folder of what they have printed";
  }
  EXPECT_THAT(why, HasSubstr("failed: stage 0 (make), partition 0, attempt 0 on executor "));
  EXPECT_THAT(why, HasSubstr("failed: stage 0 (make), partition 0, attempt 1 on executor "));
  EXPECT_THAT(why, HasSubstr("    at 1\n"));
}

TEST_F(own_data, what_a_command_has_printed_is_there_though_its_executor_was_killed) {
  EXPECT_EQ(run({"run", "--master", "local-cluster[2,1,1g]",
                 job("run: [sh, -c, 'echo at $TROUPE_ATTEMPT_NUMBER >&2; [ $TROUPE_ATTEMPT_NUMBER != 0 ] || kill -9 "
                     "$PPID; echo done >\"$0\"', '{output}'], outputs: [o]")}),
            0)
      << last_output;
  EXPECT_EQ(content(at("out/make/o")), "done\n");
  std::string printed;
  for (const auto& entry : fs::recursive_directory_iterator{at("out/.troupe/logs")})
    if (entry.is_regular_file()) printed += content(entry.path());
  EXPECT_EQ(printed, "at 0\n") << "the second attempt has not failed";
}

TEST_F(own_data, what_has_failed_can_be_asked_as_long_as_the_cluster_runs_and_is_there_when_it_is_gone) {
  std::ofstream{at("cluster.yaml")} << "cluster:\n  hosts: [{name: here, cores: 2, memory: 8g}]\n";
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + at("cluster.yaml")}), 0) << last_output;
  EXPECT_EQ(run({"run", job("run: [sh, -c, 'exit 3'], outputs: [o]"), "--conf", "troupe.task.max-failures=1"}), 1);
  EXPECT_EQ(run({"explain", "1"}), 0);
  EXPECT_THAT(last_output, HasSubstr("job 1 (own): failed, stage 0 (make), partition 0"));
  EXPECT_THAT(last_output, HasSubstr("failed: stage 0 (make), partition 0, attempt 0 on executor 1 (here): "));
  const auto said = last_output;
  EXPECT_EQ(run({"explain", "1", "--json"}), 0);
  EXPECT_THAT(last_output, HasSubstr("\"failures\": ["));
  // One that has succeeded, and of one of its stages.
  std::ofstream{at("twice.yaml")} << "name: twice\nstages:\n"
                                     "  one: {run: [sh, -c, 'exit $((1 - TROUPE_ATTEMPT_NUMBER))']}\n"
                                     "  two: {after: [one], run: [sh, -c, 'exit $((1 - TROUPE_ATTEMPT_NUMBER))']}\n";
  EXPECT_EQ(run({"run", at("twice.yaml")}), 0) << last_output;
  EXPECT_EQ(run({"explain", "2"}), 0);
  EXPECT_THAT(last_output, AllOf(HasSubstr("failed: stage 0 (one)"), HasSubstr("failed: stage 1 (two)")));
  EXPECT_EQ(run({"explain", "2", "1"}), 0);
  EXPECT_THAT(last_output, AllOf(Not(HasSubstr("failed: stage 0 (one)")), HasSubstr("failed: stage 1 (two)")));
  EXPECT_EQ(run({"cluster", "down"}), 0) << last_output;
  EXPECT_EQ(run({"explain", "1"}), 4);
  EXPECT_THAT(last_output, HasSubstr("(why.txt), is in .troupe/logs beside"));
  std::string why;
  for (const auto& job : fs::directory_iterator{at("out/.troupe/logs")}) why += content(job.path() / "why.txt");
  EXPECT_EQ(why, said);
}

TEST_F(own_data, a_task_that_asks_its_own_cluster_is_warned) {
  std::ofstream{at("cluster.yaml")} << "cluster:\n  hosts: [{name: here, cores: 2, memory: 8g}]\n";
  ASSERT_EQ(run({"cluster", "up", "--config-file=" + at("cluster.yaml")}), 0) << last_output;
  std::ofstream{at("inner.yaml")} << "name: inner\nstages: {in: {run: ['true']}}\n";
  EXPECT_EQ(run({"run", job(std::string{"run: [sh, -c, '"} + TROUPE_PROGRAM + " run " + at("inner.yaml") +
                            " 2>\"$0\"', '{output}'], outputs: [o]")}),
            0)
      << last_output;
  EXPECT_THAT(content(at("out/make/o")), HasSubstr("this runs in a task of the same cluster"));
  // A session between them changes nothing: the outer task waits for it.
  const auto asking = std::string{"{run: [sh, -c, '"} + TROUPE_PROGRAM + " run ";
  std::ofstream{at("middle.yaml")} << "name: middle\nstages:\n  mid: " << asking << at("inner.yaml")
                                   << " 2>\"$0\"', '{output}'], outputs: [o]}\n";
  EXPECT_EQ(run({"run", "--overwrite",
                 job(std::string{"run: [sh, -c, '"} + TROUPE_PROGRAM + " run --master \"local[1]\" " +
                     at("middle.yaml") + " 2>\"$0\"', '{output}'], outputs: [o]")}),
            0)
      << last_output;
  EXPECT_THAT(content(at("out/mid/o")), HasSubstr("this runs in a task of the same cluster"));
  EXPECT_THAT(content(at("out/make/o")), Not(HasSubstr("in a task of the same"))) << "that one has its own";
  EXPECT_EQ(run({"run", at("inner.yaml")}), 0) << last_output;
  EXPECT_THAT(last_output, Not(HasSubstr("in a task"))) << "it runs in none";
  EXPECT_EQ(run({"cluster", "down"}), 0) << last_output;
}

} // namespace
} // namespace troupe::system_tests
