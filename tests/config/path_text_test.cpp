#include "support.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>

#include <troupe/runtime/config/path_pattern.hpp>
#include <troupe/runtime/config/path_text.hpp>

namespace troupe::testing::path_text_tests {
namespace {

using ::testing::HasSubstr;

variable_lookup variables() {
  return [](const std::string& name) -> std::optional<std::string> {
    static const std::map<std::string, std::string> all{
        {"HOME", "/home/me"}, {"SCRATCH", "/scratch/*"}, {"_a1", "x"}, {"EMPTY", ""}};
    const auto found = all.find(name);
    return found == all.end() ? std::nullopt : std::optional{found->second};
  };
}

std::string expanded(const std::string& text) {
  const auto out = expand_path(text, variables());
  return out ? *out : "refused: " + out.error().message;
}

TEST(path_text, is_expanded_as_a_shell_would) {
  EXPECT_EQ(expanded("~"), "/home/me");
  EXPECT_EQ(expanded("~/x"), "/home/me/x");
  EXPECT_EQ(expanded("a/~"), "a/~");
  EXPECT_EQ(expanded("$SCRATCH/x"), "/scratch/*/x");
  EXPECT_EQ(expanded("${SCRATCH}x/$_a1.y/${_a1}"), "/scratch/*x/x.y/x");
  EXPECT_EQ(expanded("a$$b"), "a$b");
  EXPECT_EQ(expanded("cost$.txt/1$"), "cost$.txt/1$");
  EXPECT_EQ(expanded("plain"), "plain");
  EXPECT_EQ(*expand_path("$SCRATCH/*", variables(), escape_pattern), "/scratch/\\*/*");
}

TEST(path_text, is_refused_with_the_cure) {
  EXPECT_THAT(expanded("$NOWHERE/x"), HasSubstr("the variable NOWHERE is not set; set it, or write the path"));
  EXPECT_THAT(expanded("${EMPTY}/x"), HasSubstr("the variable EMPTY is empty"));
  EXPECT_THAT(expanded("~you/x"), HasSubstr("write its path, or ./~you/x"));
  EXPECT_THAT(expanded("${A:-b}"), HasSubstr("the name of a variable alone; write $$"));
  EXPECT_THAT(expanded("${A"), HasSubstr("the name of a variable alone"));
  EXPECT_THAT(expanded("${}"), HasSubstr("the name of a variable alone"));
  EXPECT_THAT(expanded("$(pwd)/x"), HasSubstr("$(…) is for a shell"));
}

TEST(path_text, is_told_from_what_is_for_a_shell) {
  for (const auto* text : {"~", "~/x", "$X", "a${X}", "$(x)", "$$X"}) EXPECT_TRUE(is_for_a_shell(text)) << text;
  for (const auto* text : {"x~", "~x", "a$", "$1", "$.x", "{stem}"}) EXPECT_FALSE(is_for_a_shell(text)) << text;
}

TEST(path_text, is_made_plain_as_the_system_reads_it) {
  EXPECT_EQ(plain_path("/../a/./b//../c/"), "/a/c/");
  EXPECT_EQ(plain_path("/"), "/");
  EXPECT_EQ(plain_path("../../a/./../b"), "../../b");
  auto base = (std::filesystem::temp_directory_path() / "troupe-plain-XXXXXX").string();
  ASSERT_NE(::mkdtemp(base.data()), nullptr);
  const auto real = std::filesystem::canonical(base).string();
  std::filesystem::create_directories(base + "/real/deep");
  std::filesystem::create_directory_symlink("real/deep", base + "/link");
  std::filesystem::create_symlink("nothing", base + "/lost");
  EXPECT_EQ(plain_path(base + "/link/../x"), real + "/real/x");
  EXPECT_EQ(plain_path(base + "/link/../../x"), real + "/x");
  EXPECT_EQ(plain_path(base + "/link/./x"), base + "/link/x") << "a name that people know stays";
  EXPECT_EQ(plain_path(base + "/lost/../x"), base + "/lost/../x");
  EXPECT_EQ(plain_path(base + "/none/../x"), base + "/x");
  std::filesystem::remove_all(base);
}

TEST(path_text, can_be_made_of_a_path) { EXPECT_EQ(expanded(as_path_text("/a$SCRATCH/$$")), "/a$SCRATCH/$$"); }

} // namespace
} // namespace troupe::testing::path_text_tests
