#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

#include <troupe/runtime/execution/handed_files.hpp>
#include <troupe/runtime/storage/page.hpp>

#include "runner_fixture.hpp"

namespace troupe::testing_execution {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

void write(const std::string& path, const std::string& text) { std::ofstream{path} << text; }

std::string read(const std::string& path) {
  std::ifstream file{path};
  return (std::ostringstream{} << file.rdbuf()).str();
}

/// One block set that an executor keeps.
class kept_files : public shuffle_source {
public:
  explicit kept_files(block_content content) : content_(std::move(content)) {}
  void read(const shuffle_input&, std::uint32_t, const std::function<void(std::string_view)>&) override {}
  void read_partition(const partition_place& what, std::uint32_t bucket,
                      const std::function<void(std::string_view)>& each) override {
    if (bucket >= content_.pages.size() || what.stage != stage_id{3})
      throw fetch_failure("no block", what.stage, what.partition, what.attempt, what.from.executor);
    asked.push_back(bucket);
    for (const auto& page : content_.pages[bucket]) {
      page_reader reader{page};
      each(*reader.next());
    }
  }
  void forget(executor_id) override {}

  std::vector<std::uint32_t> asked;

private:
  block_content content_;
};

class handed_files : public ::testing::Test {
protected:
  handed_files() {
    for (int i = 0; text_.size() < 3'000'000; ++i) text_ += std::to_string(i) + '\n';
    write(scratch_.file("one.txt"), text_);
    write(scratch_.file("empty"), "");
    fs::permissions(scratch_.file("one.txt"), static_cast<fs::perms>(0750));
  }
  std::vector<std::string> paths() const { return {scratch_.file("one.txt"), scratch_.file("empty")}; }
  std::vector<packed_file> files() const { return {{paths()[0], paths()[0]}, {paths()[1], paths()[1]}}; }
  std::string copies() const { return scratch_.file("copies"); }

