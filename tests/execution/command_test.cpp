#include <algorithm>

#include <gmock/gmock-more-matchers.h>

#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/files_in_memory.hpp>
#include <troupe/runtime/execution/process_memory.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

#include "elsewhere.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

namespace fs = std::filesystem;

/// A runner as an executor process has it; each test gives the commands.
class command_test : public runner_test {
protected:
  command_test() { fs::create_directory(attempts); }
  void TearDown() override { runner.reset(); }

  task_runner::options command_options() {
    auto o = base_options();
    o.attempts_directories = {attempts};
    o.on_publications = [this](publications ended) {
      const std::lock_guard lock{publishing};
      for (auto& end : ended.ends) published.push_back(std::move(end));
    };
    return o;
  }
  task_runner& begin(std::vector<std::string> words, std::uint32_t tasks = 1,
                     std::map<std::string, std::string> environment = {}) {
    auto& r = runner ? *runner : start(command_options());
    r.open_lease(grant(1));
    install(1, std::move(words), tasks, std::move(environment));
    return r;
  }
  void install(std::uint64_t stage, std::vector<std::string> words, std::uint32_t tasks = 1,
               std::map<std::string, std::string> environment = {}, bool hands_on = false) {
    stage_install s;
    s.hands_on = hands_on;
    s.stage = {stage};
    s.job = {5};
    s.name = "stage-" + std::to_string(stage);
    s.tasks = tasks;
    s.program = std::make_shared<const std::variant<native_program, command_program>>(
        command_program{std::move(words), std::move(environment), scratch.path().string(), outputs});
    runner->install(s);
  }
  /// A batch of one task with these files.
  static std::shared_ptr<task_batch> one(const command_arguments& arguments, partition_index partition = 0,
                                         attempt_number attempt = 0) {
    auto b = range(1, 1, partition, 1);
    if (attempt > 0) b->attempts = {attempt};
    auto column = std::make_shared<packed_column>();
    column->push_back(encode_command_arguments(arguments));
    b->arguments = column;
    return b;
  }
  std::string script(const std::string& text) {
    const auto path = scratch.file("script");
    std::ofstream{path} << "#!/bin/sh\n" << text;
    fs::permissions(path, fs::perms::owner_all);
    return path;
  }
  const task_failure& only_failure() {
    const auto outcome = only_outcome();
    EXPECT_EQ(outcome->status(0), task_status::failed);
    return outcome->failures.at(0);
  }

  /// Where the one output of an attempt waits.
  std::string staged(std::uint64_t stage = 1, partition_index partition = 0, attempt_number attempt = 0) {
    return place_of("s", {stage}, partition, attempt, base_options().executor, outputs).path();
  }
  /// Gives the runner the right to publish, and waits for what it says.
  publication publish(std::vector<std::string> names, partition_index partition = 0, attempt_number attempt = 0) {
    runner->publish({{1}, partition, attempt, std::move(names)});
    EXPECT_TRUE(eventually([&] {
      const std::lock_guard lock{publishing};
      return !published.empty();
    }));
    const std::lock_guard lock{publishing};
    auto last = published.back();
    published.pop_back();
    return last;
  }

  std::mutex publishing;
  std::vector<publication> published;
  std::string attempts = scratch.file("attempts");
  std::string outputs = scratch.file("outputs");
  as_subreaper subreaper;
};

TEST_F(command_test, says_what_it_leaves_where_nobody_looks_for_it) {
  auto& r = begin(
      {"sh", "-c",
       "case $TROUPE_PARTITION in 0) echo some text; mkdir empty; ln -s / link;; 1) mkdir sub; echo x "
       ">sub/result; echo x >z;; "
       "2) echo some text;; 3) echo x >made; echo x >log;; 4) echo x >made; mkdir -p '~/sub'; echo x >'~/sub/y';; "
       "5) echo x >made; d='~'; for i in 1 2 3; do d=$d/$(printf %0200d $i); done; mkdir -p $d; echo x >$d/y;; esac"},
      6);
  const auto left_by = [&](partition_index partition, const std::vector<std::string>& outputs_of_it) {
    r.run(one({{}, outputs_of_it}, partition));
    EXPECT_TRUE(log.wait_for(partition + 1));
    const auto last = log.batches().back();
    EXPECT_EQ(last->status(0), task_status::succeeded);
    return last->left;
  };
  EXPECT_EQ(left_by(0, {}), "") << "neither a folder nor a link is a file";
  EXPECT_EQ(left_by(1, {}), "sub/result");
  EXPECT_EQ(left_by(2, {}), "");
  EXPECT_EQ(left_by(3, {"made"}), "") << "a tool's own";
  EXPECT_EQ(left_by(4, {"made"}), "~/sub/y");
  EXPECT_LE(left_by(5, {"made"}).size(), 256u) << "names travel cut";
}

