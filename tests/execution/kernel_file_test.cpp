// Small files of the kernel's: what is read of them, and the numbers in them.

#include <troupe/runtime/execution/kernel_file.hpp>

#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include <troupe/runtime/execution/process_memory.hpp>

#include "runner_fixture.hpp"

namespace troupe {
namespace {

TEST(kernel_file, is_read_whole_or_as_far_as_is_asked_for) {
  const testing_execution::scratch_directory folder;
  const auto path = (folder.path() / "file").string();
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += std::to_string(i) + "\n";
  std::ofstream{path} << text;
  EXPECT_EQ(read_kernel_file(path), text);
  EXPECT_EQ(read_kernel_file(path, 5000), text.substr(0, 5000));
  EXPECT_EQ(read_kernel_file(path + "s"), "");
  EXPECT_FALSE(read_kernel_file("/proc/self/status").empty()) << "whose size is said to be 0";
  EXPECT_EQ(read_kernel_file("/proc/self/mem"), "") << "reading fails, as of a process that has just ended";
}

TEST(kernel_file, a_number_follows_the_label_of_its_line) {
  constexpr const char* status = "Name:\tVmHWM: 3\nVmHWM:\t   1234 kB\nVmData:\t-\nlast 7";
  EXPECT_EQ(number_after(status, "VmHWM:"), 1234u);
  EXPECT_EQ(number_after(status, "last"), 7u) << "without an end of line";
  EXPECT_EQ(number_after(status, "VmData:"), std::nullopt) << "no number";
  EXPECT_EQ(number_after(status, "HWM:"), std::nullopt) << "in the middle of a line";
  EXPECT_EQ(number_after("oom_kill_disable 1\noom_kill 0\n", "oom_kill"), 0u) << "a longer label is another one";
  EXPECT_EQ(number_after("oom_kill\n", "oom_kill"), std::nullopt);
  EXPECT_EQ(number_after("", "x"), std::nullopt);
}

TEST(process_memory, is_what_the_kernel_says) {
  EXPECT_GT(peak_memory_of(::getpid()), 1u << 20);
  EXPECT_GT(data_of(::getpid()), 1u << 16);
  EXPECT_GT(private_memory_of(::getpid()), 1u << 16);
  EXPECT_GT(anonymous_memory_of(::getpid()), 1u << 16);
  EXPECT_LE(private_memory_of(::getpid()), peak_memory_of(::getpid()) + (4u << 20));
  for (const auto memory : {peak_memory_of, data_of, private_memory_of, anonymous_memory_of}) EXPECT_EQ(memory(0), 0u);
}

} // namespace
} // namespace troupe
