#include <fstream>

#include <gtest/gtest.h>

#include <troupe/runtime/execution/failure_text.hpp>

#include "runner_fixture.hpp"

namespace troupe {
namespace {

TEST(bounded_text, keeps_short_text_and_marks_a_cut) {
  EXPECT_EQ(bounded_text("short", 10), "short");
  const auto cut = bounded_text(std::string(100, 'x'), 20);
  EXPECT_EQ(cut, std::string(14, 'x') + " [cut]");
}

TEST(bounded_text, is_always_valid_utf8) {
  EXPECT_EQ(bounded_text("gr\xc3\xbc\xc3\x9f", 100), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(bounded_text("a\xff\xc3+\x80z", 100), "a??+?z");
  EXPECT_EQ(bounded_text("\xe0\x80\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xc0\x80", 100), "???|???|????|??");
  // A sequence is not cut in two.
  EXPECT_EQ(bounded_text("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 10), "\xe2\x82\xac [cut]");
}

class tail : public ::testing::Test {
protected:
  std::string of(const std::string& content) {
    const auto path = scratch.file("stderr");
    std::ofstream{path, std::ios::binary} << content;
    return tail_of_file(path);
  }
  testing_execution::scratch_directory scratch;
};

TEST_F(tail, is_all_of_a_short_file) {
  EXPECT_EQ(of(""), "");
  EXPECT_EQ(of("one"), "one");
  EXPECT_EQ(of("one\ntwo\n"), "one\ntwo\n");
}

TEST_F(tail, is_the_last_twenty_lines) {
  std::string content;
  for (int i = 1; i <= 50; ++i) content += "line " + std::to_string(i) + "\n";
  const auto last = of(content);
  EXPECT_EQ(last.substr(0, 8), "line 31\n");
  EXPECT_EQ(std::count(last.begin(), last.end(), '\n'), 20);
  EXPECT_EQ(last.substr(last.size() - 8), "line 50\n");
}

TEST_F(tail, is_bounded_in_bytes) {
  const auto last = of(std::string(100'000, 'a') + "end");
  EXPECT_EQ(last.size(), max_stderr_tail);
  EXPECT_TRUE(last.ends_with("aend"));
}

TEST_F(tail, has_the_first_lines_before_it_in_an_excerpt) {
  const auto excerpt = [&](const std::string& content) {
    of(content);
    return excerpt_of_file(scratch.file("stderr"));
  };
  EXPECT_EQ(excerpt(""), "");
  EXPECT_EQ(excerpt("one"), "one");
  std::string content;
  const auto add = [&](int from, int to) {
    for (int i = from; i <= to; ++i) content += "line " + std::to_string(i) + "\n";
    return content;
  };
  for (const auto& whole : {add(1, 9), add(10, 10), add(11, 20), add(21, 30)}) EXPECT_EQ(excerpt(whole), whole);
  const auto more = excerpt(add(31, 99));
  EXPECT_TRUE(more.starts_with("line 1\n")) << more;
  EXPECT_NE(more.find("line 10\n[552 bytes are left out here]\nline 80\n"), more.npos) << more;
  EXPECT_TRUE(more.ends_with("line 99\n")) << more;
  const auto long_line = excerpt("begin" + std::string(100'000, 'a') + "end");
  EXPECT_LE(long_line.size(), max_stderr_tail);
  EXPECT_TRUE(long_line.starts_with("beginaaa") && long_line.ends_with("aaaend"));
  EXPECT_NE(long_line.find(" bytes are left out here]\n"), long_line.npos);
  EXPECT_EQ(excerpt_of_file(scratch.file("missing")), "");
}

TEST_F(tail, is_empty_without_a_file) {
  EXPECT_EQ(tail_of_file(""), "");
  EXPECT_EQ(tail_of_file(scratch.file("missing")), "");
  EXPECT_EQ(tail_of_file(scratch.path().string()), "");
}

} // namespace
} // namespace troupe