TEST_F(command_test, finds_all_inputs_in_a_file_however_many_there_are) {
  const std::vector<std::string> inputs(5000, scratch.path().string() + "/of-a-rather-usual-name-for-files");
  auto& r = begin({"sh", "-c", "wc -l <$0 >$1; cmp $0 $TROUPE_INPUTS_FILE", "{inputs-file}", "{output}"});
  r.run(one({inputs, {"count"}}));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->status(0), task_status::succeeded) << outcome->failures.at(0).message;
  EXPECT_EQ(content_of(staged()), "5000\n");
  EXPECT_FALSE(fs::exists(attempts + "/5/1.0.0.inputs-file"));
  install(2, {"sh", "-c", "cat $TROUPE_INPUTS | wc -l >$0", "{output}"});
  auto batch = one({inputs, {"count"}});
  batch->stage = {2};
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_THAT(
      log.batches().back()->failures.at(0).message,
      ::testing::HasSubstr("TROUPE_INPUTS cannot hold its 5000 inputs, which take more than 64 KiB: read the file"));
}

TEST_F(command_test, reads_inputs_and_leaves_outputs_to_be_published) {
  std::ofstream{scratch.file("in")} << "some text\n";
  auto& r = begin({"sh", "-c", "tr a-z A-Z < \"$1\" > \"$2\"; echo seen; echo noted >&2", "sh", "{input}", "{output}"});
  r.run(one({{scratch.file("in")}, {"deep/upper"}}));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->status(0), task_status::succeeded) << outcome->failures.at(0).message;
  EXPECT_EQ(content_of(staged()), "SOME TEXT\n");
  EXPECT_FALSE(fs::exists(outputs + "/deep")) << "its attempt was not accepted yet";
  EXPECT_EQ(outcome->results[0], std::string_view("\0", 1));
  EXPECT_EQ(outcome->output_bytes, 10u);
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "seen\n");
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stderr"), "noted\n");
  EXPECT_EQ(publish({"deep/upper"}).outcome, publication_outcome::published);
  EXPECT_EQ(content_of(outputs + "/deep/upper"), "SOME TEXT\n");
  const auto root = outputs + "/.troupe/s-1";
  EXPECT_TRUE(fs::is_empty(root)) << "others of its stage may still come";
  runner->remove({1});
  EXPECT_TRUE(eventually([&] { return !fs::exists(root); }));
}

TEST_F(command_test, runs_again_in_another_of_its_directories) {
  const auto other = scratch.file("other-attempts");
  fs::create_directory(other);
  auto options = command_options();
  options.attempts_directories = {attempts, other, "/proc/self"};
  start(options);
  auto& r = begin({"pwd"}, 3);
  for (const attempt_number attempt : {0u, 1u, 2u}) r.run(one({}, 0, attempt));
  ASSERT_TRUE(log.wait_for(3));
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), attempts + "/5/1.0.0\n");
  EXPECT_EQ(content_of(other + "/5/1.0.1/stdout"), other + "/5/1.0.1\n");
  EXPECT_EQ(content_of(attempts + "/5/1.0.2/stdout"), attempts + "/5/1.0.2\n")
      << "one that does not work is passed over";
}

TEST_F(command_test, leaves_its_directory_until_its_job_is_forgotten) {
  auto& r = begin({"sh", "-c", "mkdir -p made/read-only; chmod a-w made made/read-only; exit 1"});
  r.run(one({}));
  EXPECT_EQ(only_outcome()->status(0), task_status::failed);
  r.drop_attempts({6});
  EXPECT_TRUE(fs::exists(attempts + "/5/1.0.0/made/read-only"));
  r.drop_attempts({5});
  EXPECT_TRUE(eventually([&] { return fs::is_empty(attempts); }));
}

TEST_F(command_test, needs_a_directory) {
  start(base_options());
  auto& r = begin({"true"});
  r.run(one({}));
  EXPECT_THAT(only_failure().message, ::testing::HasSubstr("was given no directory for commands"));
}

TEST_F(command_test, publishes_nothing_when_its_job_is_over) {
  auto& r =
      begin({"sh", "-c", "echo late > \"$1\"; rmdir \"$2\" \"${2%/*}\"", "sh", "{output}", outputs + "/.troupe/s-1"});
  r.run(one({{}, {"made"}}));
  EXPECT_THAT(only_failure().message, ::testing::HasSubstr("its job is over"));
  EXPECT_TRUE(fs::is_empty(outputs));
}

TEST_F(command_test, publishes_only_what_it_was_given_the_right_to) {
  auto& r = begin({"sh", "-c", "echo made > \"$TROUPE_OUTPUT\""});
  r.run(one({{}, {"made"}}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  EXPECT_EQ(publish({"made"}, 0, 1).outcome, publication_outcome::not_seen) << "another attempt";
  EXPECT_FALSE(fs::exists(outputs + "/made"));
  EXPECT_EQ(publish({"made"}).outcome, publication_outcome::published);
}

TEST_F(command_test, publishes_nothing_after_its_time) {
  auto& r = begin({"sh", "-c", "echo made > \"$TROUPE_OUTPUT\""});
  r.run(one({{}, {"made"}}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  const auto directory = attempts_of(attempts, {5});
  ASSERT_TRUE(fs::exists(directory));
  r.may_begin_until({});
  r.publish({{1}, 0, 0, {"made"}});
  r.drop_attempts({5}); // by the same thread, when it finds nothing better to do
  EXPECT_TRUE(eventually([&] { return !fs::exists(directory); }));
  EXPECT_FALSE(fs::exists(outputs + "/made"));
  r.may_begin_until(time_point::max());
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock{publishing};
    return !published.empty();
  }));
  EXPECT_TRUE(fs::exists(outputs + "/made"));
}

TEST_F(command_test, keeps_what_it_made_for_other_hosts) {
  auto options = command_options();
  options.hand_over = true;
  start(options);
  begin({"true"});
  install(2, {"sh", "-c", "echo 12345 > \"$TROUPE_OUTPUT\""}, 1, {}, true);
  auto batch = one({{}, {"made"}});
  batch->stage = {2};
  runner->run(batch);
  const auto entry = decode_result_entry(only_outcome()->results[0]);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, result_kind::block);
  EXPECT_TRUE(blocks.get(output_key({2}, 0, 0), 0));
  EXPECT_EQ(content_of(staged(2)), "12345\n");
}

