#include <poll.h>
#include <sys/wait.h>

#include <troupe/runtime/execution/keeper.hpp>

#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

/// Starts a keeper whose executor does what `body` says and ends with its value. The test holds the liveness pipe.
class keeper_test : public ::testing::Test {
protected:
  keeper_test() { EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0); }
  ~keeper_test() override {
    release_pipe();
    if (keeper > 0) {
      ::kill(keeper, SIGKILL);
      ::waitpid(keeper, nullptr, 0);
    }
  }
  void release_pipe() {
    for (auto& fd : pipe) {
      if (fd >= 0) ::close(std::exchange(fd, -1));
    }
  }
  void start(const std::function<int()>& body, duration grace = deadline, duration end_grace = deadline,
             duration stopped_grace = duration::zero()) {
    keeper = ::fork();
    ASSERT_GE(keeper, 0);
    if (keeper > 0) return;
    ::close(pipe[1]);
    keeper_options options;
    options.liveness_fd = pipe[0];
    options.grace = grace;
    options.end_grace = end_grace;
    options.stopped_grace = stopped_grace;
    if (const auto code = keep(options)) ::_exit(*code);
    write("executor", ::getpid());
    ::_exit(body());
  }
  void write(const std::string& name, pid_t pid) const { std::ofstream{scratch.file(name)} << pid << '\n'; }
  /// Starts `sleep` behind a session of its own, its parent gone.
  void leave_daemon() const {
    const auto file = scratch.file("daemon");
    const auto command = "setsid sh -c 'sleep 1000 & echo $! > " + file + "' & wait";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }
  /// Status of the keeper once it has ended.
  int status() {
    int s = 0;
    const auto got = eventually([&] { return ::waitpid(keeper, &s, WNOHANG) == keeper; });
    EXPECT_TRUE(got) << "the keeper does not end";
    if (got) keeper = -1;
    return s;
  }
  pid_t executor() { return wait_for_pid(scratch.file("executor")); }

  scratch_directory scratch;
  int pipe[2] = {-1, -1};
  pid_t keeper = -1;
};

int sleep_for_ever() {
  for (;;) ::pause();
}

TEST_F(keeper_test, ends_with_the_exit_code_of_the_executor) {
  start([] { return 37; });
  const auto s = status();
  ASSERT_TRUE(WIFEXITED(s));
  EXPECT_EQ(WEXITSTATUS(s), 37);
}

TEST_F(keeper_test, ends_by_the_signal_that_ended_the_executor_and_leaves_nothing_of_it) {
  start([this] {
    leave_daemon();
    return sleep_for_ever();
  });
  const auto daemon = wait_for_pid(scratch.file("daemon"));
  EXPECT_TRUE(alive(daemon));
  ::kill(executor(), SIGKILL);
  const auto s = status();
  ASSERT_TRUE(WIFSIGNALED(s));
  EXPECT_EQ(WTERMSIG(s), SIGKILL);
  EXPECT_FALSE(alive(daemon));
}

TEST_F(keeper_test, an_executor_that_ends_well_leaves_nothing_either) {
  start([this] {
    leave_daemon();
    return 0;
  });
  EXPECT_EQ(status(), 0);
  EXPECT_FALSE(alive(wait_for_pid(scratch.file("daemon"))));
}

TEST_F(keeper_test, kills_a_stopped_executor_when_its_starter_is_gone) {
  start(
      [this] {
        leave_daemon();
        return sleep_for_ever();
      },
      std::chrono::milliseconds{10});
  const auto daemon = wait_for_pid(scratch.file("daemon"));
  ::kill(executor(), SIGSTOP);
  ::kill(daemon, SIGSTOP);
  release_pipe();
  EXPECT_EQ(WTERMSIG(status()), SIGKILL);
  EXPECT_FALSE(alive(executor()));
  EXPECT_FALSE(alive(daemon));
}

TEST_F(keeper_test, kills_a_stopped_executor_that_was_told_to_end_and_its_daemons) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    auto* const before = ::signal(signal, SIG_DFL); // below nohup it would be ignored
    for (const auto* name : {"daemon", "executor"}) std::filesystem::remove(scratch.file(name));
    start(
        [this] {
          leave_daemon();
          return sleep_for_ever();
        },
        deadline, std::chrono::milliseconds{10});
    const auto daemon = wait_for_pid(scratch.file("daemon"));
    ::kill(executor(), SIGSTOP);
    ASSERT_TRUE(eventually([&] { return state_of(executor()) == 'T'; }));
    ::kill(keeper, signal);
    EXPECT_EQ(WTERMSIG(status()), SIGKILL) << signal;
    EXPECT_FALSE(alive(executor()));
    EXPECT_FALSE(alive(daemon));
    ::signal(signal, before);
  }
}

TEST_F(keeper_test, the_executor_may_live_on_for_the_grace) {
  start([this] {
    // Ends by itself when the test says so, long after the pipe's end.
    return eventually([this] { return pid_in(scratch.file("finish")) != 0; }) ? 5 : 6;
  });
  executor();
  release_pipe();
  write("finish", 1);
  const auto s = status();
  ASSERT_TRUE(WIFEXITED(s));
  EXPECT_EQ(WEXITSTATUS(s), 5);
}