  scratch_directory scratch_;
  std::string text_;
  partition_place input_{{}, stage_id{3}, 7, 1, {}};
  stop_event stop_;
};

TEST_F(handed_files, that_lie_where_they_were_published_are_not_copied) {
  kept_files kept{pack_files(files(), {}, stop_)};
  const auto places = unpack_files(kept, input_, copies(), stop_);
  EXPECT_EQ(places.at(paths()[0]), paths()[0]);
  EXPECT_EQ(places.at(paths()[1]), paths()[1]);
  EXPECT_EQ(kept.asked, std::vector<std::uint32_t>{0}) << "the list is enough";
  EXPECT_FALSE(fs::exists(copies()));
}

TEST_F(handed_files, are_listed_as_what_they_will_be_and_found_there_when_they_were_moved) {
  fs::create_directory(scratch_.file("out"));
  const auto moved = scratch_.file("out/one.txt");
  kept_files kept{pack_files({{paths()[0], moved}}, {}, stop_)};
  EXPECT_EQ(read(unpack_files(kept, input_, copies(), stop_).at(moved)), text_) << "from the block";
  fs::remove_all(copies());
  fs::rename(paths()[0], moved);
  EXPECT_EQ(unpack_files(kept, input_, copies(), stop_).at(moved), moved);
  EXPECT_FALSE(fs::exists(copies()));
}

TEST_F(handed_files, that_are_not_there_are_copied_under_their_names) {
  kept_files kept{pack_files(files(), {}, stop_)};
  for (const auto& path : paths()) fs::remove(path);
  const auto places = unpack_files(kept, input_, copies(), stop_);
  const auto& one = places.at(paths()[0]);
  EXPECT_EQ(fs::path{one}.filename(), "one.txt");
  EXPECT_EQ(read(one), text_);
  EXPECT_EQ(static_cast<unsigned>(fs::status(one).permissions()), 0750u);
  EXPECT_TRUE(fs::exists(places.at(paths()[1])));
  EXPECT_EQ(fs::file_size(places.at(paths()[1])), 0u);
}

TEST_F(handed_files, keep_their_holes_mode_and_time) {
  const auto sparse = scratch_.file("sparse");
  write(sparse, "begin");
  fs::resize_file(sparse, 16 << 20);
  std::ofstream{sparse, std::ios::app} << "middle";
  fs::resize_file(sparse, 20 << 20);
  fs::permissions(sparse, static_cast<fs::perms>(0444));
  for (const auto age : {std::chrono::hours{1'000}, std::chrono::hours{1'000'000}}) { // the latter before 1970
    const auto time = std::chrono::time_point_cast<std::chrono::seconds>(fs::file_time_type::clock::now() - age);
    fs::last_write_time(sparse, time);
    kept_files kept{pack_files({{sparse, scratch_.file("elsewhere")}}, {}, stop_)};
    const auto copy = unpack_files(kept, input_, copies(), stop_).at(scratch_.file("elsewhere"));
    EXPECT_TRUE(read(copy) == read(sparse));
    struct stat status {};
    ASSERT_EQ(::stat(copy.c_str(), &status), 0);
    EXPECT_LT(status.st_blocks * 512, 1 << 20) << "holes stay holes";
    EXPECT_EQ(status.st_mode & 07777u, 0444u);
    EXPECT_EQ(fs::last_write_time(copy), time);
    fs::remove_all(copies());
  }
}

TEST_F(handed_files, are_neither_kept_nor_copied_for_who_was_asked_to_end) {
  kept_files kept{pack_files(files(), {}, stop_)};
  fs::remove(paths()[0]);
  stop_.request();
  EXPECT_THROW(pack_files(files(), {}, stop_), std::runtime_error);
  EXPECT_THROW(unpack_files(kept, input_, copies(), stop_), std::runtime_error);
}

TEST_F(handed_files, another_file_of_the_same_name_is_not_taken_for_it) {
  kept_files kept{pack_files(files(), {}, stop_)};
  write(paths()[0], std::string(text_.size(), 'x'));
  const auto places = unpack_files(kept, input_, copies(), stop_);
  EXPECT_NE(places.at(paths()[0]), paths()[0]);
  EXPECT_EQ(read(places.at(paths()[0])), text_);
}

TEST_F(handed_files, that_nobody_keeps_are_missed) {
  kept_files kept{pack_files(files(), {}, stop_)};
  input_.stage = stage_id{4};
  EXPECT_THROW(unpack_files(kept, input_, copies(), stop_), fetch_failure);
}

TEST_F(handed_files, a_list_or_a_file_that_is_cut_short_is_noticed) {
  block_content cut = pack_files(files(), {}, stop_);
  fs::remove(paths()[0]);
  auto& pages = cut.pages[1];
  ASSERT_GT(pages.size(), 1u);
  pages.pop_back();
  kept_files kept{std::move(cut)};
  try {
    unpack_files(kept, input_, copies(), stop_);
    FAIL() << "it takes a part for the whole";
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("one.txt"), HasSubstr("of " + std::to_string(text_.size()))));
  }
  kept_files garbage{block_content::of("no list", {})};
  EXPECT_THROW(unpack_files(garbage, input_, copies(), stop_), std::runtime_error);
}

TEST_F(handed_files, that_cannot_be_read_are_named) {
  fs::remove(paths()[1]);
  try {
    pack_files(files(), {}, stop_);
    FAIL();
  } catch (const std::runtime_error& e) {
    EXPECT_THAT(e.what(), HasSubstr(paths()[1]));
  }
}

TEST(file_systems, of_this_machine_alone_may_differ) {
  scratch_directory scratch;
  EXPECT_TRUE(may_differ_between_hosts(scratch.path().string()));
  EXPECT_TRUE(may_differ_between_hosts("/not/there"));
}

} // namespace
} // namespace troupe::testing_execution
