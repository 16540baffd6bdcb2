#include "support.hpp"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

namespace troupe::testing::yaml_document_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string fault(std::string_view text) { return message_of(parse_yaml(text, "x.yaml")); }

TEST(yaml_document, keeps_texts_lines_and_order) {
  const auto doc = document("b: 010\na:\n  - 'x'\n  - {k: \"true\"}\n");
  ASSERT_EQ(doc.root.children.size(), 2u);
  EXPECT_EQ(doc.root.children[0].key, "b");
  EXPECT_EQ(doc.root.children[0].text, "010");
  const auto* list = doc.root.find("a");
  ASSERT_TRUE(list && list->is_list());
  EXPECT_EQ(list->key_line, 2);
  EXPECT_EQ(list->children[0].text, "x");
  EXPECT_EQ(list->children[1].find("k")->text, "true");
  EXPECT_EQ(list->children[1].find("k")->key_line, 4);
  EXPECT_EQ(doc.root.find("c"), nullptr);
}

TEST(yaml_document, reads_null_as_no_value_and_a_quoted_null_as_text) {
  const auto doc = document("a:\nb: ~\nc: null\nd: 'null'\n");
  EXPECT_TRUE(doc.root.find("a")->is_null());
  EXPECT_TRUE(doc.root.find("b")->is_null());
  EXPECT_TRUE(doc.root.find("c")->is_null());
  EXPECT_EQ(doc.root.find("d")->text, "null");
}

TEST(yaml_document, skips_a_byte_order_mark_and_reads_utf8) {
  EXPECT_EQ(document("\xef\xbb\xbf"
                     "a: \xc3\xa4\n")
                .root.find("a")
                ->text,
            "\xc3\xa4");
}

TEST(yaml_document, equal_keys_are_an_error_with_both_lines) {
  EXPECT_EQ(fault("a: 1\nb: 2\na: 3\n"), "x.yaml:3: a is given twice; the first one is in line 1");
  EXPECT_EQ(fault("m: {k: 1, 'k': 2}\n"), "x.yaml:1: m.k is given twice; the first one is in line 1");
  EXPECT_TRUE(parse_yaml("m: {k: 1}\nn: {k: 1}\n", "x.yaml"));
}

TEST(yaml_document, refuses_anchors_aliases_merge_keys_and_tags) {
  EXPECT_EQ(fault("a: &x 1\n"), "x.yaml:1: anchors (&name) are not supported; write the value out where it is used");
  EXPECT_THAT(fault("a: &x [1]\nb: [*x, *x]\n"), HasSubstr("x.yaml:1: anchors"));
  EXPECT_THAT(fault("a: &x {b: 1}\n"), HasSubstr("anchors"));
  EXPECT_THAT(fault("a: &x\n"), HasSubstr("anchors"));
  EXPECT_THAT(fault("a:\n  <<: {b: 1}\n"), HasSubstr("x.yaml:2: merge keys (<<) are not supported"));
  EXPECT_THAT(fault("a: !!int 3\n"), HasSubstr("x.yaml:1: tags ("));
  EXPECT_THAT(fault("a: !mine [3]\n"), HasSubstr("tags (!mine) are not supported"));
}

TEST(yaml_document, the_root_is_one_map) {
  EXPECT_EQ(fault(""), "x.yaml:1: the file holds no value; it must be a map of keys to values");
  EXPECT_THAT(fault("# only a comment\n"), HasSubstr("holds no value"));
  EXPECT_EQ(fault("- a\n"), "x.yaml:1: the file holds a list; it must be a map of keys to values");
  EXPECT_THAT(fault("\nword\n"), HasSubstr("x.yaml:2: the file holds the text `word`"));
  EXPECT_EQ(fault("a: 1\n---\nb: 2\n"), "x.yaml:2: a second document begins here; a file holds one");
}

TEST(yaml_document, keys_are_texts) {
  EXPECT_THAT(fault("? [a]\n: 1\n"), HasSubstr("x.yaml:1: a key must be a text"));
  EXPECT_THAT(fault("? {a: 1}\n: 1\n"), HasSubstr("a key must be a text"));
  EXPECT_THAT(fault("~: 1\n"), HasSubstr("a key must be a text"));
  EXPECT_THAT(fault("'': 1\n"), HasSubstr("a key is empty"));
}

