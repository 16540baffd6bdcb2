#include <fstream>

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <troupe/runtime/execution/remove_tree.hpp>

#include "as_anybody.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

namespace fs = std::filesystem;

TEST(remove_tree, takes_folders_that_were_made_read_only_and_no_more) {
  const scratch_directory scratch;
  fs::permissions(scratch.path(), fs::perms::all);
  const as_anybody here;
  const auto tree = scratch.file("tree");
  const auto outside = scratch.file("outside");
  fs::create_directories(tree + "/a/b/c");
  fs::create_directories(outside + "/kept");
  std::ofstream{tree + "/a/b/c/file"} << "text";
  std::ofstream{outside + "/file"} << "text";
  fs::create_directory_symlink(outside, tree + "/a/b/link");
  fs::permissions(tree + "/a/b/c", fs::perms::owner_read);
  fs::permissions(tree + "/a/b", fs::perms::owner_read | fs::perms::owner_exec);
  fs::permissions(tree + "/a", fs::perms::none);
  fs::permissions(outside, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(remove_tree(tree));
  EXPECT_FALSE(fs::exists(tree));
  EXPECT_EQ(content_of(outside + "/file"), "text");
  EXPECT_EQ(fs::status(outside).permissions(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_TRUE(remove_tree(tree)) << "where nothing is";
  EXPECT_FALSE(remove_tree("/proc/self/environ"));
  fs::permissions(outside, fs::perms::owner_all);
}

TEST(remove_tree, takes_trees_that_are_deeper_than_there_are_descriptors) {
  const scratch_directory scratch;
  const auto tree = scratch.file("tree");
  fs::create_directory(tree);
  int folder = ::open(tree.c_str(), O_PATH | O_DIRECTORY);
  for (int depth = 0; depth < 3000; ++depth) { // longer than a path may be
    ASSERT_EQ(::mkdirat(folder, "folder", 0700), 0);
    const int next = ::openat(folder, "folder", O_PATH | O_DIRECTORY);
    ::close(folder);
    ASSERT_GE(folder = next, 0);
  }
  ::close(folder);
  std::ofstream{tree + "/.deep-1"} << "a name that is taken";
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{256, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_TRUE(remove_tree(tree));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(fs::exists(tree));
}

/// What a process in a view of the file systems of its own sees: 0 as it should be, 77 where it may not have one.
int remove_beside_a_mount(const std::string& tree, const std::string& precious) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (::mount(precious.c_str(), (tree + "/a/mounted").c_str(), nullptr, MS_BIND, nullptr) != 0) return 77;
  if (remove_tree(tree)) return 1;
  if (!fs::exists(tree + "/a/mounted/file")) return 2;
  if (fs::exists(tree + "/b")) return 3;
  if (::umount((tree + "/a/mounted").c_str()) != 0) return 4;
  return remove_tree(tree) ? 0 : 5;
}

/// As where a command has mounted a view of the user's data, and was killed.
TEST(remove_tree, leaves_what_is_mounted_below) {
  const scratch_directory scratch;
  const auto tree = scratch.file("tree");
  const auto precious = scratch.file("precious");
  fs::create_directories(tree + "/a/mounted");
  fs::create_directories(tree + "/b");
  fs::create_directories(precious);
  std::ofstream{precious + "/file"} << "the only copy";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(remove_beside_a_mount(tree, precious));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this process may not mount anything";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(content_of(precious + "/file"), "the only copy");
}

} // namespace
} // namespace troupe::testing_execution
