#include <gmock/gmock-more-matchers.h>

#include <cstdint>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <troupe/runtime/execution/file_move.hpp>

#include "as_anybody.hpp"
#include "elsewhere.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

namespace fs = std::filesystem;

struct stat status_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

/// Data at the beginning, in the middle and at the end, holes between.
void make_sparse(const std::string& path, off_t size) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  ASSERT_GE(fd, 0);
  for (const off_t at : {off_t{0}, size / 2, size - 4}) EXPECT_EQ(::pwrite(fd, "data", 4, at), 4);
  EXPECT_EQ(::ftruncate(fd, size + 4096), 0) << "and a hole at the end";
  ::close(fd);
}

class file_move : public ::testing::Test {
protected:
  /// In memory where `from_memory`, else in the temporary directory.
  std::string source(bool from_memory) const { return (from_memory ? other.path : scratch.path().string()) + "/from"; }

  scratch_directory scratch;
  elsewhere other{scratch.path().string()};
  std::string to = scratch.file("to");
};

TEST_F(file_move, leaves_holes_what_they_are) {
  constexpr off_t size = off_t{1} << 32;
  for (const bool from_memory : {false, true}) {
    if (from_memory && other.path.empty()) continue;
    const auto from = source(from_memory);
    make_sparse(from, size);
    ASSERT_EQ(copy_file_as_it_is(from, to), 0);
    const auto copy = status_of(to);
    EXPECT_EQ(copy.st_size, size + 4096);
    EXPECT_LT(copy.st_blocks * 512, 1 << 20) << "of 4 GiB";
    std::ifstream file{to};
    for (const off_t at : {off_t{0}, size / 2, size - 4}) {
      std::string data(4, ' ');
      file.seekg(at);
      file.read(data.data(), 4);
      EXPECT_EQ(data, "data") << at;
    }
    fs::remove(to);
    fs::remove(from);
  }
}

TEST_F(file_move, keeps_mode_times_and_attributes) {
  if (other.path.empty()) GTEST_SKIP() << "/dev/shm is no other file system here";
  const auto from = source(true);
  std::ofstream{from} << "text";
  const bool takes_attributes = ::setxattr(from.c_str(), "user.origin", "probe", 5, 0) == 0;
  ASSERT_EQ(::chmod(from.c_str(), 02751), 0);
  const timespec times[2] = {{1'000'000'000, 123'456'789}, {1'100'000'000, 987'654'321}};
  ASSERT_EQ(::utimensat(AT_FDCWD, from.c_str(), times, 0), 0);
  ASSERT_EQ(move_to_new(from, to), 0);
  EXPECT_FALSE(fs::exists(from));
  const auto moved = status_of(to);
  EXPECT_EQ(moved.st_mode & 07777, 02751u);
  EXPECT_EQ(moved.st_mtim.tv_sec, 1'100'000'000);
  EXPECT_EQ(moved.st_mtim.tv_nsec, 987'654'321);
  if (!takes_attributes) return; // neither does the copy then
  char value[16] = {};
  EXPECT_EQ(::getxattr(to.c_str(), "user.origin", value, sizeof value), 5);
  EXPECT_STREQ(value, "probe");
}

TEST_F(file_move, gives_the_file_the_group_of_a_folder_that_hands_its_group_on) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has other groups to give away for sure";
  constexpr gid_t group = 12345;
  for (const bool from_memory : {false, true}) {
    if (from_memory && other.path.empty()) continue;
    const auto folder = scratch.file(from_memory ? "copied" : "renamed");
    fs::create_directory(folder);
    ASSERT_EQ(::chown(folder.c_str(), static_cast<uid_t>(-1), group), 0);
    const auto from = source(from_memory);
    std::ofstream{from} << "text";
    ASSERT_EQ(::chmod(from.c_str(), 02750), 0);
    ASSERT_EQ(move_to_new(from, folder + "/plain"), 0);
    EXPECT_NE(status_of(folder + "/plain").st_gid, group) << "the folder does not hand it on";
    ASSERT_EQ(::chmod(folder.c_str(), 02775), 0);
    std::ofstream{from} << "text";
    ASSERT_EQ(::chmod(from.c_str(), 02750), 0);
    ASSERT_EQ(move_to_new(from, folder + "/file"), 0);
    EXPECT_EQ(status_of(folder + "/file").st_gid, group);
    EXPECT_EQ(status_of(folder + "/file").st_mode & 07777, 02750u);
    std::ofstream{from} << "newer";
    ASSERT_EQ(move_over(from, folder + "/file", folder + "/.beside"), 0);
    EXPECT_EQ(content_of(folder + "/file"), "newer");
    EXPECT_EQ(status_of(folder + "/file").st_gid, group);
    EXPECT_FALSE(fs::exists(folder + "/.beside"));
  }
}