TEST(yaml_document, names_tabs_control_characters_and_other_encodings) {
  EXPECT_EQ(fault("a:\n\tb: 1\n"), "x.yaml:2: the line is indented by a tab; YAML indents by blanks");
  EXPECT_THAT(fault("a:\n  b: 1\n  \tc: 2\n"), HasSubstr("x.yaml:3: this is not YAML: illegal tab"));
  EXPECT_EQ(fault(std::string_view{"a: 1\nb: \0\n", 11}), "x.yaml:2: there is a control character (byte 0)");
  EXPECT_THAT(fault("a: \x1b[0m\n"), HasSubstr("control character (byte 27)"));
  EXPECT_THAT(fault("a: \xe4\n"), HasSubstr("x.yaml:1: the text is not UTF-8 (byte 228)"));
  EXPECT_THAT(fault("\xff\xfe"
                    "a"),
              HasSubstr("not UTF-8"));
  EXPECT_THAT(fault("a: \xc0\x80"), HasSubstr("not UTF-8"));
  EXPECT_THAT(fault("a: \xf0\x9f"), HasSubstr("not UTF-8"));
}

TEST(yaml_document, syntax_errors_carry_the_line) {
  EXPECT_THAT(fault("a: 1\nb: [1, 2\nc: 3\n"), StartsWith("x.yaml:"));
  EXPECT_THAT(fault("a: 1\n b: 2\n"), StartsWith("x.yaml:2: this is not YAML: "));
  EXPECT_THAT(fault("a: 1\nb: c: d\n"), StartsWith("x.yaml:2: this is not YAML: "));
}

TEST(yaml_document, a_text_that_is_not_closed_is_an_error) {
  for (const std::string_view text : {"a: 'open\n", "a: 'open", "a: \"open\nb: 2\n", "a: [1, 2\n", "a: {b: 1\n\n"})
    EXPECT_THAT(fault(text), HasSubstr("this is not YAML: ")) << text;
}

TEST(yaml_document, keeps_the_lines_of_block_texts) {
  EXPECT_EQ(document("a: |\n  x\n  \ty\n").root.find("a")->text, "x\n\ty\n");
  EXPECT_EQ(document("a: |-\n  x\n").root.find("a")->text, "x");
  EXPECT_EQ(document("a: >\n  x\n  y\n").root.find("a")->text, "x y\n");
}

TEST(yaml_document, limits_bound_depth_values_and_bytes) {
  const auto nested = [](int depth) {
    return "a: " + std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_TRUE(parse_yaml(nested(max_yaml_depth - 1), "x.yaml"));
  EXPECT_THAT(fault(nested(max_yaml_depth)), HasSubstr("nested more than 24 levels"));
  EXPECT_THAT(fault(nested(100'000)), HasSubstr("nested more than 24 levels"));
  std::string many = "a: [";
  for (std::size_t i = 0; i < max_yaml_nodes; ++i) many += "1,";
  EXPECT_THAT(fault(many + "]"), HasSubstr("more than 200000 values"));
  EXPECT_THAT(fault("a: " + std::string(max_yaml_bytes, 'x')), HasSubstr("larger than"));
}

TEST(yaml_document, an_error_is_a_configuration_error) {
  EXPECT_EQ(parse_yaml("- a", "x.yaml").error().code, ec::invalid_configuration);
}

class config_files : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "troupe-config-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::filesystem::path directory_;
};

TEST_F(config_files, are_read_whole) {
  const auto path = (directory_ / "a.yaml").string();
  std::ofstream{path} << "a: 1\n";
  const auto doc = load_yaml(path);
  ASSERT_TRUE(doc) << doc.error().message;
  EXPECT_EQ(doc->file, path);
  EXPECT_EQ(doc->root.find("a")->text, "1");
}

TEST_F(config_files, that_are_missing_are_named) {
  const auto path = (directory_ / "none.yaml").string();
  const auto doc = load_yaml(path);
  ASSERT_FALSE(doc);
  EXPECT_EQ(doc.error().code, ec::invalid_configuration);
  EXPECT_THAT(doc.error().message, HasSubstr("cannot open " + path + ": No such file"));
}

TEST_F(config_files, that_are_no_regular_files_are_refused_without_waiting) {
  EXPECT_THAT(message_of(load_yaml(directory_.string())), HasSubstr("is not a regular file"));
  const auto pipe = (directory_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message_of(load_yaml(pipe)), HasSubstr("is not a regular file"));
}

TEST_F(config_files, that_are_too_large_are_refused) {
  const auto path = (directory_ / "big.yaml").string();
  std::ofstream{path} << "a: " << std::string(max_yaml_bytes, 'x');
  EXPECT_THAT(message_of(load_yaml(path)), HasSubstr("is larger than 4194304 bytes"));
}

} // namespace
} // namespace troupe::testing::yaml_document_tests
