#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/result_entry.hpp>

namespace troupe {
namespace {

TEST(result_entry, what_is_appended_decodes_to_the_same) {
  std::string bytes;
  append_inline_entry(bytes, "value");
  auto entry = decode_result_entry(bytes);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->kind, result_kind::inline_value);
  EXPECT_EQ(entry->value, "value");
  EXPECT_EQ(entry->bytes, 5u);

  for (const auto kind : {result_kind::block, result_kind::map_output, result_kind::files}) {
    bytes.clear();
    append_block_entry(bytes, kind, 0x0102030405060708u);
    entry = decode_result_entry(bytes);
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->kind, kind);
    EXPECT_EQ(entry->bytes, 0x0102030405060708u);
    EXPECT_EQ(bytes[1], 0x08) << "sizes are little-endian";
    EXPECT_EQ(entry->buckets, "");
  }
  bytes.clear();
  append_block_entry(bytes, result_kind::map_output, 9, "sizes");
  entry = decode_result_entry(bytes);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->bytes, 9u);
  EXPECT_EQ(entry->buckets, "sizes");
}

TEST(result_entry, anything_else_is_malformed) {
  for (const std::string_view bad :
       {std::string_view{}, std::string_view{"\3"}, std::string_view{"\1"}, std::string_view{"\1abcdefg"},
        std::string_view{"\1abcdefghi"}, std::string_view{"\2abcdefg"}, std::string_view{"\4abcdefghi"},
        std::string_view{"\5abcdefgh"}}) {
    const auto entry = decode_result_entry(bad);
    ASSERT_FALSE(entry) << bad;
    EXPECT_EQ(entry.error().code, ec::malformed);
  }
}

} // namespace
} // namespace troupe
