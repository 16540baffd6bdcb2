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

TEST_F(tail, is_empty_without_a_file) {
  EXPECT_EQ(tail_of_file(""), "");
  EXPECT_EQ(tail_of_file(scratch.file("missing")), "");
  EXPECT_EQ(tail_of_file(scratch.path().string()), "");
}

} // namespace
} // namespace troupe
