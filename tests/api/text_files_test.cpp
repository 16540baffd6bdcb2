// Text files as datasets: read in pieces, and written as parts.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <troupe/runtime/api/input_files.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/api/text_output.hpp>

#include "inline_runner.hpp"

namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using troupe::input_file;
using troupe::job_error;
using troupe::detail::cut_files;
using troupe::detail::cutting;
using troupe::detail::file_range;

std::vector<std::vector<file_range>> ranges(const troupe::packed_column& column) {
  std::vector<std::vector<file_range>> all;
  for (std::size_t i = 0; i < column.size(); ++i)
    all.push_back(troupe::decode_value<std::vector<file_range>>(column[i]));
  return all;
}

TEST(cut_files, leaves_small_files_whole_and_cuts_large_ones_evenly) {
  cutting how;
  how.most = 100;
  how.least = 10;
  const auto cut = ranges(*cut_files({{"a", 100}, {"b", 0}, {"c", 250}}, 0, how));
  EXPECT_THAT(cut, ElementsAre(ElementsAre(file_range{"a", 0, 100, 100}), ElementsAre(file_range{"b", 0, 0, 0}),
                               ElementsAre(file_range{"c", 0, 83, 250}), ElementsAre(file_range{"c", 83, 166, 250}),
                               ElementsAre(file_range{"c", 166, 250, 250})));
}

TEST(cut_files, gives_everybody_something_to_do_but_no_crumbs) {
  cutting how;
  how.most = 1000;
  how.least = 10;
  how.parallelism = 8;
  EXPECT_THAT(ranges(*cut_files({{"a", 800}}, 0, how)), SizeIs(8));
  EXPECT_THAT(ranges(*cut_files({{"a", 40}}, 0, how)), SizeIs(4));
}

TEST(cut_files, shares_all_bytes_out_where_a_number_is_wanted) {
  const auto cut = ranges(*cut_files({{"a", 10}, {"b", 0}, {"c", 20}}, 2, {}));
  EXPECT_THAT(cut, ElementsAre(ElementsAre(file_range{"a", 0, 10, 10}, file_range{"c", 0, 5, 20}),
                               ElementsAre(file_range{"c", 5, 20, 20})));
  EXPECT_THAT(ranges(*cut_files({{"a", 2}}, 5, {})), SizeIs(2)) << "no more than there are bytes";
  EXPECT_THAT(ranges(*cut_files({{"a", 0}}, 5, {})), ElementsAre(IsEmpty()));
}

TEST(cut_files, makes_no_more_partitions_than_a_stage_may_have) {
  cutting how;
  how.most = 1;
  how.least = 1;
  how.most_partitions = 1000;
  for (const auto& files : {std::vector<input_file>{{"a", std::uint64_t{1} << 50}},
                            std::vector<input_file>{{"a", 999}, {"b", 1}}, std::vector<input_file>(900, {"a", 7})}) {
    const auto column = cut_files(files, 0, how);
    EXPECT_LE(column->size(), 1000u);
    EXPECT_GE(column->size(), 250u);
    EXPECT_LE(cut_files(files, 5000, how)->size(), 1000u);
  }
}

class text_files_test : public ::testing::Test {
protected:
  text_files_test() {
    std::string name = (fs::temp_directory_path() / "troupe-text-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary directory");
    folder_ = name;
  }
  ~text_files_test() override { fs::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) {
    std::ofstream{folder_ / name, std::ios::binary} << text;
    return (folder_ / name).string();
  }
  static std::string read(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream{path, std::ios::binary}.rdbuf();
    return text.str();
  }
  std::vector<std::string> names(const fs::path& directory) {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator{directory}) all.push_back(entry.path().filename());
    std::sort(all.begin(), all.end());
    return all;
  }
  template <class Action>
  std::string message_of(Action action) {
    try {
      action();
    } catch (const job_error& e) {
      return e.what();
    }
    return "no error";
  }

  fs::path folder_;
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {.default_parallelism = 2, .jobs = {}, .arguments = {}, .fake_resources = {}}};
};

