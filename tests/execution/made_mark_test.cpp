#include <array>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <troupe/runtime/execution/made_mark.hpp>

#include "as_anybody.hpp"
#include "process_fixture.hpp"

namespace troupe::testing_execution {
namespace {

namespace fs = std::filesystem;

class made_mark : public ::testing::Test {
protected:
  void SetUp() override {
    fs::permissions(scratch.path(), fs::perms::all);
    fs::create_directory(out);
    fs::permissions(out, fs::perms::all);
    std::ofstream{scratch.file("probe")} << "text";
    if (::setxattr(scratch.file("probe").c_str(), "user.probe", "x", 1, 0) != 0)
      GTEST_SKIP() << "files here have no such attributes";
  }
  std::string file(const std::string& name) const {
    std::ofstream{out + "/" + name} << "text";
    return out + "/" + name;
  }
  staging_place place() const { return place_of("session", {12}, 3, 0, {7}, out); }

  scratch_directory scratch;
  std::string out = scratch.file("out");
};

TEST_F(made_mark, says_which_run_has_made_a_file) {
  EXPECT_EQ(made_by(out, "a").by, maker::nobody);
  const auto a = file("a");
  EXPECT_EQ(made_by(out, "a").by, maker::somebody_else);
  mark_made(a, place(), "a");
  EXPECT_EQ(made_by(out, "a").by, maker::task);
  EXPECT_EQ(made_by(out, "a").run, "session-12");
  fs::create_directory(out + "/sub");
  fs::create_symlink("a", out + "/link");
  for (const auto* other : {"sub", "link"}) EXPECT_EQ(made_by(out, other).by, maker::somebody_else) << other;
}

TEST_F(made_mark, counts_under_its_own_name_alone) {
  mark_made(file("a"), place(), "a");
  fs::rename(out + "/a", out + "/b");
  EXPECT_EQ(made_by(out, "b").by, maker::somebody_else) << "the user has put it there";
  fs::rename(out, scratch.file("moved"));
  fs::create_directories(scratch.file("elsewhere"));
  fs::rename(scratch.file("moved"), scratch.file("elsewhere/out"));
  fs::rename(scratch.file("elsewhere/out/b"), scratch.file("elsewhere/out/a"));
  EXPECT_EQ(made_by(scratch.file("elsewhere/out"), "a").by, maker::task) << "as where it is mounted by another name";
}

TEST_F(made_mark, counts_for_what_was_made_alone) {
  const auto path = file("a");
  mark_made(path, place(), "a");
  std::ofstream{path, std::ios::app} << "what the user has added";
  EXPECT_EQ(made_by(out, "a").by, maker::somebody_else);
  mark_made(file("b"), place(), "b");
  fs::last_write_time(out + "/b", fs::last_write_time(out + "/b") + std::chrono::hours{1});
  EXPECT_EQ(made_by(out, "b").by, maker::somebody_else) << "written anew, as long as before";
}

/// A file system keeps parts of seconds, of them some digits, or none.
TEST_F(made_mark, does_not_count_for_what_was_written_at_once) {
  const auto path = file("a");
  const auto write_at = [&](std::int64_t seconds, long nanoseconds) {
    const std::array<timespec, 2> times{timespec{seconds, nanoseconds}, timespec{seconds, nanoseconds}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  };
  write_at(1'800'000'000, 123'456'789);
  mark_made(path, place(), "a");
  for (const long kept : {123'456'789, 123'456'700, 123'456'000, 0}) {
    write_at(1'800'000'000, kept);
    EXPECT_EQ(made_by(out, "a").by, maker::task) << kept;
  }
  for (const long other : {123'456'790, 123'456'788, 123'000'001}) {
    write_at(1'800'000'000, other);
    EXPECT_EQ(made_by(out, "a").by, maker::somebody_else) << other;
  }
  write_at(1'800'000'001, 123'456'789);
  EXPECT_EQ(made_by(out, "a").by, maker::somebody_else);
  write_at(1'800'000'002, 0);
  EXPECT_EQ(made_by(out, "a").by, maker::task);
  write_at(1'800'000'003, 0);
  EXPECT_EQ(made_by(out, "a").by, maker::somebody_else);
}

TEST_F(made_mark, of_a_file_that_may_not_be_read_is_not_believed_in) {
  fs::permissions(file("closed"), fs::perms::none);
  const as_anybody here;
  EXPECT_EQ(made_by(out, "closed").by, maker::somebody_else);
}

TEST_F(made_mark, is_not_given_to_a_file_that_has_other_names) {
  const auto input = scratch.file("input");
  std::ofstream{input} << "the user's";
  fs::create_hard_link(input, out + "/a");
  mark_made(out + "/a", place(), "a");
  EXPECT_LT(::getxattr(input.c_str(), "user.troupe.made", nullptr, 0), 0);
}

TEST_F(made_mark, is_given_to_files_that_are_read_only_and_to_long_names) {
  const as_anybody here;
  const std::string name(250, 'n');
  const auto path = file(name);
  fs::permissions(path, fs::perms::owner_read);
  mark_made(path, place(), name);
  EXPECT_EQ(made_by(out, name).by, maker::task);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read);
}

TEST_F(made_mark, of_somebody_may_say_anything) {
  const auto path = file("a");
  for (const auto& text :
       std::vector<std::string>{"", " ", "no blank", "session-1/0.0-1 other/a", std::string(2000, 'x')}) {
    ASSERT_EQ(::setxattr(path.c_str(), "user.troupe.made", text.data(), text.size(), 0), 0);
    EXPECT_EQ(made_by(out, "a").by, maker::somebody_else) << text;
  }
}

} // namespace
} // namespace troupe::testing_execution
