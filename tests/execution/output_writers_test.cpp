#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock-more-matchers.h>

#include <troupe/runtime/execution/output_writers.hpp>
#include <troupe/runtime/execution/staged_outputs.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Commands whose shell ends before what it has started.
class output_writers : public runner_test {
protected:
  output_writers() { std::filesystem::create_directory(attempts); }
  void TearDown() override { runner.reset(); }

  void run(const std::string& script, duration writer_grace, duration task_timeout = never) {
    auto options = base_options();
    options.attempts_directories = {attempts};
    options.terms.writer_grace = writer_grace;
    auto& r = start(options);
    r.open_lease(grant(1));
    stage_install s;
    s.stage = {1};
    s.job = {5};
    s.name = "stage";
    s.tasks = 1;
    s.task_timeout = task_timeout;
    // `until_over` returns once the shell itself has ended.
    const auto text = "main=$$; until_over() { until grep -q ') Z' /proc/$main/stat; do :; done; }; " + script;
    s.program = std::make_shared<const std::variant<native_program, command_program>>(
        command_program{{"sh", "-c", text, "sh", "{output}"}, {}, scratch.path().string(), outputs});
    r.install(s);
    auto batch = range(1, 1, 0, 1);
    auto column = std::make_shared<packed_column>();
    column->push_back(encode_command_arguments({{"/its/input"}, {"made"}}));
    batch->arguments = column;
    r.run(batch);
  }
  std::string made() { return content_of(place_of("s", {1}, 0, 0, base_options().executor, outputs).path()); }
  std::string failure() {
    const auto outcome = only_outcome();
    return outcome->status(0) == task_status::failed ? outcome->failures.at(0).message : "";
  }

  std::string attempts = scratch.file("attempts");
  std::string outputs = scratch.file("outputs");
  as_subreaper subreaper;
};

TEST_F(output_writers, are_waited_for) {
  run(R"((echo early; until_over; echo late) >"$1" & until grep -q early "$1"; do :; done)", std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "early\nlate\n");
}

TEST_F(output_writers, are_waited_for_though_they_have_not_begun) {
  run(R"((until_over; echo late >made.new; mv made.new "$1") &)", std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "late\n");
}

TEST_F(output_writers, are_waited_for_though_they_have_closed_them_meanwhile) {
  run(R"((echo one >"$1"; until_over; echo two >>"$1") & until grep -q one "$1"; do :; done)", std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "one\ntwo\n");
}

/// As in a script of its own that makes up the names of its outputs: its command line names none.
TEST_F(output_writers, are_waited_for_that_nobody_has_told_a_name) {
  run(R"(printf %s "$1" >where
         cat >script <<'end'
           out=$(cat where); main=$$
           (echo one >"$out"; until grep -q ') Z' /proc/$main/stat; do :; done; echo two >>"$out") &
           until grep -q one "$out"; do :; done
end
         exec sh ./script)",
      std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "one\ntwo\n");
}

TEST_F(output_writers, are_waited_for_that_were_told_a_name_and_have_not_begun) {
  run(R"(echo one >"$1"
         sh -c 'until grep -q ") Z" /proc/$0/stat; do :; done; echo two >>"$1"' $main "$1" &
         until grep -q until /proc/$!/cmdline; do :; done)",
      std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "one\ntwo\n");
}

/// Nobody knows whether they would ever have.
TEST_F(output_writers, that_have_none_open_for_the_grace_are_ended) {
  run(R"(echo whole >"$1"; (while :; do sleep 0.01; done) &)", std::chrono::milliseconds{50});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "whole\n");
  EXPECT_THAT(children(), IsEmpty());
}

/// As a watchdog or a heartbeat that a script forgets.
TEST_F(output_writers, that_have_none_open_do_not_use_up_the_time_of_their_task) {
  run(R"(echo whole >"$1"; (while :; do sleep 0.01; done) &)", std::chrono::hours{1}, std::chrono::milliseconds{300});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "whole\n");
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(output_writers, may_have_left_the_group_of_their_command) {
  run(R"(setsid sh -c 'until grep -q ") Z" /proc/$0/stat; do :; done; echo late' $main >"$1" &
         until [ -e "$1" ]; do :; done)",
      std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "late\n");
}

