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

} // namespace
} // namespace troupe
