#include <filesystem>

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>

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

} // namespace
} // namespace troupe
