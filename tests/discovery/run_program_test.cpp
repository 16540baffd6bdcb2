#include <troupe/runtime/discovery/run_program.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>
#include <troupe/tests/support/patience.hpp>

#include "scripts.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class run_program_test : public scripts_test {
protected:
  result<program_output> run(const std::string& text, duration time_out = troupe::testing::patience(),
                             std::size_t max_output = 1 << 20) {
    return run_program({{script("program", "#!/bin/sh\n" + text), "one", "two words"}, time_out, max_output});
  }
  /// Whether a process goes away before the deadline. A dead one that nobody has reaped counts as gone.
  static bool is_gone(pid_t pid) {
    const auto deadline = std::chrono::steady_clock::now() + troupe::testing::patience();
    while (std::chrono::steady_clock::now() < deadline) {
      std::ifstream stat{"/proc/" + std::to_string(pid) + "/stat"};
      std::string number, name, state;
      if (!(stat >> number >> name >> state) || state == "Z") return true;
      std::this_thread::yield();
    }
    return false;
  }
};

TEST_F(run_program_test, takes_both_outputs_and_the_exit_code) {
  const auto ran = run("echo out; echo err >&2; exit 3").value();
  EXPECT_EQ(ran, (program_output{3, "out\n", "err\n"}));
}

TEST_F(run_program_test, passes_words_untouched_and_an_empty_input) {
  EXPECT_EQ(run("cat; printf '%s|' \"$@\"").value().output, "one|two words|");
}

TEST_F(run_program_test, uses_no_shell) {
  const auto path = script("a b; echo $HOME", "#!/bin/sh\necho fine\n");
  EXPECT_EQ(run_program({{path}}).value().output, "fine\n");
}

TEST_F(run_program_test, reports_a_signal_as_shells_do) {
  EXPECT_EQ(run("kill -TERM $$").value().exit_code, 128 + SIGTERM);
}

TEST_F(run_program_test, leaks_no_descriptor_and_no_signal_setting) {
  constexpr int inheritable = 200; // dup2 leaves close-on-exec off
  ASSERT_EQ(::dup2(0, inheritable), inheritable);
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto ran = run("ls /proc/self/fd | tr '\\n' ' '; grep SigBlk /proc/self/status").value();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(inheritable);
  EXPECT_EQ(ran.output, "0 1 2 3 SigBlk:\t0000000000000000\n") << "3 is the folder that ls reads";
}

TEST_F(run_program_test, closes_every_descriptor_of_its_own) {
  const int before = ::dup(0);
  ::close(before);
  ASSERT_TRUE(run("exit 0"));
  ASSERT_FALSE(run("exec sleep 1000", 50ms));
  ASSERT_FALSE(run_program({{(folder / "absent").string()}}));
  const int after = ::dup(0);
  ::close(after);
  EXPECT_EQ(after, before) << "the lowest free descriptor is the same";
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "no child is left unreaped";
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(run_program_test, kills_the_whole_group_when_time_is_up) {
  const auto pids = folder / "pids";
  // The script may need longer than a second to come so far: then once more, and longer.
  pid_t pid = 0;
  for (auto limit = 1000ms; pid == 0 && limit < troupe::testing::patience(); limit *= 2) {
    const auto started = std::chrono::steady_clock::now();
    const auto ran = run("sleep 1000 & echo $! > " + pids.string() + ".new; mv " + pids.string() + ".new " +
                             pids.string() + "; wait",
                         limit);
    ASSERT_FALSE(ran);
    EXPECT_EQ(ran.error().code, ec::cancelled);
    EXPECT_THAT(ran.error().message, HasSubstr("had not ended after " + std::to_string(limit.count()) + " ms"));
    EXPECT_THAT(ran.error().message, HasSubstr((folder / "program").string()));
    EXPECT_LT(std::chrono::steady_clock::now() - started, limit + troupe::testing::patience());
    std::ifstream{pids} >> pid;
  }
  ASSERT_NE(pid, 0);
  EXPECT_TRUE(is_gone(pid));
}

TEST_F(run_program_test, does_not_wait_for_a_background_child_that_keeps_the_pipes) {
  const auto started = std::chrono::steady_clock::now();
  const auto ran = run("sleep 1000 & echo $!").value();
  EXPECT_LT(std::chrono::steady_clock::now() - started, troupe::testing::patience()) << "its time-out";
  EXPECT_TRUE(is_gone(static_cast<pid_t>(std::stoi(ran.output)))) << "and leaves none behind";
}

TEST_F(run_program_test, bounds_the_output) {
  const auto ran = run("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
                       troupe::testing::patience(), 10'000);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ec::overloaded);
  EXPECT_THAT(ran.error().message, HasSubstr("prints more than 10000 bytes"));
  EXPECT_EQ(run("printf 1234567890", troupe::testing::patience(), 10).value().output, "1234567890")
      << "exactly the limit is fine";
  EXPECT_FALSE(run("printf 12345678901", troupe::testing::patience(), 10));
}

TEST_F(run_program_test, keeps_the_beginning_of_a_long_standard_error) {
  const auto ran = run("echo first >&2; head -c 1000000 /dev/zero >&2; echo done").value();
  EXPECT_EQ(ran.output, "done\n");
  EXPECT_EQ(ran.error_output.size(), 4096u);
  EXPECT_THAT(ran.error_output, ::testing::StartsWith("first\n"));
}

TEST_F(run_program_test, large_output_arrives_whole) {
  EXPECT_EQ(run("head -c 700000 /dev/zero").value().output, std::string(700'000, '\0'));
}

TEST_F(run_program_test, says_why_a_program_cannot_start) {
  const auto absent = run_program({{(folder / "absent").string()}});
  EXPECT_EQ(absent.error().code, ec::not_found);
  EXPECT_THAT(absent.error().message, HasSubstr("absent\" doesn't exist"));
  const auto no_program = run_program({{script("text", "hello")}});
  EXPECT_EQ(no_program.error().code, ec::invalid_configuration);
  EXPECT_THAT(no_program.error().message, HasSubstr("#!/bin/sh"));
  const auto locked = script("locked", "#!/bin/sh\n");
  std::filesystem::permissions(locked, std::filesystem::perms::owner_read);
  EXPECT_THAT(run_program({{locked}}).error().message, HasSubstr("chmod +x"));
  EXPECT_THAT(run_program({{script("orphan", "#!/does/not/exist\n")}}).error().message, HasSubstr("cannot be started"));
}

} // namespace
} // namespace troupe
