#include <filesystem>
#include <fstream>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <troupe/runtime/config/file_place.hpp>

namespace troupe::testing::file_place_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Not;

/// A fresh folder with `real/data/x`, a link `linked` to `real`, and a link `to-x` to the file.
class file_place : public ::testing::Test {
protected:
  file_place() {
    auto text = (fs::temp_directory_path() / "troupe-place-XXXXXX").string();
    base_ = ::mkdtemp(text.data());
    fs::create_directories(base_ + "/real/data");
    std::ofstream{base_ + "/real/data/x"} << "x";
    fs::create_symlink("real", base_ + "/linked");
    fs::create_symlink("linked/data/x", base_ + "/to-x");
  }
  ~file_place() override { fs::remove_all(base_); }

  std::string place(const std::string& path) { return places_.place(base_ + "/" + path); }
  std::vector<std::string> way(const std::string& path) { return places_.way(base_ + "/" + path); }

  std::string base_;
  file_places places_;
};

TEST_F(file_place, is_one_however_it_is_spelled) {
  EXPECT_EQ(place("linked/data/x"), place("real/data/x"));
  EXPECT_EQ(place("linked/data/../data/x"), place("real/data/x"));
  EXPECT_EQ(place("real/data/none/y"), place("linked/data/none/y")) << "also where nothing is";
  EXPECT_NE(place("real/data/x"), place("real/data/y"));
  EXPECT_NE(place("real/data/X"), place("real/data/x"));
  EXPECT_EQ(places_.folder(base_ + "/linked/data/x"), places_.folder(base_ + "/real/data/y"));
}

TEST_F(file_place, goes_up_from_where_a_link_leads) {
  fs::create_directories(base_ + "/deep/er");
  fs::create_symlink("deep/er", base_ + "/down");
  EXPECT_EQ(place("down/../z"), place("deep/z"));
  EXPECT_EQ(place("down/none/../z"), place("deep/er/z"));
}

TEST_F(file_place, of_a_link_is_not_that_of_its_file_and_both_are_passed) {
  EXPECT_NE(place("to-x"), place("real/data/x"));
  EXPECT_THAT(way("to-x"), Contains(place("to-x")));
  EXPECT_THAT(way("to-x"), Contains(place("linked")));
  EXPECT_EQ(way("to-x").back(), place("real/data/x"));
  EXPECT_THAT(way("real/data/x"), Contains(place("real/data")));
  EXPECT_THAT(way("real/data/x"), Not(Contains(place("linked"))));
}

TEST_F(file_place, is_found_though_links_lead_in_a_circle) {
  fs::create_symlink("round", base_ + "/round");
  EXPECT_THAT(way("round/x"), Contains(place("round")));
}

TEST_F(file_place, is_one_for_names_that_a_folder_does_not_tell_apart) {
  places_ = file_places{[&](const std::string& folder) { return folder == fs::canonical(base_ + "/real").string(); }};
  EXPECT_EQ(place("real/Å.TXT"), place("real/å.txt"));
  EXPECT_EQ(place("real/New/File"), place("real/new/fILE")) << "what is to be made there is like its folder";
  EXPECT_NE(place("real/a"), place("real/b"));
  EXPECT_NE(place("real/\xff"), place("real/\xfe")) << "bytes that are no text";
  EXPECT_NE(place("real/data/X"), place("real/data/x"));
}

TEST_F(file_place, asks_the_folder) {
  EXPECT_FALSE(folds_case(base_ + "/real/data"));
  EXPECT_FALSE(folds_case(base_ + "/none"));
  fs::create_hard_link(base_ + "/real/data/x", base_ + "/real/data/X");
  EXPECT_FALSE(folds_case(base_ + "/real/data")) << "two names of one file";
}

} // namespace
} // namespace troupe::testing::file_place_tests