TEST_F(keeper_test, kills_an_executor_that_stays_stopped) {
  start(sleep_for_ever, deadline, deadline, std::chrono::milliseconds{50});
  const auto stopped = executor();
  ::kill(stopped, SIGSTOP);
  const auto s = status();
  ASSERT_TRUE(WIFSIGNALED(s));
  EXPECT_EQ(WTERMSIG(s), SIGKILL);
  EXPECT_FALSE(alive(stopped));
}

TEST_F(keeper_test, an_executor_that_goes_on_in_time_is_left_alone) {
  // It goes on long before the grace is over, then lives beyond it. Where this test stands still itself and continues
  // it too late, it is killed with good reason: then once more.
  int s = SIGKILL;
  EXPECT_TRUE(eventually([&] {
    std::filesystem::remove(scratch.file("executor"));
    start(
        [] {
          ::poll(nullptr, 0, 1500);
          return 37;
        },
        deadline, deadline, std::chrono::seconds{1});
    const auto stopped = executor();
    ::kill(stopped, SIGSTOP);
    EXPECT_TRUE(eventually([&] { return state_of(stopped) == 'T' || !alive(stopped); }));
    ::poll(nullptr, 0, 100); // the keeper hears of it
    ::kill(stopped, SIGCONT);
    s = status();
    return !WIFSIGNALED(s) || WTERMSIG(s) != SIGKILL;
  }));
  ASSERT_TRUE(WIFEXITED(s));
  EXPECT_EQ(WEXITSTATUS(s), 37);
}

TEST_F(keeper_test, passes_signals_on) {
  start([] {
    static volatile std::sig_atomic_t got = 0;
    sigset_t term, before;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &term, &before);
    ::signal(SIGTERM, [](int s) { got = s; });
    while (!got) ::sigsuspend(&before);
    return 40 + got;
  });
  // Early ones wait: the keeper blocks them from before the fork on, the executor's own handler may come later.
  executor();
  int s = 0;
  EXPECT_TRUE(eventually([&] {
    ::kill(keeper, SIGTERM);
    return ::waitpid(keeper, &s, WNOHANG) == keeper;
  }));
  keeper = -1;
  EXPECT_TRUE((WIFEXITED(s) && WEXITSTATUS(s) == 40 + SIGTERM) || (WIFSIGNALED(s) && WTERMSIG(s) == SIGTERM));
}

TEST_F(keeper_test, what_it_was_told_to_ignore_is_no_reason_to_end) {
  auto* const before = ::signal(SIGINT, SIG_IGN);
  start(sleep_for_ever, deadline, std::chrono::milliseconds{10});
  ::signal(SIGINT, before);
  executor();
  ::kill(keeper, SIGINT);
  // Nothing is to happen, so that only time can show that it does not.
  ::poll(nullptr, 0, 300);
  EXPECT_EQ(::waitpid(keeper, nullptr, WNOHANG), 0);
}

TEST_F(keeper_test, the_executor_dies_with_its_keeper) {
  start([] { return sleep_for_ever(); });
  const auto pid = executor();
  ::kill(keeper, SIGKILL);
  status();
  EXPECT_TRUE(eventually([&] { return !alive(pid); }));
}

TEST_F(keeper_test, the_executor_leads_a_group_and_adopts_orphans) {
  start([] {
    int subreaper = 0;
    ::prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
    return (::getpgrp() == ::getpid() ? 1 : 0) + (subreaper ? 2 : 0);
  });
  EXPECT_EQ(WEXITSTATUS(status()), 3);
}

TEST_F(keeper_test, the_executor_learns_how_its_children_end_whatever_it_has_inherited) {
  auto* const before = ::signal(SIGCHLD, SIG_IGN);
  start([] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(38);
    int s = 0;
    return ::waitpid(child, &s, 0) == child ? WEXITSTATUS(s) : 1;
  });
  ::signal(SIGCHLD, before);
  EXPECT_EQ(WEXITSTATUS(status()), 38);
}

TEST_F(keeper_test, holds_no_descriptor_that_others_wait_for) {
  int held[2];
  ASSERT_EQ(::pipe2(held, O_CLOEXEC), 0);
  start([&] {
    ::close(held[1]);
    return sleep_for_ever();
  });
  ::close(held[1]);
  char byte;
  EXPECT_EQ(::read(held[0], &byte, 1), 0) << "the keeper still holds the write end";
  ::close(held[0]);
}

TEST(keeper, an_unopened_liveness_pipe_is_an_error) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(2);
    keeper_options options;
    options.liveness_fd = 1000;
    ::_exit(keep(options).value_or(99));
  }
  int s = 0;
  ASSERT_EQ(::waitpid(child, &s, 0), child);
  EXPECT_EQ(WEXITSTATUS(s), 1);
}

} // namespace
} // namespace troupe::testing_execution
