#include <filesystem>

#include <gmock/gmock-more-matchers.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <troupe/launcher/local_directories.hpp>

namespace troupe {
namespace {

settings with(std::initializer_list<std::string_view> arguments) {
  settings_builder builder{"/"};
  for (const auto argument : arguments) EXPECT_TRUE(builder.add_argument(argument));
  return *builder.build();
}

using names = std::vector<std::string>;

TEST(local_directories, are_those_that_are_named) {
  EXPECT_EQ(local_directories_of(with({"troupe.local.dir=/a,/b", "troupe.run-directory=/dev/shm/troupe"})),
            (names{"/a", "/b"}));
}

/// What exceeds memory must not be in memory again.
TEST(local_directories, are_on_disk_where_the_run_directory_is_not) {
  struct statfs memory {};
  struct statfs disk {};
  ASSERT_EQ(::statfs("/dev/shm", &memory), 0);
  ASSERT_EQ(::statfs("/var/tmp", &disk), 0);
  ASSERT_EQ(memory.f_type, TMPFS_MAGIC);
  const auto in_memory = with({"troupe.run-directory=/dev/shm/not/there/yet"});
  EXPECT_EQ(local_directories_of(in_memory), disk.f_type == TMPFS_MAGIC ? names{} : names{"/var/tmp"});
  EXPECT_EQ(local_directories_of(with({"troupe.run-directory=/var/tmp/not/there/yet"})), names{});
}

TEST(local_directories, are_none_where_the_machine_has_no_disk) {
  struct statfs memory {};
  if (::statfs("/dev/shm", &memory) != 0 || memory.f_type != TMPFS_MAGIC) GTEST_SKIP() << "/dev/shm is not in memory";
  const auto in_memory = with({"troupe.run-directory=/dev/shm/not/there/yet"});
  EXPECT_EQ(local_directories_of(in_memory, "/dev/shm"), names{});
  EXPECT_THAT(only_memory(in_memory, {}), ::testing::AllOf(::testing::HasSubstr("nor at /dev/shm/not/there/yet"),
                                                           ::testing::HasSubstr("troupe.local.dir")));
  EXPECT_EQ(only_memory(with({"troupe.run-directory=/proc/not/there/yet"}), {}), "");
}

/// As where /tmp is named beside the run directory /tmp/troupe-0.
TEST(local_directories, may_be_the_run_directory_itself) {
  auto folder = (std::filesystem::temp_directory_path() / "local-directories-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const auto base = folder + "/troupe-" + std::to_string(::geteuid());
  std::filesystem::create_directory_symlink(folder, folder + "/link");
  const auto s = with({"troupe.run-directory=" + base, "troupe.local.dir=" + folder + "/link/"});
  auto run = run_directory::create(base, "session");
  ASSERT_TRUE(run) << run.error().message;
  {
    const auto made = make_local_directories(s, "session", [](const error& why) { ADD_FAILURE() << why.message; });
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ(paths_of(*made), names{run->path()});
  }
  EXPECT_TRUE(std::filesystem::exists(run->path())) << "it is still held";
  const auto memory = with({"troupe.run-directory=/dev/shm/troupe", "troupe.local.dir=" + folder + "/disk"});
  const auto made = make_local_directories(memory, "session", [](const error& why) { ADD_FAILURE() << why.message; });
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(only_memory(memory, *made), "");
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace troupe