TEST_F(text_files_test, have_the_same_lines_however_they_are_cut) {
  const auto a = write("a", "one\ntwo\r\n\nfour and more\n");
  const auto b = write("b", "");
  const auto c = write("c", "\n\nlast without an end");
  const std::vector<std::string> lines{"one", "two", "", "four and more", "", "", "last without an end"};
  for (std::uint32_t partitions = 0; partitions < 60; ++partitions)
    EXPECT_THAT(session_.text_files({a, b, c}, partitions).collect(), ElementsAreArray(lines)) << partitions;
}

TEST_F(text_files_test, hold_lines_longer_than_what_is_read_at_once) {
  const std::string text = std::string(700'000, 'x') + "\n" + std::string(300'000, 'y') + "\nz";
  const auto path = write("a", text);
  for (const std::uint32_t partitions : {1u, 2u, 3u, 10u}) {
    const auto lines = session_.text_files(path, partitions).collect();
    ASSERT_THAT(lines, SizeIs(3)) << partitions;
    EXPECT_EQ(lines[0].size(), 700'000u);
    EXPECT_EQ(lines[1].size(), 300'000u);
    EXPECT_EQ(lines[2], "z");
  }
}

/// Bytes that this process has read so far.
std::uint64_t bytes_read() {
  std::ifstream file{"/proc/self/io"};
  std::string name;
  std::uint64_t bytes = 0;
  file >> name >> bytes;
  return bytes;
}

TEST_F(text_files_test, with_long_lines_are_read_once) {
  constexpr std::uint64_t size = 20'000'000;
  const auto lines = session_.text_files(write("a", std::string(size, 'x')), 40);
  const auto before = bytes_read();
  EXPECT_EQ(lines.map([](const std::string& line) { return line.size(); }).collect(), std::vector<std::size_t>{size});
  EXPECT_LT(bytes_read() - before, 3 * size) << "not by all pieces that it crosses";
}

TEST_F(text_files_test, hold_any_bytes) {
  const std::string text{"caf\xe9 \xff\xfe\0 end\n\xc3", 14};
  EXPECT_THAT(session_.text_files(write("a", text)).collect(),
              ElementsAre(std::string{"caf\xe9 \xff\xfe\0 end", 12}, std::string{"\xc3"}));
}

TEST_F(text_files_test, that_are_empty_have_no_lines) {
  const auto path = write("a", "");
  EXPECT_EQ(session_.text_files(path).count(), 0u);
  EXPECT_EQ(session_.text_files(path, 5).count(), 0u);
  EXPECT_THAT(session_.whole_text_files(path).collect(), ElementsAre(std::pair{path, std::string{}}));
}

TEST_F(text_files_test, that_shrink_or_vanish_fail_the_job) {
  const auto path = write("a", "one\ntwo\nthree\n");
  const auto lines = session_.text_files(path, 2);
  const auto whole = session_.whole_text_files(path);
  fs::resize_file(path, 9);
  EXPECT_THAT(message_of([&] { whole.count(); }), HasSubstr("has shrunk while the job read it: it had 14 bytes"));
  EXPECT_THAT(message_of([&] { lines.count(); }),
              HasSubstr("'" + path +
                        "' has shrunk while the job read it: it had 14 bytes when the job was made and has 9 now"));
  fs::resize_file(path, 3);
  EXPECT_THAT(message_of([&] { lines.count(); }), HasSubstr("has 3 now")) << "all of the second part has gone";
  fs::remove(path);
  EXPECT_THAT(message_of([&] { lines.count(); }),
              HasSubstr("cannot open '" + path + "': No such file or directory; every executor must see"));
}

TEST_F(text_files_test, that_cannot_be_read_fail_the_job) {
  const auto path = write("a", "one\n");
  const auto lines = session_.text_files(path);
  const auto whole = session_.whole_text_files(path);
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_THAT(message_of([&] { lines.count(); }), HasSubstr("cannot read '" + path + "': Is a directory; every"));
  EXPECT_THAT(message_of([&] { whole.count(); }), HasSubstr("cannot read '" + path + "': Is a directory; every"));
}

TEST_F(text_files_test, that_grow_have_the_lines_that_they_had) {
  const auto path = write("a", "one\ntwo");
  const auto lines = session_.text_files(path, 2);
  std::ofstream{path, std::ios::app} << " and more\nthree\n";
  EXPECT_THAT(lines.collect(), ElementsAre("one", "two and more")) << "and what the last one has become";
}

TEST_F(text_files_test, are_written_as_a_directory_of_parts) {
  const auto out = (folder_ / "out").string();
  session_.parallelize(std::vector<std::string>{"a", "", "c\xff"}, 2).save_as_text(out);
  EXPECT_THAT(names(out), ElementsAre("_SUCCESS", "part-00000", "part-00001"));
  EXPECT_EQ(read(out + "/part-00000") + read(out + "/part-00001"), "a\n\nc\xff\n");
  EXPECT_THAT(session_.text_files(out + "/part-*").collect(), ElementsAre("a", "", "c\xff"));
  EXPECT_THAT(message_of([&] { session_.parallelize(std::vector<std::string>{"b"}).save_as_text(out); }),
              HasSubstr("the output directory '" + out + "' is not empty: remove it, or name another one"));
  EXPECT_EQ(read(out + "/part-00000") + read(out + "/part-00001"), "a\n\nc\xff\n") << "nothing was touched";
}

TEST_F(text_files_test, are_not_looked_for_where_a_shell_would) {
  const auto one = session_.parallelize(std::vector<std::string>{"b"});
  const auto before = fs::current_path();
  fs::current_path(folder_);
  for (const auto* path : {"~", "~/out", "$TROUPE_TEST_PLACE/out", "${TROUPE_TEST_PLACE}/out", "a/~/out"}) {
    EXPECT_THAT(message_of([&] { one.save_as_text(path); }), HasSubstr("for a shell to expand; give the path")) << path;
    EXPECT_FALSE(fs::exists(path));
  }
  for (const auto* path : {"~/lines", "$TROUPE_TEST_PLACE/lines"})
    EXPECT_THAT(message_of([&] { session_.text_files(path); }), HasSubstr("for a shell to expand: give the path"))
        << path;
  fs::current_path(before);
}

/// What a program leaves that is killed in the middle: all but its lock, which goes with its process.
TEST_F(text_files_test, are_written_where_a_program_was_killed) {
  const auto out = (folder_ / "out").string();
  fs::create_directories(folder_ / "left");
  {
    troupe::detail::text_directory killed{out};
    write(killed.staging().substr(folder_.string().size() + 1) + "/part-00000.attempt-0-of-executor-1", "half");
    fs::create_directories(out + "/_temporary/over"); // it was just removing another
    fs::copy(out + "/_temporary", folder_ / "left", fs::copy_options::recursive);
  }
  fs::create_directories(out);
  fs::rename(folder_ / "left", out + "/_temporary");
  {
    const troupe::detail::text_directory next{out};
    EXPECT_THAT(names(out + "/_temporary"),
                ElementsAre(".troupe-writer", fs::path{next.staging()}.filename().string()));
  }
  session_.parallelize(std::vector<std::string>{"b"}, 1).save_as_text(out);
  EXPECT_THAT(names(out), ElementsAre("_SUCCESS", "part-00000"));
  EXPECT_EQ(read(out + "/part-00000"), "b\n");
}

TEST_F(text_files_test, are_not_written_where_something_else_is_called_so) {
  const auto out = (folder_ / "out").string();
  const auto refusal = [&] { return message_of([&] { troupe::detail::text_directory{out}; }); };
  fs::create_directories(out + "/_temporary/0"); // as of another system
  write("out/_temporary/0/part-00000", "not ours");
  EXPECT_THAT(refusal(), HasSubstr("is not empty: another program is just writing there, or one that was killed"));
  EXPECT_EQ(read(out + "/_temporary/0/part-00000"), "not ours");
  fs::remove_all(out);
  std::string mark;
  {
    const troupe::detail::text_directory own{out};
    mark = read(out + "/_temporary/.troupe-writer");
  }
  for (const auto& [text, beside] :
       {std::pair{std::string{"troupe on another machine\n"}, ""}, std::pair{mark, "mine"}}) {
    fs::create_directories(out + "/_temporary");
    write("out/_temporary/.troupe-writer", text);
    if (*beside != '\0') write("out/_temporary/" + std::string{beside}, "x");
    EXPECT_THAT(refusal(), HasSubstr("is not empty"));
    EXPECT_TRUE(fs::exists(out + "/_temporary/.troupe-writer"));
    fs::remove_all(out);
  }
}

TEST_F(text_files_test, may_have_lines_of_any_length) {
  const auto out = (folder_ / "out").string();
  const std::vector<std::string> lines{std::string(600'000, 'x'), "y", std::string(262'143, 'z'), "w"};
  session_.parallelize(lines, 1).save_as_text(out);
  EXPECT_THAT(session_.text_files(out + "/part-00000", 3).collect(), ElementsAreArray(lines));
}

TEST_F(text_files_test, of_a_job_that_fails_leave_nothing) {
  const auto out = (folder_ / "deep/out").string();
  const auto lines = session_.range(0, 4, 4).map([](std::int64_t n) {
    if (n == 2) throw std::runtime_error("no more");
    return std::to_string(n);
  });
  EXPECT_THAT(message_of([&] { lines.save_as_text(out); }), HasSubstr("no more"));
  EXPECT_FALSE(fs::exists(folder_ / "deep")) << "nor do the folders above it";
  fs::create_directories(out);
  EXPECT_THAT(message_of([&] { lines.save_as_text(out); }), HasSubstr("no more"));
  EXPECT_THAT(names(out), IsEmpty()) << "a directory that was there stays";
}

TEST_F(text_files_test, a_folder_that_cannot_be_made_leaves_nothing_and_harms_nothing) {
  const auto link = folder_ / "link";
  fs::create_symlink(folder_ / "nowhere", link);
  EXPECT_THAT(message_of([&] { troupe::detail::text_directory{link.string()}; }),
              HasSubstr("cannot make the directory"));
  EXPECT_TRUE(fs::is_symlink(link));
  const auto too_long = (folder_ / "deep" / std::string(300, 'x')).string();
  EXPECT_THAT(message_of([&] { troupe::detail::text_directory{too_long}; }), HasSubstr("name too long"));
  EXPECT_FALSE(fs::exists(folder_ / "deep"));
}

TEST_F(text_files_test, of_a_job_that_fails_leave_what_has_taken_the_place_of_their_folders) {
  const auto parent = folder_ / "deep";
  {
    const troupe::detail::text_directory own{(parent / "out").string()};
    fs::rename(parent, folder_ / "larger-disk");
    fs::create_symlink(folder_ / "larger-disk", parent);
  }
  EXPECT_TRUE(fs::is_symlink(parent));
  EXPECT_FALSE(fs::exists(parent / "out"));
}

TEST_F(text_files_test, are_written_by_one_job_at_a_time) {
  const auto out = (folder_ / "out").string();
  const auto refuses = [&] { return message_of([&] { troupe::detail::text_directory{out}; }); };
  std::string before;
  {
    troupe::detail::text_directory into{out};
    before = into.staging();
    EXPECT_THAT(refuses(), HasSubstr("'" + out + "' is not empty: another program is just writing there"));
    EXPECT_TRUE(fs::exists(into.staging())) << "what is there is left alone";
  }
  EXPECT_FALSE(fs::exists(out));
  troupe::detail::text_directory into{out};
  EXPECT_NE(into.staging(), before) << "tasks of the job before may not have noticed its end";
  EXPECT_THAT(message_of([&] { into.publish("part-00000.attempt-0-of-executor-1"); }),
              HasSubstr("must see the output directory under the same path"));
  EXPECT_THAT(message_of([&] { troupe::detail::text_directory{""}; }), HasSubstr("has no name"));
}

TEST_F(text_files_test, are_named_by_attempts_alone) {
  write("mine", "a");
  troupe::detail::text_directory into{(folder_ / "out").string()};
  std::ofstream{into.staging() + "/part-00000.attempt-3-of-executor-1"} << "b";
  for (const auto* const name : {"../../mine", "part-00000.attempt-/../../../mine", "part-00001.attempt-0", "", "."})
    EXPECT_THAT(message_of([&] { into.publish(name); }), HasSubstr("an executor says that it has written part 0"));
  into.publish("part-00000.attempt-3-of-executor-1");
  EXPECT_EQ(read((folder_ / "mine").string()) + read((folder_ / "out/part-00000").string()), "ab");
}

TEST_F(text_files_test, cannot_be_written_below_a_file) {
  const auto file = write("a", "x");
  EXPECT_THAT(message_of([&] { session_.parallelize(std::vector<std::string>{"b"}).save_as_text(file + "/out"); }),
              HasSubstr("cannot make the directory '" + file + "/out'"));
}

} // namespace