TEST_F(command_test, says_how_much_it_made_for_commands_that_read_it_where_it_lies) {
  begin({"true"});
  install(2, {"sh", "-c", "echo 12345 > \"$TROUPE_OUTPUT\""}, 1, {}, true);
  auto batch = one({{}, {"made"}});
  batch->stage = {2};
  runner->run(batch);
  const auto entry = decode_result_entry(only_outcome()->results[0]);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, result_kind::files);
  EXPECT_EQ(entry->bytes, 6u);
}

TEST_F(command_test, starts_in_its_own_directory_and_session_with_its_variables) {
  auto options = command_options();
  options.ordinals["gpu"] = {"GPU-x"};
  start(options);
  auto& r = begin({"sh", "-c",
                   "pwd; echo $TROUPE_PARTITION.$TROUPE_ATTEMPT_NUMBER $OWN [${CUDA_VISIBLE_DEVICES-unset}]; "
                   "cut -d' ' -f1,5,6 /proc/self/stat | tr -d '\\n'; echo; echo $$"},
                  1, {{"OWN", "mine"}});
  r.run(one({}, 3, 2));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  std::istringstream lines{content_of(attempts + "/5/1.3.2/stdout")};
  std::string directory, values, stat, shell;
  std::getline(lines, directory);
  std::getline(lines, values);
  std::getline(lines, stat);
  std::getline(lines, shell);
  EXPECT_EQ(directory, attempts + "/5/1.3.2");
  EXPECT_EQ(values, "3.2 mine []");
  EXPECT_TRUE(stat.ends_with(" " + shell + " " + shell)) << "group and session are its own: " << stat << ", " << shell;
}

TEST_F(command_test, runs_as_a_task_of_its_gang) {
  start(command_options());
  runner->open_lease(grant(1));
  stage_install s;
  s.stage = {1};
  s.tasks = 2;
  s.program = std::make_shared<const std::variant<native_program, command_program>>(
      command_program{{"sh", "-c", "echo $TROUPE_PARTITION of $TROUPE_TASKS: $TROUPE_GANG"}, {}, "/", outputs});
  packed_column gang;
  for (const auto* address : {"alpha:1", "beta:2"}) gang.push_back(address);
  s.gang = std::make_shared<const packed_column>(gang);
  runner->install(s);
  runner->run(one({}, 1));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  EXPECT_EQ(content_of(attempts + "/0/1.1.0/stdout"), "1 of 2: alpha:1,beta:2\n");
}

TEST_F(command_test, starts_without_blocked_or_ignored_signals) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before); // what lease threads inherit from a main that waits for signals
  auto* const ignored = ::signal(SIGPIPE, SIG_IGN);
  auto& r = begin({"grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"});
  r.run(one({}));
  EXPECT_EQ(only_outcome()->status(0), task_status::succeeded);
  ::signal(SIGPIPE, ignored);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(command_test, is_ended_when_it_runs_for_too_long) {
  start(command_options());
  runner->open_lease(grant(1));
  stage_install s;
  s.job = {5};
  s.name = "slow";
  s.tasks = 2;
  // The first one ends well when it is asked to: that is no success all the same.
  s.program = std::make_shared<const std::variant<native_program, command_program>>(command_program{
      {"sh", "-c", "trap 'exit 0' TERM; echo here >&2; if [ {partition} = 0 ]; then sleep 1000 & wait; fi"},
      {},
      scratch.path().string(),
      outputs});
  // The shell may print nothing within the limit. The limit is doubled until it has printed.
  std::string said;
  for (auto limit = std::chrono::milliseconds{200}; said.empty() && limit < deadline; limit *= 2) {
    ++s.stage.value;
    s.task_timeout = limit;
    runner->install(s);
    runner->run(range(s.stage.value, 1, 0, 1));
    ASSERT_TRUE(log.wait_for(s.stage.value));
    const auto outcome = log.batches().back();
    ASSERT_EQ(outcome->status(0), task_status::failed);
    const auto& failure = outcome->failures.at(0);
    EXPECT_EQ(failure.cause, failure_cause::time_limit);
    EXPECT_THAT(failure.message,
                ::testing::StartsWith("sh was ended because it ran for longer than its time-out of " +
                                      std::to_string(limit.count()) + "ms (task-timeout, troupe.task.timeout)"));
    said = failure.stderr_text;
  }
  EXPECT_EQ(said, "here\n");
}

