#include <gtest/gtest.h>

#include <troupe/runtime/config/path_pattern.hpp>

namespace troupe {
namespace {

TEST(path_pattern, may_find_what_is_made_or_a_folder_above_it) {
  EXPECT_TRUE(may_find("/j/out/trim/*", "/j/out/trim/*"));
  EXPECT_TRUE(may_find("/j/out/*/a.fq", "/j/out/trim/*"));
  EXPECT_TRUE(may_find("/j/out/trim/a.fq", "/j/out/trim/*"));
  EXPECT_TRUE(may_find("/j/out/trim", "/j/out/trim/*")) << "a folder is found with what is in it";
  EXPECT_TRUE(may_find("/j/*", "/j/out/trim/*"));
  EXPECT_TRUE(may_find("/*", "/j/out/trim/*"));
  EXPECT_FALSE(may_find("/j/data/*", "/j/out/trim/*"));
  EXPECT_FALSE(may_find("/j/out/trim/a/b", "/j/out/trim/*")) << "no star matches a slash";
  EXPECT_FALSE(may_find("/j/out/trim2/*", "/j/out/trim/*"));
}

TEST(path_pattern, is_compared_with_other_patterns) {
  EXPECT_FALSE(may_find("/o/*.fq", "/o/*.txt"));
  EXPECT_TRUE(may_find("/o/*.fq", "/o/a*"));
  EXPECT_TRUE(may_find("/o/a*z", "/o/*m*"));
  EXPECT_FALSE(may_find("/o/a?", "/o/b*"));
  EXPECT_TRUE(may_find("/o/??", "/o/*b"));
  EXPECT_FALSE(may_find("/o/??", "/o/b"));
  EXPECT_TRUE(may_find("/o/[ab].txt", "/o/a.txt"));
  EXPECT_FALSE(may_find("/o/[ab].txt", "/o/c.txt"));
  EXPECT_FALSE(may_find("/o/[!c].txt", "/o/c.txt"));
  EXPECT_TRUE(may_find("/o/[]c].txt", "/o/].txt"));
  EXPECT_TRUE(may_find("/o/[[:alpha:]].txt", "/o/a.txt"));
  EXPECT_TRUE(may_find("/o/[![:digit:]_]x", "/o/ax"));
  EXPECT_FALSE(may_find("/o/[[:digit:]x].txt", "/o/a.txt"));
  EXPECT_TRUE(may_find("/o/[\\]c].txt", "/o/].txt")) << "a backslash keeps a bracket from being the end";
  EXPECT_TRUE(may_find("/o/[[:alpha:.txt", "/o/[[:alpha:.txt"));
  EXPECT_TRUE(may_find("/o/[c.txt", "/o/[c.txt")) << "a bracket without an end is a character";
}

TEST(path_pattern, matches_a_dot_at_the_begin_by_a_dot_alone) {
  EXPECT_FALSE(may_find("/o/*", "/o/.hidden"));
  EXPECT_FALSE(may_find("/o/?hidden", "/o/.hidden"));
  EXPECT_TRUE(may_find("/o/.h*", "/o/.hidden"));
  EXPECT_TRUE(may_find("/o/a*", "/o/a.hidden"));
}

TEST(path_pattern, can_be_kept_from_being_one) {
  EXPECT_EQ(escape_pattern("a*b?[c]\\"), "a\\*b\\?\\[c]\\\\");
  EXPECT_TRUE(may_find(escape_pattern("/o/[c]"), "/o/\\[c]"));
  EXPECT_FALSE(may_find(escape_pattern("/o/*"), "/o/x"));
}

} // namespace
} // namespace troupe
