#include <troupe/launcher/text_table.hpp>

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(text_table, columns_are_as_wide_as_their_widest_cell) {
  text_table table{{{"NAME"}, {"N", text_table::side::right}}};
  table.add({"a", "1000"});
  table.add({"größer", "7"});
  EXPECT_EQ(table.text("> "), "> NAME       N\n> a       1000\n> größer     7\n");
}

TEST(amounts, are_written_for_people) {
  EXPECT_EQ(time_for_people(850'000), "850 us");
  EXPECT_EQ(time_for_people(12'000'000), "12 ms");
  EXPECT_EQ(time_for_people(3'200'000'000), "3.2 s");
  EXPECT_EQ(time_for_people(245'000'000'000), "4 min 5 s");
  EXPECT_EQ(time_for_people(7'380'000'000'000), "2 h 3 min");
  EXPECT_EQ(bytes_for_people(0), "0 B");
  EXPECT_EQ(bytes_for_people(512), "512 B");
  EXPECT_EQ(bytes_for_people(1536), "1.5 KiB");
  EXPECT_EQ(bytes_for_people(20 << 20), "20 MiB");
}

TEST(printable, replaces_what_moves_a_terminal) {
  EXPECT_EQ(printable("a\x1b[1mb\r\n"), "a?[1mb??");
  EXPECT_EQ(printable("a\nb", true), "a\nb");
  EXPECT_EQ(printable("größe"), "größe");
}

} // namespace
} // namespace troupe
