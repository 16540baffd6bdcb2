#include <troupe/launcher/named_paths.hpp>

#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Each as its fixed part, and after a blank its pattern.
std::vector<std::string> paths(std::string_view text) {
  std::vector<std::string> out;
  for (const auto& path : named_paths(text, [](std::string_view name) -> std::optional<std::string> {
         return name == "HERE" ? std::optional<std::string>{"/home/u"} : std::nullopt;
       }))
    out.push_back(path.fixed + (path.pattern.empty() ? "" : " " + path.pattern));
  return out;
}

TEST(named_paths, are_absolute_ones_in_words_and_in_texts_for_a_shell) {
  EXPECT_THAT(paths("/a/b"), ElementsAre("/a/b"));
  EXPECT_THAT(paths("find /a/b/ -name '*.x' | tee \"/c//d\" >/e;grep x </f/../g"),
              ElementsAre("/a/b", "/c/d", "/e", "/g"));
  EXPECT_THAT(paths("--in=/a,/b"), ElementsAre("/a", "/b"));
  EXPECT_THAT(paths("a b/c {output} -i"), IsEmpty());
}

TEST(named_paths, have_variables_whose_value_is_known) {
  EXPECT_THAT(paths("cat $HERE/out ${HERE}/x.$HERE $HEREAFTER/out $TMPDIR/out"),
              ElementsAre("/home/u/out", "/home/u/x./home/u"));
}

TEST(named_paths, have_patterns_for_what_a_shell_completes) {
  EXPECT_THAT(paths("/a/b*/c /a/{partition}.txt /a/$i/x /a/b/${sample}.fq /a/[xy]"),
              ElementsAre("/a b*/c", "/a *.txt", "/a */x", "/a/b *.fq", "/a [xy]"));
}

TEST(named_paths, begin_where_a_shell_has_gone) {
  EXPECT_THAT(paths("cd /a/b && cat c/d; cd e; cat f/g"), ElementsAre("/a/b/c/d", "/a/b/e/f/g"));
  EXPECT_THAT(paths("cd $HERE; ls x* y"), ElementsAre("/home/u x*"));
  EXPECT_THAT(paths("cd /a; cat $TMPDIR/b {input} ${X}/c"), IsEmpty());
  EXPECT_THAT(paths("cd /a; cd $TMPDIR; cat b/c; cd /d; cat e/f"), ElementsAre("/d/e/f"));
}

TEST(named_paths, are_those_of_lists_and_not_those_of_another_host) {
  EXPECT_THAT(paths("/a:/b $HERE:/c"), ElementsAre("/a", "/b", "/home/u", "/c"));
  EXPECT_THAT(paths("rsync /a nas:/b user@nas:/c"), ElementsAre("/a"));
}

} // namespace
} // namespace troupe
