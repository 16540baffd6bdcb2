#include <csignal>

#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/executor_exit.hpp>

namespace troupe {
namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(executor_exit, is_told_by_its_cause_with_what_is_known_of_its_memory) {
  EXPECT_EQ(to_string(executor_exit{}), "");
  EXPECT_EQ(to_string({exit_cause::exit_code, 3, 0, 0, 0}), "it ended with exit code 3");
  EXPECT_EQ(to_string({exit_cause::signal, 0, 11, 64 * mib, 20 * mib + 5}),
            "it was ended by signal 11 (SIGSEGV), peak memory 20m");
  EXPECT_EQ(to_string({exit_cause::memory_limit, 0, 9, 256 * mib, 256 * mib - 4096}),
            "it was killed at its memory limit of 256m, peak memory 255m");
  EXPECT_EQ(to_string({exit_cause::no_memory, 0, 9, 256 * mib, 4096}),
            "it was killed by the kernel, which had no memory left for it, peak memory less than 1m");
}

TEST(executor_exit, is_its_own_doing_unless_it_was_killed_or_nobody_knows) {
  const auto by_signal = [](int signal) { return is_own_doing({exit_cause::signal, 0, signal, 0, 0}); };
  for (const auto signal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS}) EXPECT_TRUE(by_signal(signal)) << signal;
  for (const auto signal : {SIGKILL, SIGTERM, SIGINT, SIGHUP, 0, 999}) EXPECT_FALSE(by_signal(signal)) << signal;
  for (const auto cause : {exit_cause::exit_code, exit_cause::memory_limit, exit_cause::no_memory})
    EXPECT_TRUE(is_own_doing({cause, 0, 0, 0, 0}));
  EXPECT_FALSE(is_own_doing({}));
}

} // namespace
} // namespace troupe
