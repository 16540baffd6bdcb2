#include <gmock/gmock-more-matchers.h>

#include <fstream>
#include <random>

#include <fcntl.h>
#include <unistd.h>

#include <troupe/runtime/execution/attempts_directories.hpp>
#include <troupe/runtime/execution/files_in_memory.hpp>

#include "as_anybody.hpp"
#include "elsewhere.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

class attempts_directories : public ::testing::Test {
protected:
  std::string folder(const std::string& name) const {
    fs::create_directory(scratch.file(name));
    return scratch.file(name);
  }
  scratch_directory scratch;
  std::string session = folder("session");
};

TEST_F(attempts_directories, lie_elsewhere_and_are_found_by_the_session) {
  const auto made = make_attempts_directories(session, {folder("a"), folder("b")}, "executor-1");
  ASSERT_TRUE(made) << made.error().message;
  const auto a = scratch.file("a/attempts-executor-1");
  const auto b = scratch.file("b/attempts-executor-1");
  EXPECT_THAT(*made, ElementsAre(a, b));
  EXPECT_EQ(fs::status(a).permissions(), fs::perms::owner_all);
  ASSERT_TRUE(make_attempts_directories(session, {scratch.file("a")}, "executor-11"));
  EXPECT_THAT(attempts_directories_of(session, "executor-1"), ElementsAre(a, b));
  EXPECT_THAT(all_attempts_directories(session), UnorderedElementsAre(a, b, scratch.file("a/attempts-executor-11")));
  EXPECT_THAT(attempts_directories_of(session, "executor-2"), IsEmpty());

  std::ofstream{b + "/file"} << "text";
  remove_attempts_directories(session, "executor-1");
  EXPECT_FALSE(fs::exists(a) || fs::exists(b));
  EXPECT_THAT(all_attempts_directories(session), ElementsAre(scratch.file("a/attempts-executor-11")));
}

TEST_F(attempts_directories, may_lie_in_the_session_s_own) {
  const auto made = make_attempts_directories(session, {session}, "executor-1");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(*made, ElementsAre(session + "/attempts-executor-1"));
  EXPECT_THAT(attempts_directories_of(session, "executor-1"), ElementsAre(session + "/attempts-executor-1"));
  EXPECT_THAT(all_attempts_directories(session), ElementsAre(session + "/attempts-executor-1"));
  remove_attempts_directories(session, "executor-1");
  EXPECT_TRUE(fs::is_empty(session));
}

TEST_F(attempts_directories, may_lie_in_the_session_s_own_and_elsewhere) {
  const auto b = folder("b");
  for (const auto& parents : {std::vector<std::string>{b, session}, {session, b}}) {
    const auto made = make_attempts_directories(session, parents, "executor-1");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(*made, ElementsAre(session + "/attempts-executor-1", b + "/attempts-executor-1"));
    EXPECT_EQ(attempts_directories_of(session, "executor-1"), *made);
    EXPECT_THAT(all_attempts_directories(session), UnorderedElementsAre(made->at(0), made->at(1)));
    EXPECT_FALSE(fs::is_symlink(made->at(0)) || fs::is_symlink(made->at(1)));
    remove_attempts_directories(session, "executor-1");
  }
}

TEST_F(attempts_directories, do_without_one_that_does_not_work) {
  const auto made = make_attempts_directories(session, {"/proc/self", folder("b")}, "executor-1");
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(*made, ElementsAre(scratch.file("b/attempts-executor-1")));
  EXPECT_EQ(attempts_directories_of(session, "executor-1"), *made);
  const auto none = make_attempts_directories(session, {"/proc/self"}, "executor-2");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("/proc/self/attempts-executor-2"));
}

/// Which no file system can make smaller.
std::string noise(std::size_t bytes) {
  std::mt19937 random{7}; // NOLINT(*-msc51-cpp): the same in each run
  std::string text(bytes, ' ');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

/// A file system may give a file its place only then.
void settle(const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  ::fsync(fd);
  ::close(fd);
}

TEST(files_in_memory, of_a_folder_that_cannot_be_read_hide_no_others) {
  const scratch_directory scratch;
  fs::permissions(scratch.path(), fs::perms::all);
  const as_anybody here;
  std::string name = "0";
  for (; name < "8"; ++name.front()) { // whatever order they come in
    fs::create_directory(scratch.file(name));
    fs::permissions(scratch.file(name), name < "4" ? fs::perms::none : fs::perms::owner_all);
    if (name < "4") continue;
    std::ofstream{scratch.file(name + "/file")} << noise(100'000) << std::flush;
    settle(scratch.file(name + "/file"));
  }
  EXPECT_GE(bytes_taken_below(scratch.path().string()), 400'000u);
}

TEST(files_in_memory, are_known_by_their_file_system) {
  const scratch_directory scratch;
  if (const elsewhere memory{scratch.path().string()}; !memory.path.empty())
    EXPECT_TRUE(lies_in_memory(memory.path + "/not/there/yet"));
  EXPECT_FALSE(lies_in_memory("/proc/self/environ"));
  fs::create_directory(scratch.file("sub"));
  EXPECT_EQ(bytes_taken_below(scratch.path().string()), 0u);
  std::ofstream{scratch.file("sub/file")} << noise(100'000) << std::flush;
  fs::create_symlink("/usr", scratch.file("link"));
  for (const auto* name : {"sub/1", "sub/2", "sub/3", "sub/4", "sub/5", "sub/6", "sub/7", "sub/8"})
    fs::create_hard_link(scratch.file("sub/file"), scratch.file(name));
  settle(scratch.file("sub/file"));
  EXPECT_GE(bytes_taken_below(scratch.path().string()), 100'000u);
  EXPECT_LT(bytes_taken_below(scratch.path().string()), 500'000u) << "nine names of one file";
  EXPECT_EQ(bytes_taken_below(scratch.file("nothing")), 0u);
}

} // namespace
} // namespace troupe::testing_execution