TEST_F(output_writers, that_write_nothing_for_their_grace_fail_the_task_by_name) {
  run(R"(echo part >"$1"; sleep 1000 >>"$1" & until [ -e /proc/$!/comm ] && grep -q sleep /proc/$!/comm; do :; done)",
      std::chrono::milliseconds{20});
  const auto text = failure();
  EXPECT_THAT(text, HasSubstr("exit code 0 with input /its/input, but sleep (pid "));
  EXPECT_THAT(text, HasSubstr("still writes 'made'; let the command wait for what it starts, or raise "
                              "troupe.task.writer-grace"));
  EXPECT_EQ(made(), "");
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(output_writers, have_the_time_of_their_task) {
  run(R"(sleep 1000 >"$1" &)", std::chrono::hours{1}, std::chrono::milliseconds{100});
  EXPECT_THAT(failure(), AllOf(HasSubstr("100ms"), HasSubstr("; input: /its/input")));
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(output_writers, end_when_their_task_is_cancelled) {
  run(R"(echo $$ >main; sleep 1000 >"$1" &)", std::chrono::hours{1});
  const auto main = wait_for_pid(attempts + "/5/1.0.0/main");
  ASSERT_TRUE(eventually([&] { return state_of(main) == 'Z'; }));
  runner->kill({{1}, 0, 0});
  EXPECT_EQ(only_outcome()->status(0), task_status::killed);
  EXPECT_THAT(children(), IsEmpty());
}

TEST_F(output_writers, are_not_those_that_hold_no_output) {
  run(R"(echo whole >"$1"; sleep 1000 <"$1" &)", std::chrono::hours{1});
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(made(), "whole\n");
  EXPECT_THAT(children(), IsEmpty());
}

/// This process is the writer.
class output_watches : public ::testing::Test {
protected:
  std::string writers(const std::string& directory, const std::string& name, std::vector<pid_t> left) {
    output_watch watch{directory, {name}};
    const auto rest = watch.wait([&] { return left; }, {time_point::max(), duration::zero()}, stop);
    EXPECT_EQ(rest.seen, rest.writers.empty());
    return rest.writers;
  }
  std::string text(const std::string& name) {
    std::ofstream{scratch.file(name)} << "some text";
    return scratch.file(name);
  }

  scratch_directory scratch;
  const std::string base = scratch.path().string();
  stop_event stop;
};

TEST_F(output_watches, see_descriptors_and_mappings) {
  const auto path = text("o");
  EXPECT_EQ(writers(base, "o", {}), "");
  const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(writers(base, "o", {::getpid()}), "");
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const auto own = "(pid " + std::to_string(::getpid()) + ") still writes 'o'";
  EXPECT_THAT(writers(base, "o", {::getpid()}), HasSubstr(own));
  EXPECT_THAT(writers(base, "o", {}), HasSubstr("still writes 'o'")) << "whoever it is";
  void* const mapped = ::mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  ::close(fd);
  EXPECT_THAT(writers(base, "o", {::getpid()}), HasSubstr(own));
  ::munmap(mapped, 4);
  EXPECT_EQ(writers(base, "o", {::getpid()}), "");
  ::close(reader);
}

/// A helper that a script forgets, in the folder of its outputs: one look is enough.
TEST_F(output_watches, do_not_wait_for_another_program_that_was_told_nothing) {
  text("o");
  const pid_t helper = ::fork();
  if (helper == 0) {
    if (::chdir(base.c_str()) == 0) ::execlp("sleep", "sleep", "1000", nullptr);
    ::_exit(127);
  }
  ASSERT_TRUE(eventually([&] { return content_of("/proc/" + std::to_string(helper) + "/comm") == "sleep\n"; }));
  output_watch watch{base, {"o"}};
  int looks = 0;
  const auto rest = watch.wait(
      [&] {
        ++looks;
        return std::vector<pid_t>{helper};
      },
      {time_point::max(), std::chrono::hours{1}}, stop);
  EXPECT_TRUE(rest.seen);
  EXPECT_EQ(looks, 1);
  ::kill(helper, SIGKILL);
  ::waitpid(helper, nullptr, 0);
}

TEST_F(output_watches, look_at_what_the_command_has_left_where_there_are_no_leases) {
  const int fd = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  EXPECT_THAT(writers("/dev", "null", {::getpid()}), HasSubstr("still writes 'null'"));
  EXPECT_EQ(writers("/dev", "null", {}), "");
  ::close(fd);
}

TEST_F(output_watches, know_what_has_changed_since) {
  text("a");
  text("b");
  output_watch watch{base, {"a", "b", "missing"}};
  EXPECT_TRUE(watch.wait([] { return std::vector<pid_t>{}; }, {time_point::max(), duration::zero()}, stop).seen);
  EXPECT_EQ(watch.changed(), "");
  std::ofstream{scratch.file("b"), std::ios::app} << "more";
  EXPECT_EQ(watch.changed(), "b");
}

} // namespace
} // namespace troupe::testing_execution