class command_memory : public command_test {
protected:
  std::shared_ptr<const outcome_batch> run_with_64m(std::vector<std::string> words) {
    return run_with(std::move(words), 64 << 20);
  }
  /// Runs a command of a task that has so many bytes.
  std::shared_ptr<const outcome_batch> run_with(std::vector<std::string> words, std::int64_t memory) {
    auto& r = start(command_options());
    auto lease = grant(1);
    lease.holding.resources["memory"] = {{"", share::whole(memory)}};
    r.open_lease(lease);
    install(1, std::move(words));
    r.run(one({}));
    return only_outcome();
  }
  /// `tail` keeps so much of an endless input that it cannot seek in.
  static std::string holds(int mib) { return "cat /dev/zero | tail -c " + std::to_string(mib) + "m"; }
};

TEST_F(command_memory, is_not_exceeded_by_more_than_one_look) {
  const auto outcome = run_with_64m({"sh", "-c", "echo a line >&2; " + holds(100'000)});
  ASSERT_EQ(outcome->status(0), task_status::failed);
  const auto& failure = outcome->failures.at(0);
  EXPECT_EQ(failure.cause, failure_cause::memory_limit);
  EXPECT_EQ(failure.signal, SIGKILL);
  EXPECT_THAT(failure.message,
              ::testing::MatchesRegex("sh was ended because it took more memory than its task may: [0-9]+[mg] of 64m; "
                                      "give the task more \\(task memory in its profile\\)" +
                                      std::string{lies_in_memory(attempts) ? ".*" : " \\(its standard.*"}));
  EXPECT_EQ(failure.stderr_text, "a line\n");
  EXPECT_GT(outcome->peak_memory, 64u << 20);
}

TEST_F(command_memory, is_taken_by_its_files_where_they_lie_in_memory) {
  const elsewhere memory{attempts};
  if (memory.path.empty()) GTEST_SKIP() << "/dev/shm is no other file system here";
  if (fs::space(memory.path).available < 32u << 20) GTEST_SKIP() << "others leave no room in /dev/shm";
  attempts = memory.path;
  const auto outcome = run_with({"sh", "-c", "head -c 24m /dev/zero >part && sleep 1000"}, 16 << 20);
  ASSERT_EQ(outcome->status(0), task_status::failed);
  const auto& failure = outcome->failures.at(0);
  EXPECT_EQ(failure.cause, failure_cause::memory_limit);
  EXPECT_THAT(failure.message, ::testing::HasSubstr(". The files that it writes count, since " + memory.path +
                                                    "/5/1.0.0 lies in memory: set troupe.local.dir"));
}

TEST_F(command_memory, is_that_of_all_its_processes) {
  // Neither of the two alone is too large, and the one that started them is small. They only wait once they have it.
  const auto pids = scratch.file("pids");
  const std::string holds_48m = "perl -e 'vec(my $held, (48 << 20) - 1, 8) = 1; sleep 1000'";
  const auto outcome = run_with_64m({"sh", "-c", holds_48m + " & echo $! >" + pids + "; " + holds_48m});
  ASSERT_EQ(outcome->status(0), task_status::failed);
  EXPECT_EQ(outcome->failures.at(0).cause, failure_cause::memory_limit);
  EXPECT_FALSE(alive(pid_in(pids)));
}

TEST_F(command_memory, is_told_to_the_command_which_may_use_it) {
  const auto outcome = run_with_64m({"sh", "-c", "head -c 20m /dev/zero | tail -c 20m | wc -c; echo $TROUPE_MEMORY"});
  ASSERT_EQ(outcome->status(0), task_status::succeeded) << outcome->failures.at(0).message;
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "20971520\n67108864\n");
}

TEST_F(command_memory, does_not_keep_it_from_being_killed) {
  auto& r = start(command_options());
  auto lease = grant(1);
  lease.holding.resources["memory"] = {{"", share::whole(64 << 20)}};
  r.open_lease(lease);
  install(1, {"sh", "-c", "echo $$ >" + scratch.file("pid") + "; exec sleep 1000"});
  r.run(one({}));
  wait_for_pid(scratch.file("pid"));
  r.kill({{1}, 0, 0});
  EXPECT_EQ(only_outcome()->status(0), task_status::killed);
}

TEST_F(command_test, whose_end_has_a_cause) {
  auto& r = begin({"sh", "-c", "if [ $TROUPE_PARTITION = 0 ]; then exit 3; else kill -SEGV $$; fi"}, 2);
  r.run(range(1, 1, 0, 1));
  r.run(range(1, 1, 1, 1));
  log.wait_for(2);
  std::vector<failure_cause> causes;
  for (const auto& batch : log.batches())
    for (const auto& failure : batch->failures) causes.push_back(failure.cause);
  EXPECT_THAT(causes, ::testing::UnorderedElementsAre(failure_cause::exit_code, failure_cause::signal));
}

TEST_F(command_test, is_no_success_where_nobody_knows_how_it_ended) {
  auto* const before = ::signal(SIGCHLD, SIG_IGN); // the kernel takes the ends of children then
  const auto go = scratch.file("go");
  auto& r = begin({"sh", "-c", "until [ -e " + go + " ]; do :; done; exit 3"});
  r.run(one({}));
  EXPECT_TRUE(eventually([&] { return fs::exists(attempts + "/5/1.0.0/stderr") && !children().empty(); }));
  std::ofstream{go} << "\n";
  EXPECT_THAT(only_failure().message, ::testing::HasSubstr("must neither ignore SIGCHLD"));
  ::signal(SIGCHLD, before);
}

TEST_F(command_test, has_nothing_open_but_its_own_files) {
  const int leaky = ::dup(0); // without close-on-exec
  auto& r = begin({"sh", "-c", "ls /proc/self/fd | wc -l; readlink /proc/self/fd/0"});
  r.run(one({}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  ::close(leaky);
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "4\n/dev/null\n") << "three and the one that ls reads";
}

TEST_F(command_test, words_pass_no_shell) {
  auto& r = begin({"printf", "%s|", "$HOME", "a b", "*", ";rm", "'"});
  r.run(one({}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "$HOME|a b|*|;rm|'|");
}

TEST_F(command_test, a_relative_program_with_a_slash_lies_in_the_job_directory) {
  script("echo here\n");
  auto& r = begin({"./script"});
  r.run(one({}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "here\n");
}

TEST_F(command_test, that_fails_is_told_of_a_file_that_it_looked_for_beside_the_job) {
  std::ofstream{scratch.file("count.txt")} << "text";
  auto& r = begin({"cat", "-n", "count.txt"});
  r.run(one({}));
  EXPECT_THAT(only_failure().message,
              ::testing::HasSubstr("; 'count.txt' lies in " + scratch.path().string() +
                                   ", but a command starts in a directory of its own: name it as " +
                                   scratch.file("count.txt") + " ("));
  install(2, {"sh", "-c", "echo >count.txt; exit 3", "count.txt"});
  auto batch = one({});
  batch->stage = {2};
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_THAT(log.batches()[1]->failures.at(0).message, ::testing::EndsWith("exit code 3")) << "it has one of its own";
}

TEST_F(command_test, that_fails_is_told_of_names_in_a_text_for_a_shell_and_of_those_without_one) {
  std::ofstream{scratch.file("count.txt")} << "text";
  auto& r = begin({"sh", "-c", "cat 'count.txt' 2>/dev/null"});
  r.run(one({}));
  EXPECT_THAT(only_failure().message,
              ::testing::HasSubstr("; 'count.txt' lies in " + scratch.path().string() + ", but a command starts in"));
  install(2, {"cat", "~/no-such-file"});
  auto batch = one({});
  batch->stage = {2};
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_THAT(log.batches()[1]->failures.at(0).message,
              ::testing::HasSubstr("; no shell has expanded '~/no-such-file': write the path, or ask for a shell"));
}

TEST_F(command_test, of_a_stage_that_took_too_long_leave_what_they_have_printed) {
  for (const bool is_late : {false, true}) {
    fs::remove_all(attempts + "/5");
    auto& r = begin({"sh", "-c", "echo the cause >&2; exec sleep 1000"});
    r.run(one({}));
    ASSERT_TRUE(eventually([&] { return content_of(attempts + "/5/1.0.0/stderr") == "the cause\n"; }));
    r.remove({1}, is_late);
    runner.reset(); // waits for its thread
    const auto logs = fs::path{outputs}.parent_path() / ".troupe/logs";
    EXPECT_EQ(fs::exists(logs), is_late);
    if (is_late) EXPECT_EQ(content_of((logs / "s-5/1.0.0.err").string()), "the cause\n");
  }
}

TEST_F(command_test, a_program_that_is_not_there_is_named) {
  auto& r = begin({"no-such-program-anywhere"});
  r.run(one({}));
  EXPECT_NE(only_failure().message.find("'no-such-program-anywhere' is not in PATH"), std::string::npos);
  install(2, {"./missing"});
  auto batch = one({});
  batch->stage = {2};
  r.run(batch);
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_NE(log.batches()[1]->failures.at(0).message.find("missing: No such file"), std::string::npos);
}

TEST_F(command_test, what_cannot_start_here_is_tried_again_only_where_there_are_other_machines) {
  const auto no_program = script("");
  fs::permissions(no_program, fs::perms::owner_read);
  std::ofstream{scratch.file("no-format")} << "neither";
  fs::permissions(scratch.file("no-format"), fs::perms::owner_all);
  std::ofstream{outputs} << "where a folder has to be";
  for (const bool others : {false, true}) {
    auto options = command_options();
    options.hand_over = others;
    auto& r = start(options);
    r.open_lease(grant(1));
    std::uint64_t stage = 1;
    const auto before = static_cast<std::uint32_t>(log.batches().size());
    for (const auto* word : {"no-such-program-anywhere", "./missing", "./script", "./no-format", "true"}) {
      install(stage, {word});
      auto batch =
          one({{}, word == std::string{"true"} ? std::vector<std::string>{"made"} : std::vector<std::string>{}});
      batch->stage = {stage++};
      r.run(batch);
    }
    ASSERT_TRUE(log.wait_for(before + 5));
    for (auto i = before; i < before + 5; ++i)
      EXPECT_EQ(log.batches()[i]->failures.at(0).cause == failure_cause::certain, !others)
          << log.batches()[i]->failures.at(0).message;
    runner.reset();
  }
}

TEST_F(command_test, an_exit_code_is_a_failure_with_the_first_and_last_lines_of_its_own_stderr) {
  auto& r = begin({"sh", "-c", "for i in $(seq 30); do echo line $i >&2; done; echo out > \"$TROUPE_OUTPUT\"; exit 3"});
  r.run(one({{}, {"result"}}));
  const auto& failure = only_failure();
  EXPECT_EQ(failure.exit_code, 3);
  EXPECT_EQ(failure.signal, 0);
  EXPECT_NE(failure.message.find("exit code 3"), std::string::npos);
  EXPECT_TRUE(failure.stderr_text.starts_with("line 1\n")) << failure.stderr_text;
  EXPECT_TRUE(failure.stderr_text.ends_with("line 30\n"));
  EXPECT_FALSE(fs::exists(outputs + "/result")) << "outputs of a failure are not published";
}

/// The system says of the script that it is not there.
TEST_F(command_test, a_missing_interpreter_is_named) {
  const auto path = script("");
  const auto failure = [&](const std::string& text, std::uint64_t stage) {
    std::ofstream{path} << text;
    install(stage, {path});
    auto batch = one({});
    batch->stage = {stage};
    runner->run(batch);
    EXPECT_TRUE(log.wait_for(stage - 1));
    const auto last = log.batches().back();
    EXPECT_EQ(last->failures.at(0).cause, failure_cause::certain);
    return last->failures.at(0).message;
  };
  begin({path});
  EXPECT_THAT(failure("#!/bin/sh\r\necho\r\n", 2),
              ::testing::HasSubstr(
                  "the interpreter of its first line, /bin/sh, is followed by a carriage return: convert its lines"));
  EXPECT_THAT(failure("#! /no/such/python3 -u\n", 3),
              ::testing::HasSubstr("the interpreter of its first line, /no/such/python3, is not there"));
}

TEST_F(command_test, a_signal_is_a_failure_that_names_it) {
  auto& r = begin({"sh", "-c", "kill -SEGV $$"});
  r.run(one({}));
  const auto& failure = only_failure();
  EXPECT_EQ(failure.signal, SIGSEGV);
  EXPECT_NE(failure.message.find("SIGSEGV"), std::string::npos);
}

TEST_F(command_test, a_missing_output_is_a_failure_that_names_it) {
  auto& r = begin({"sh", "-c", "echo x > \"$(echo \"$TROUPE_OUTPUTS\" | head -n 1)\""});
  r.run(one({{}, {"made", "forgotten"}}));
  EXPECT_NE(only_failure().message.find("'forgotten' is missing"), std::string::npos);
  EXPECT_EQ(only_failure().message.find("it has left"), std::string::npos);
  EXPECT_FALSE(fs::exists(outputs + "/made"));
}

TEST_F(command_test, a_missing_output_is_told_with_what_is_there_in_its_place) {
  auto& r = begin({"sh", "-c", "echo x >result.txt"});
  r.run(one({{"/its/input"}, {"made"}}));
  EXPECT_NE(only_failure().message.find("'made' is missing"), std::string::npos) << only_failure().message;
  EXPECT_NE(only_failure().message.find("; it has left 'result.txt'; input: /its/input"), std::string::npos)
      << only_failure().message;
}

TEST_F(command_test, a_failure_names_the_input_and_words_that_were_for_a_shell) {
  auto& r = begin({"cat", "{inputs}", ">", "made"});
  r.run(one({{"/no/such/a", "/no/such/b"}, {}}));
  EXPECT_NE(only_failure().message.find("ended with exit code 1 with input /no/such/a (and 1 more); no shell has seen "
                                        "'>', it was an argument"),
            std::string::npos)
      << only_failure().message;
}

TEST_F(command_test, an_output_that_is_a_folder_is_a_failure_for_certain) {
  auto& r = begin({"mkdir", "{output}"});
  r.run(one({{}, {"index"}}));
  EXPECT_NE(only_failure().message.find("'index' is a folder, and outputs are files: name the files in it, as in "
                                        "outputs: [index/part], or pack it"),
            std::string::npos)
      << only_failure().message;
  EXPECT_EQ(only_failure().cause, failure_cause::certain);
}

TEST_F(command_test, a_malformed_argument_is_a_failure) {
  auto& r = begin({"true"});
  auto batch = one({});
  auto column = std::make_shared<packed_column>();
  column->push_back("garbage");
  batch->arguments = column;
  r.run(batch);
  EXPECT_FALSE(only_failure().message.empty());
  EXPECT_EQ(only_failure().cause, failure_cause::certain);
}

TEST_F(command_test, reports_its_own_cpu_time_and_memory) {
  // A buffer that is filled, larger than what its starter had at any time: below that the kernel's count says nothing.
  const auto size = peak_memory_of(getpid()) + 200'000'000;
  auto& r = begin({"dd", "if=/dev/zero", "of=/dev/null", "bs=" + std::to_string(size), "count=1"});
  r.run(one({}));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->status(0), task_status::succeeded) << outcome->failures.at(0).stderr_text;
  EXPECT_GT(outcome->peak_memory, size);
  EXPECT_GT(outcome->cpu_nanoseconds, 5'000'000u);
}

TEST_F(command_test, a_small_command_is_not_charged_with_what_its_starter_uses) {
  const std::vector<char> much(300'000'000, 'x');
  auto& r = begin({"true"});
  r.run(one({}));
  const auto outcome = only_outcome();
  ASSERT_EQ(outcome->status(0), task_status::succeeded);
  EXPECT_LT(outcome->peak_memory, much.size());
}

TEST_F(command_test, a_killed_command_ends_with_all_that_it_has_started) {
  auto& r = begin({"sh", "-c",
                   "echo $$ > main; sleep 1000 & echo $! > same; "
                   "setsid sh -c 'echo $$ > apart; sleep 1001 & echo $! > below; wait' & "
                   "while [ ! -s below ]; do sleep 0.01; done; echo 1 > ready; wait"});
  r.run(one({}));
  const auto directory = attempts + "/5/1.0.0/";
  wait_for_pid(directory + "ready");
  std::vector<pid_t> pids;
  for (const auto* name : {"main", "same", "apart", "below"}) pids.push_back(wait_for_pid(directory + name));
  for (const auto pid : pids) EXPECT_TRUE(alive(pid));
  r.kill({{1}, 0, 0});
  EXPECT_EQ(only_outcome()->status(0), task_status::killed);
  for (const auto pid : pids) EXPECT_FALSE(alive(pid));
  EXPECT_EQ(children(), "");
}

TEST_F(command_test, kill_9_of_a_command_leaves_nothing_of_it) {
  auto& r = begin({"sh", "-c",
                   "setsid sleep 1000 & until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done; "
                   "echo $! > apart; echo $$ > main; sleep 1001"});
  r.run(one({}));
  const auto apart = wait_for_pid(attempts + "/5/1.0.0/apart");
  ::kill(wait_for_pid(attempts + "/5/1.0.0/main"), SIGKILL);
  EXPECT_EQ(only_failure().signal, SIGKILL);
  EXPECT_FALSE(alive(apart));
  EXPECT_EQ(children(), "");
}

TEST_F(command_test, a_success_leaves_no_process_either) {
  auto& r =
      begin({"sh", "-c", "sleep 1000 & echo $! > ../same; setsid sleep 1000 & echo $! > ../apart; (setsid true &)"});
  r.run(one({}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  for (const auto* name : {"same", "apart"}) EXPECT_FALSE(alive(wait_for_pid(attempts + "/5/" + name)));
}

TEST_F(command_test, what_has_dropped_its_mark_is_ended_with_the_last_command) {
  auto& r = begin({"sh",
                   script("if [ $1 = 1 ]; then\n"
                          "  echo $$ > ../other\n"
                          "  until [ -e ../go ]; do sleep 0.01; done\n"
                          "  exit\n"
                          "fi\n"
                          "env -i setsid sleep 1000 &\n"
                          "until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done\n"
                          "echo $! > ../apart\n"),
                   "{partition}"},
                  2);
  r.open_lease(grant(2));
  auto other = one({}, 1);
  other->lease = {2};
  r.run(other);
  wait_for_pid(attempts + "/5/other");
  r.run(one({}, 0));
  ASSERT_TRUE(log.wait_for(1));
  const auto apart = wait_for_pid(attempts + "/5/apart");
  EXPECT_TRUE(alive(apart)) << "it might be the other one's";
  std::ofstream{attempts + "/5/go"};
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_FALSE(alive(apart));
}

TEST_F(command_test, what_is_left_is_found_without_being_its_parent) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 0); // as in a host application
  auto& r = begin(
      {"sh", "-c",
       // A program that has just begun has its name before its environment can be read.
       "setsid sleep 1000 & until [ \"$(cat /proc/$!/comm)\" = sleep ] && grep -q . /proc/$!/environ; do :; done; "
       "echo $! > ../apart"});
  r.run(one({}));
  ASSERT_EQ(only_outcome()->status(0), task_status::succeeded);
  EXPECT_FALSE(alive(wait_for_pid(attempts + "/5/apart")));
}

TEST_F(command_test, a_success_keeps_what_it_printed_and_a_failure_all) {
  auto& r = begin({"sh", "-c", "echo said; echo made > scratch; mkdir more; exit {partition}"});
  r.run(range(1, 1, 0, 2));
  ASSERT_TRUE(log.wait_for(2));
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/stdout"), "said\n");
  EXPECT_FALSE(std::filesystem::exists(attempts + "/5/1.0.0/scratch"));
  EXPECT_FALSE(std::filesystem::exists(attempts + "/5/1.0.0/more"));
  EXPECT_EQ(content_of(attempts + "/5/1.1.0/scratch"), "made\n");
}

TEST_F(command_test, processes_of_other_attempts_are_left_alone) {
  auto& r = begin({"sh", "-c", "echo $$ > main; setsid sleep 1000 & echo $! > apart; wait"}, 2);
  r.open_lease(grant(2));
  install(2, {"true"});
  r.run(one({}));
  const auto apart = wait_for_pid(attempts + "/5/1.0.0/apart");
  const auto main = wait_for_pid(attempts + "/5/1.0.0/main");
  auto quick = range(2, 2, 0, 1);
  r.run(quick);
  ASSERT_TRUE(log.wait_for(1));
  EXPECT_TRUE(alive(apart));
  EXPECT_TRUE(alive(main));
}

TEST_F(command_test, a_command_that_ignores_TERM_is_killed_after_the_grace) {
  auto options = command_options();
  options.kill_grace = std::chrono::milliseconds{20};
  start(options);
  auto& r = begin({"sh", "-c", "trap '' TERM; echo $$ > main; while :; do sleep 1000; done"});
  r.run(one({}));
  const auto main = wait_for_pid(attempts + "/5/1.0.0/main");
  r.kill({{1}, 0, 0});
  EXPECT_EQ(only_outcome()->status(0), task_status::killed);
  EXPECT_FALSE(alive(main));
}

TEST_F(command_test, a_command_gets_TERM_first_even_when_it_is_stopped) {
  auto options = command_options();
  options.kill_grace = deadline;
  start(options);
  auto& r = begin({"sh", "-c", "trap 'echo bye > bye; exit 0' TERM; echo $$ > main; while :; do sleep 0.05; done"});
  r.run(one({}));
  ::kill(wait_for_pid(attempts + "/5/1.0.0/main"), SIGSTOP);
  r.kill({{1}, 0, 0});
  EXPECT_EQ(only_outcome()->status(0), task_status::killed) << "also where it ends well then";
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/bye"), "bye\n");
}

TEST_F(command_test, a_removed_stage_takes_its_commands_along) {
  auto& r = begin({"sh", "-c", "echo $$ > main; exec sleep 1000"}, 3);
  r.run(range(1, 1, 0, 3));
  const auto main = wait_for_pid(attempts + "/5/1.0.0/main");
  r.remove({1});
  EXPECT_TRUE(eventually([&] { return !alive(main) && r.current_load().running == 0; }));
  ASSERT_TRUE(log.wait_for(3));
  for (const auto& b : log.batches())
    for (std::uint32_t i = 0; i < b->count; ++i) EXPECT_EQ(b->status(i), task_status::killed);
  EXPECT_TRUE(r.shutdown(deadline));
  EXPECT_FALSE(fs::exists(attempts + "/5/1.1.0"));
}

TEST_F(command_test, shutdown_ends_running_commands) {
  auto& r = begin({"sh", "-c", "echo $$ > main; exec sleep 1000"});
  r.run(one({}));
  const auto main = wait_for_pid(attempts + "/5/1.0.0/main");
  EXPECT_TRUE(r.shutdown(deadline));
  EXPECT_FALSE(alive(main));
  EXPECT_EQ(log.tasks(), 0u);
}

TEST_F(command_test, a_command_is_never_overdue_since_it_is_killed) {
  auto options = command_options();
  options.kill_grace = deadline;
  start(options);
  auto& r = begin({"sh", "-c",
                   "trap 'touch asked; while [ ! -e go ]; do sleep 0.02; done; exit' TERM; echo $$ > main; "
                   "while :; do sleep 0.02; done"});
  r.run(one({}));
  wait_for_pid(attempts + "/5/1.0.0/main");
  r.kill({{1}, 0, 0});
  ASSERT_TRUE(eventually([&] { return fs::exists(attempts + "/5/1.0.0/asked"); }));
  EXPECT_TRUE(r.overdue({}).empty());
  EXPECT_TRUE(r.overdue(time_point{std::chrono::hours{1}}).empty());
  std::ofstream{attempts + "/5/1.0.0/go"};
  EXPECT_EQ(only_outcome()->status(0), task_status::killed);
}

TEST_F(command_test, shutdown_waits_for_commands_as_long_as_they_may_take_to_end) {
  auto options = command_options();
  options.kill_grace = deadline;
  start(options);
  auto& r =
      begin({"sh", "-c", "trap 'sleep 0.5; echo bye > bye; exit' TERM; echo $$ > main; while :; do sleep 0.02; done"});
  r.run(one({}));
  wait_for_pid(attempts + "/5/1.0.0/main");
  EXPECT_TRUE(r.shutdown(std::chrono::milliseconds{1}));
  EXPECT_EQ(content_of(attempts + "/5/1.0.0/bye"), "bye\n");
}

TEST_F(command_test, a_thousand_commands_leave_nothing) {
  auto& r = begin({"true"}, 1000);
  for (std::uint64_t lease = 2; lease <= 4; ++lease) r.open_lease(grant(lease));
  r.run(range(1, 1, 900, 1)); // whatever is made once is made now
  ASSERT_TRUE(log.wait_for(1));
  for (std::uint64_t lease = 1; lease <= 4; ++lease) {
    r.run(range(1, lease, static_cast<partition_index>(lease * 10), 1));
  }
  ASSERT_TRUE(log.wait_for(5));
  const auto before = open_descriptors();
  for (partition_index p = 100; p < 1100; p += 10) r.run(range(1, 1 + p / 10 % 4, p, 10));
  ASSERT_TRUE(log.wait_for(1005));
  for (const auto& b : log.batches()) EXPECT_TRUE(b->statuses.empty());
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before && children().empty(); }))
      << open_descriptors() << " descriptors and not " << before << ", children: " << children();
}

} // namespace
} // namespace troupe::testing_execution
