#include <troupe/runtime/storage/new_file.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace troupe {
namespace {

namespace fs = std::filesystem;

class new_file_test : public ::testing::Test {
protected:
  new_file_test() {
    std::string name = (fs::temp_directory_path() / "troupe-new-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("mkdtemp failed");
    directory = name;
    path = directory + "/file";
  }
  ~new_file_test() override { fs::remove_all(directory); }

  bool is_empty() const { return fs::is_empty(directory); }
  std::string content() const {
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  std::string directory;
  std::string path;
};

class new_file_named : public new_file_test, public ::testing::WithParamInterface<new_file::naming> {};

TEST_P(new_file_named, is_there_when_it_was_kept) {
  {
    new_file file{path, GetParam()};
    ASSERT_TRUE(file) << file.error();
    ASSERT_EQ(::write(file.get(), "text", 4), 4);
    EXPECT_EQ(file.keep(), 0);
    EXPECT_EQ(content(), "text");
  }
  EXPECT_EQ(content(), "text");
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

TEST_P(new_file_named, goes_where_it_was_not_kept) {
  {
    new_file file{path, GetParam()};
    ASSERT_TRUE(file);
  }
  EXPECT_TRUE(is_empty());
}

TEST_P(new_file_named, takes_nobodys_place) {
  std::ofstream{path} << "before";
  {
    new_file file{path, GetParam()};
    EXPECT_EQ(file ? file.keep() : file.error(), EEXIST);
  }
  EXPECT_EQ(content(), "before");
}

TEST_P(new_file_named, says_why_it_cannot_be_opened) {
  const new_file file{directory + "/missing/file", GetParam()};
  EXPECT_FALSE(file);
  EXPECT_EQ(file.error(), ENOENT);
}

INSTANTIATE_TEST_SUITE_P(any, new_file_named, ::testing::Values(new_file::naming::when_kept, new_file::naming::at_once),
                         [](const auto& info) {
                           return info.param == new_file::naming::at_once ? "at_once" : "when_kept";
                         });

TEST_F(new_file_test, is_not_seen_before_it_is_kept) {
  const int probe = ::open(directory.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system of " << directory << " knows no files without a name";
  ::close(probe);
  new_file file{path};
  ASSERT_TRUE(file);
  EXPECT_TRUE(is_empty());
  ASSERT_EQ(file.keep(), 0);
  EXPECT_FALSE(is_empty());
}

} // namespace
} // namespace troupe
