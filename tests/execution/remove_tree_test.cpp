#include <fstream>

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

} // namespace
} // namespace troupe::testing_execution