TEST_F(file_move, leaves_the_group_of_a_file_that_has_other_names) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has other groups to give away for sure";
  const auto folder = scratch.file("folder");
  fs::create_directory(folder);
  ASSERT_EQ(::chown(folder.c_str(), static_cast<uid_t>(-1), 12345), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 02775), 0);
  std::ofstream{scratch.file("input")} << "the user's own";
  const auto before = status_of(scratch.file("input")).st_gid;
  fs::create_hard_link(scratch.file("input"), scratch.file("linked"));
  ASSERT_EQ(move_to_new(scratch.file("linked"), folder + "/output"), 0);
  EXPECT_EQ(status_of(scratch.file("input")).st_gid, before);
}

TEST_F(file_move, copies_what_its_owner_may_not_read) {
  fs::permissions(scratch.path(), fs::perms::all);
  const as_anybody here;
  const auto from = source(false);
  std::ofstream{from} << "text";
  ASSERT_EQ(::chmod(from.c_str(), 0200), 0);
  EXPECT_EQ(copy_file_as_it_is(from, to), 0);
  EXPECT_EQ(status_of(to).st_mode & 07777, 0200u);
  EXPECT_EQ(status_of(from).st_mode & 07777, 0200u);
  EXPECT_EQ(status_of(to).st_size, 4);
}

/// A file that runs as its owner must not run as somebody else.
TEST_F(file_move, gives_no_copy_rights_of_its_own_owner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of somebody else";
  fs::permissions(scratch.path(), fs::perms::all);
  const auto from = source(false);
  std::ofstream{from} << "text";
  ASSERT_EQ(::chmod(from.c_str(), 06755), 0);
  {
    const as_anybody here;
    ASSERT_EQ(copy_file_as_it_is(from, to), 0);
  }
  EXPECT_EQ(status_of(to).st_mode & 07777, 0755u);
  ASSERT_EQ(::chown(from.c_str(), 54321, 12345), 0);
  ASSERT_EQ(::chmod(from.c_str(), 06755), 0);
  fs::remove(to);
  ASSERT_EQ(copy_file_as_it_is(from, to), 0);
  EXPECT_EQ(status_of(to).st_uid, 54321u);
  EXPECT_EQ(status_of(to).st_gid, 12345u);
  EXPECT_EQ(status_of(to).st_mode & 07777, 06755u);
}

TEST_F(file_move, leaves_nothing_where_it_fails) {
  EXPECT_EQ(move_to_new(scratch.file("nothing"), to), ENOENT);
  const auto from = scratch.file("from");
  fs::create_symlink("/etc/passwd", from);
  EXPECT_EQ(copy_file_as_it_is(from, to), ELOOP);
  EXPECT_EQ(copy_file_as_it_is("/dev/null", to), EINVAL);
  EXPECT_FALSE(fs::exists(to));
  std::ofstream{to} << "there";
  EXPECT_EQ(copy_file_as_it_is("/etc/passwd", to), EEXIST);
  EXPECT_EQ(content_of(to), "there");
}

} // namespace
} // namespace troupe::testing_execution
