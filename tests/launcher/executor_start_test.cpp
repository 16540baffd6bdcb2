#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <troupe/launcher/executor_entry.hpp>
#include <troupe/launcher/executor_start.hpp>
#include <troupe/runtime/config/keys.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

executor_start some_start() {
  executor_start start;
  start.driver = {"127.0.0.1", 4711};
  start.cluster_id = "c-1";
  start.secret_file = "/run/a secret";
  start.run_directory = "/run/dir";
  start.local_directories = {"/disk 1", "/disk 2"};
  start.info.request = {7};
  start.info.host = "here";
  start.limits.group = cgroup{{{2, "/sys/fs/cgroup/a b", {cgroup_controller::memory, cgroup_controller::cpu}}}};
  start.limits.memory = 123;
  start.limits.cpus = {0, 3};
  start.shuffle_service = true;
  start.command_processes = 9;
  return start;
}

settings some_settings() {
  settings_builder builder{"/"};
  EXPECT_TRUE(builder.add_argument("troupe.executor.cores=3"));
  return *builder.build();
}

TEST(executor_start, arrives_as_it_was_sent) {
  const auto sent = some_start();
  const auto text = encode_executor_start(sent, some_settings());
  ASSERT_TRUE(text) << text.error().message;
  const auto come = decode_executor_start(*text);
  ASSERT_TRUE(come) << come.error().message;
  const auto& start = come->start;
  EXPECT_EQ(to_string(start.driver), to_string(sent.driver));
  EXPECT_EQ(start.cluster_id, sent.cluster_id);
  EXPECT_EQ(start.secret_file, sent.secret_file);
  EXPECT_EQ(start.run_directory, sent.run_directory);
  EXPECT_EQ(start.local_directories, sent.local_directories);
  EXPECT_EQ(start.info.request, sent.info.request);
  EXPECT_EQ(start.info.host, sent.info.host);
  ASSERT_EQ(start.limits.group.parts().size(), 1u);
  EXPECT_EQ(start.limits.group.parts()[0].directory, "/sys/fs/cgroup/a b");
  EXPECT_THAT(start.limits.group.parts()[0].controllers,
              ElementsAre(cgroup_controller::memory, cgroup_controller::cpu));
  EXPECT_EQ(start.limits.memory, sent.limits.memory);
  EXPECT_EQ(start.limits.cpus, sent.limits.cpus);
  EXPECT_TRUE(start.shuffle_service);
  EXPECT_EQ(start.command_processes, 9u);
  EXPECT_EQ(come->effective.get(keys::executor_cores), 3);
}

TEST(executor_start, is_refused_where_it_is_none) {
  EXPECT_FALSE(decode_executor_start("rubbish 1\nsettings\n"));
  EXPECT_FALSE(decode_executor_start("info zz\nsettings\n"));
  EXPECT_FALSE(decode_executor_start("memory-limit much\nsettings\n"));
  auto start = some_start();
  start.run_directory = "/run/a\nb";
  EXPECT_THAT(encode_executor_start(start, some_settings()).error().message, HasSubstr("line break"));
}

TEST(executor_entry, travels_in_a_file_that_nobody_can_change) {
  const auto file = make_sealed_file("content");
  ASSERT_TRUE(file) << file.error().message;
  char read[16] = {};
  EXPECT_EQ(::pread(*file, read, sizeof read, 0), 7);
  EXPECT_STREQ(read, "content");
  EXPECT_LT(::pwrite(*file, "x", 1, 0), 0);
  EXPECT_NE(::ftruncate(*file, 0), 0);
  EXPECT_EQ(::fcntl(*file, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  ::close(*file);
  EXPECT_FALSE(take_executor_entry()) << "this process was started as none";
  EXPECT_THAT(program_arguments().front(), HasSubstr("test_launcher"));
}

} // namespace
} // namespace troupe
