// Lines in a file: whole or not at all.

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/stat.h>

#include <troupe/runtime/events/line_file.hpp>

namespace troupe::events {
namespace {

using ::testing::HasSubstr;

struct lines_in_a_file : ::testing::Test {
  std::string directory = [] {
    std::string name = ::testing::TempDir() + "line-file-XXXXXX";
    return std::string{mkdtemp(name.data())};
  }();
  std::string path = directory + "/lines";

  ~lines_in_a_file() override { std::filesystem::remove_all(directory); }
  std::string content() const {
    std::ostringstream out;
    out << std::ifstream{path}.rdbuf();
    return out.str();
  }
};

TEST_F(lines_in_a_file, are_there_at_once_for_the_owner_alone) {
  auto file = line_file::create(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE((*file)->append("one\n"));
  EXPECT_TRUE((*file)->append("two\n"));
  EXPECT_EQ(content(), "one\ntwo\n");
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
}

TEST_F(lines_in_a_file, never_replace_another_file) {
  std::ofstream{path} << "precious";
  const auto file = line_file::create(path);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().message, HasSubstr(path + ": File exists"));
  EXPECT_EQ(content(), "precious");
}

TEST_F(lines_in_a_file, are_whole_or_not_there) {
  auto file = line_file::create(path);
  ASSERT_TRUE(file);
  ASSERT_TRUE((*file)->append("complete\n"));
  // The system takes a part of the next line and no more: what a full disk does.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 12;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto half = (*file)->append("does not fit\n");
  const auto none = (*file)->append("nor does this one, by far\n");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(half);
  EXPECT_THAT(half.error().message, HasSubstr("no room for all of a line"));
  EXPECT_FALSE(none);
  EXPECT_EQ(content(), "complete\n");
  EXPECT_TRUE((*file)->append("after it\n"));
  EXPECT_EQ(content(), "complete\nafter it\n");
}

} // namespace
} // namespace troupe::events
