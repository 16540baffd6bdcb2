#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include <stdlib.h>

#include <troupe/runtime/api/input_files.hpp>
#include <troupe/runtime/api/serialize.hpp>

namespace {

namespace fs = std::filesystem;
using troupe::find_input_files;
using troupe::input_file;

class input_files : public testing::Test {
protected:
  input_files() {
    std::string name = (fs::temp_directory_path() / "troupe-input-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    folder_ = name;
  }
  ~input_files() override { fs::remove_all(folder_); }

  void write(const std::string& name, std::string_view text) { std::ofstream{folder_ / name} << text; }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  /// Names without the folder.
  std::vector<std::string> found(const std::vector<std::string>& patterns) {
    const auto files = find_input_files(patterns);
    if (!files) return {"error: " + files.error().message};
    std::vector<std::string> names;
    for (const auto& file : *files) names.push_back(fs::path{file.path}.filename());
    return names;
  }

  fs::path folder_;
};

TEST_F(input_files, a_file_with_several_names_comes_once_under_its_own) {
  write("GPL-3", "text");
  fs::create_symlink("GPL-3", folder_ / "GPL"); // sorts before what it points to
  fs::create_hard_link(folder_ / "GPL-3", folder_ / "hard");
  write("BSD", "other");
  EXPECT_EQ(found({at("*")}), (std::vector<std::string>{"BSD", "GPL-3"}));
  EXPECT_EQ(found({at("GPL")}), std::vector<std::string>{"GPL"}) << "a link alone keeps the name that was asked for";
  EXPECT_EQ(found({at("GPL"), at("GPL-3"), at("B*")}), (std::vector<std::string>{"BSD", "GPL-3"}));
}

TEST_F(input_files, sizes_and_absolute_paths_are_those_of_the_target) {
  write("a", "12345");
  fs::create_symlink("a", folder_ / "link");
  const auto files = find_input_files({at("link")});
  ASSERT_TRUE(files);
  EXPECT_EQ(*files, (std::vector<input_file>{{at("link"), 5}}));
}

TEST_F(input_files, what_is_not_there_is_an_error_that_names_it) {
  write("a", "");
  fs::create_directory(folder_ / "sub");
  const auto code = [](const auto& r) { return r ? troupe::ec::none : r.error().code; };
  const auto nothing = find_input_files({at("a"), at("*.txt")});
  EXPECT_EQ(code(nothing), troupe::ec::not_found);
  EXPECT_NE(nothing.error().message.find("*.txt"), std::string::npos);
  EXPECT_EQ(code(find_input_files({at("b")})), troupe::ec::not_found);
  EXPECT_EQ(code(find_input_files({at("sub*")})), troupe::ec::not_found) << "directories are no files";
  const auto directory = find_input_files({at("sub")});
  EXPECT_EQ(code(directory), troupe::ec::invalid_argument);
  EXPECT_NE(directory.error().message.find("sub/*"), std::string::npos) << directory.error().message;
  EXPECT_EQ(code(find_input_files({})), troupe::ec::invalid_argument);
}

TEST_F(input_files, what_cannot_be_looked_at_is_not_left_out) {
  fs::create_directories(folder_ / "day/one");
  write("day/one/x", "text");
  fs::create_directory(folder_ / "day/two"); // has no x
  EXPECT_EQ(found({at("day/*/x")}), std::vector<std::string>{"x"});
  fs::create_symlink("three", folder_ / "day/three"); // which nobody can follow to its end
  for (const auto* const pattern : {"day/*/x", "day/t*ee/*", "day/thre*", "day/three"}) {
    const auto files = find_input_files({at(pattern)});
    ASSERT_FALSE(files) << pattern;
    EXPECT_EQ(files.error().code, troupe::ec::io) << pattern;
    EXPECT_NE(files.error().message.find(at("day/three")), std::string::npos) << files.error().message;
    EXPECT_NE(files.error().message.find("Too many levels of symbolic links"), std::string::npos);
  }
  fs::remove(folder_ / "day/three");
  fs::create_symlink("nowhere", folder_ / "day/one/y");
  for (const auto* const name : {"day/one/*", "day/one/y"})
    EXPECT_EQ(found({at(name)}), std::vector<std::string>{"error: cannot look at '" + at("day/one/y") +
                                                          "': it is a link to what is not there"});
}

TEST_F(input_files, names_are_what_the_system_takes_them_for) {
  fs::create_directories(folder_ / "other/deep");
  fs::create_directory(folder_ / "[day]");
  write("other/data", "12345");
  write("[day]/data", "1");
  fs::create_directory_symlink("../other/deep", folder_ / "[day]/link");
  const auto of_link = find_input_files({at("[[]day]/link/../data")});
  ASSERT_TRUE(of_link) << of_link.error().message;
  EXPECT_EQ(of_link->front().bytes, 5u) << "'..' of what the link points to";
  const auto before = fs::current_path();
  fs::current_path(folder_ / "[day]");
  EXPECT_EQ(found({"dat*"}), std::vector<std::string>{"data"}) << "where a program runs is no pattern";
  fs::current_path(before);
  EXPECT_EQ(found({""}), std::vector<std::string>{"error: an input file has no name"});
}

TEST_F(input_files, a_name_that_exists_is_no_pattern) {
  write("sample1.txt", "beta");
  EXPECT_EQ(found({at("sample[1].txt")}), std::vector<std::string>{"sample1.txt"});
  write("sample[1].txt", "alpha");
  EXPECT_EQ(found({at("sample[1].txt")}), std::vector<std::string>{"sample[1].txt"});
  EXPECT_EQ(found({at("sample[1].txt"), at("sample1.txt")}),
            (std::vector<std::string>{"sample1.txt", "sample[1].txt"}));
}

std::vector<std::vector<std::string>> groups(const std::vector<input_file>& files, std::uint32_t partitions) {
  const auto column = troupe::detail::group_files(files, partitions);
  std::vector<std::vector<std::string>> paths;
  for (std::size_t i = 0; i < column->size(); ++i) {
    auto& group = paths.emplace_back();
    for (const auto& range : troupe::decode_value<std::vector<troupe::detail::file_range>>((*column)[i])) {
      group.push_back(range.path);
      EXPECT_EQ(std::tuple(range.begin, range.end), std::tuple(0u, range.size)) << range.path;
    }
  }
  return paths;
}

TEST(group_files, one_partition_per_file_unless_fewer_are_asked_for) {
  const std::vector<input_file> files{{"a", 1}, {"b", 2}, {"c", 3}};
  const std::vector<std::vector<std::string>> each{{"a"}, {"b"}, {"c"}};
  EXPECT_EQ(groups(files, 0), each);
  EXPECT_EQ(groups(files, 3), each);
  EXPECT_EQ(groups(files, 9), each);
  EXPECT_EQ(groups(files, 1), (std::vector<std::vector<std::string>>{{"a", "b", "c"}}));
}

TEST(group_files, runs_have_about_equally_many_bytes_and_none_is_empty) {
  EXPECT_EQ(groups({{"a", 10}, {"b", 10}, {"c", 10}, {"d", 10}}, 2),
            (std::vector<std::vector<std::string>>{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(groups({{"big", 1000}, {"b", 1}, {"c", 1}, {"d", 1}}, 2),
            (std::vector<std::vector<std::string>>{{"big"}, {"b", "c", "d"}}));
  EXPECT_EQ(groups({{"a", 1}, {"b", 1}, {"big", 1000}}, 3),
            (std::vector<std::vector<std::string>>{{"a"}, {"b"}, {"big"}}));
  EXPECT_EQ(groups({{"a", 0}, {"b", 0}, {"c", 0}, {"d", 0}}, 2),
            (std::vector<std::vector<std::string>>{{"a", "b"}, {"c", "d"}}));
}

} // namespace
