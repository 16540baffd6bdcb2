#include "support.hpp"

#include <troupe/runtime/config/amount_text.hpp>

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(time_text, reads_whole_numbers_with_a_unit) {
  const std::vector<std::pair<std::string_view, duration>> good{
      {"0", 0ns},   {"0s", 0ns},    {"7ns", 7ns}, {"3us", 3us}, {"500ms", 500ms},       {"10s", 10s},
      {"5m", 5min}, {"5min", 5min}, {"2h", 2h},   {"1d", 24h},  {"100000d", 2'400'000h}};
  for (const auto& [text, time] : good) {
    const auto parsed = parse_time(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, time) << text;
  }
}

TEST(time_text, refuses_everything_else_and_repeats_it) {
  for (const std::string_view text : {"", "5", "s", "-1s", "+1s", "1.5s", "1 s", " 1s", "01s", "00", "1S", "1sec",
                                      "1e3s", "100001d", "9223372036854775807s", "99999999999999999999s", "1s2ms"}) {
    const auto parsed = parse_time(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, ::testing::HasSubstr("`" + std::string{text} + "`"));
  }
}

TEST(time_text, is_written_in_the_largest_unit_that_fits) {
  EXPECT_EQ(time_to_string(0ns), "0s");
  EXPECT_EQ(time_to_string(1500ms), "1500ms");
  EXPECT_EQ(time_to_string(90s), "90s");
  EXPECT_EQ(time_to_string(120s), "2min");
  EXPECT_EQ(time_to_string(24h), "1d");
  EXPECT_EQ(time_to_string(1ns), "1ns");
}

TEST(list_text, is_split_at_commas) {
  EXPECT_THAT(*parse_list(""), IsEmpty());
  EXPECT_THAT(*parse_list("a"), ElementsAre("a"));
  EXPECT_THAT(*parse_list("a,b c,0"), ElementsAre("a", "b c", "0"));
  EXPECT_FALSE(parse_list("a,"));
  EXPECT_FALSE(parse_list(",a"));
  EXPECT_FALSE(parse_list("a,,b"));
}

} // namespace
} // namespace troupe::testing
