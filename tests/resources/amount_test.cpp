#include <troupe/runtime/resources/amount.hpp>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::HasSubstr;

int128 units_of(std::string_view text) {
  const auto parsed = parse_share(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? parsed->units : -1;
}

TEST(share_text, reads_whole_decimal_and_reciprocal) {
  EXPECT_EQ(units_of("2"), 2'000'000'000'000);
  EXPECT_EQ(units_of("0.5"), 500'000'000'000);
  EXPECT_EQ(units_of(".25"), 250'000'000'000);
  EXPECT_EQ(units_of("1.50"), 1'500'000'000'000);
  EXPECT_EQ(units_of("1/3"), 333'333'333'333);
  EXPECT_EQ(units_of("1/1"), 1'000'000'000'000);
  EXPECT_EQ(units_of("0.000000000001"), 1);
  EXPECT_EQ(units_of("1/1000000000000"), 1);
  EXPECT_EQ(units_of("9000000"), 9'000'000'000'000'000'000);
  EXPECT_EQ(units_of("10737418240.5"), int128{10'737'418'240'500'000} * 1'000'000);
  EXPECT_EQ(parse_share("9223372036854775807").value(), share::whole(std::numeric_limits<std::int64_t>::max()));
}

TEST(share_text, keeps_every_decimal_exactly) {
  // Truncating a double times 10^16 turns 0.142 into ...9999 and 0.19 + 0.81 into more than one (spec AD-8).
  EXPECT_EQ(units_of("0.142"), 142'000'000'000);
  EXPECT_EQ(units_of("0.19") + units_of("0.81"), share::units_per_whole);
  EXPECT_EQ(units_of("0.44") + units_of("0.56"), share::units_per_whole);
}

TEST(share_text, refuses_everything_else_and_repeats_it) {
  for (const std::string text : {"",
                                 " ",
                                 "0",
                                 "0.0",
                                 ".",
                                 "1.",
                                 "-1",
                                 "+1",
                                 "1e3",
                                 "0x1",
                                 " 1",
                                 "1 ",
                                 "1/",
                                 "1/0",
                                 "1/-2",
                                 "1/03",
                                 "2/3",
                                 "/3",
                                 "1/2/3",
                                 "1..5",
                                 "1.5.5",
                                 "010",
                                 "00.5",
                                 "0.0000000000001",
                                 "1/1000000000001",
                                 "9223372036854775807.000000000001",
                                 "9223372036854775808",
                                 "99999999999999999999",
                                 "1/99999999999999999999",
                                 "nan",
                                 "inf",
                                 "1,5",
                                 "٣"}) {
    const auto parsed = parse_share(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ec::invalid_argument);
    if (text != "٣") {
      EXPECT_THAT(parsed.error().message, HasSubstr("\"" + text + "\""));
    }
  }
}

TEST(share_text, messages_stay_short_and_printable) {
  const auto parsed = parse_share(std::string(100'000, 'x') + '\n');
  ASSERT_FALSE(parsed);
  EXPECT_LT(parsed.error().message.size(), 200u);
  EXPECT_THAT(parse_share("1\n\x1b[2J").error().message, HasSubstr("\\x0a\\x1b"));
}

TEST(share_text, writes_the_shorter_of_decimal_and_reciprocal) {
  EXPECT_EQ(to_string(share::whole(2)), "2");
  EXPECT_EQ(to_string(share{}), "0");
  EXPECT_EQ(to_string(share{500'000'000'000}), "0.5");
  EXPECT_EQ(to_string(share{1'500'000'000'000}), "1.5");
  EXPECT_EQ(to_string(share{333'333'333'333}), "1/3");
  EXPECT_EQ(to_string(share{333'333'333'334}), "0.333333333334");
  EXPECT_EQ(to_string(share{1}), "0.000000000001");
  EXPECT_EQ(to_string(share::whole(std::numeric_limits<std::int64_t>::max())), "9223372036854775807");
  EXPECT_EQ(to_string(share{share::whole(9'007'199'254'740'993).units + 1}), "9007199254740993.000000000001");
}

TEST(share_text, of_what_nobody_should_hold_can_be_printed) {
  EXPECT_EQ(to_string(share{-1}), "-0.000000000001");
  EXPECT_EQ(to_string(share::whole(std::numeric_limits<std::int64_t>::min())), "-9223372036854775808");
  constexpr auto least = static_cast<int128>(1) << 126;
  EXPECT_EQ(to_string(share{-least - least}), "-170141183460469231731687303.715884105728");
}

TEST(share_text, survives_a_round_trip) {
  std::mt19937_64 random{7};
  std::uniform_int_distribution<std::int64_t> any{1, share::max_whole - 1};
  for (int i = 0; i < 20'000; ++i) {
    const share small{any(random) % share::units_per_whole + 1};
    const share large{share::whole(any(random) >> (i % 63)).units + small.units};
    EXPECT_EQ(parse_share(to_string(small)).value(), small);
    EXPECT_EQ(parse_share(to_string(large)).value(), large);
  }
  for (int n = 1; n <= 40'000; ++n) {
    const auto amount = parse_share("1/" + std::to_string(n)).value();
    ASSERT_EQ(parse_share(to_string(amount)).value(), amount) << n;
  }
}

TEST(share_arithmetic, exactly_n_shares_of_one_nth_fit_an_address) {
  for (std::int64_t n = 1; n <= 40'000; ++n) {
    const auto part = parse_share("1/" + std::to_string(n)).value();
    ASSERT_EQ(fits(share::whole(1), part), n);
    ASSERT_LE(n * part.units, share::units_per_whole) << n;
    ASSERT_GT((n + 1) * part.units, share::units_per_whole) << n;
  }
}

TEST(share_arithmetic, rounds_up_to_whole_numbers) {
  EXPECT_EQ(share{}.ceil(), 0);
  EXPECT_EQ(share{1}.ceil(), 1);
  EXPECT_EQ(share::whole(3).ceil(), 3);
  EXPECT_EQ(share{share::units_per_whole * 3 + 1}.ceil(), 4);
  EXPECT_EQ(fits(share::whole(1), share{}), 0);
}

TEST(share_arithmetic, of_the_largest_amounts_is_exact_and_never_wraps) {
  constexpr auto max = std::numeric_limits<std::int64_t>::max();
  constexpr auto all = share::whole(max);
  EXPECT_EQ(all.ceil(), max);
  EXPECT_EQ(share{all.units - 1}.ceil(), max);
  EXPECT_EQ(share{all.units + 1}.ceil(), max);
  EXPECT_EQ(fits(all, share::whole(1)), max);
  EXPECT_EQ(fits(share::whole(max - 1), share::whole(max)), 0);
  EXPECT_EQ(fits(all, share::whole(7)), max / 7);
  EXPECT_EQ(fits(all, share{1}), max) << "more than a number can say";
}

TEST(count_text, reads_plain_numbers_only) {
  EXPECT_EQ(parse_count("0").value(), 0);
  EXPECT_EQ(parse_count("42").value(), 42);
  EXPECT_EQ(parse_count("9223372036854775807").value(), std::numeric_limits<std::int64_t>::max());
  for (const std::string text :
       {"", "010", "00", "-1", "+1", "1.0", "1e3", "0x10", " 1", "1 ", "9223372036854775808"}) {
    const auto parsed = parse_count(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("\"" + text + "\""));
  }
}

TEST(memory_text, reads_every_suffix_in_any_case) {
  EXPECT_EQ(parse_memory("4096").value(), std::int64_t{4096} << 20) << "a bare number means MiB";
  EXPECT_EQ(parse_memory("17b").value(), 17);
  for (const std::string text : {"3k", "3kb", "3KB", "3Kib", "3KiB"}) EXPECT_EQ(parse_memory(text).value(), 3 << 10);
  for (const std::string text : {"3m", "3mb", "3MB", "3MiB"}) EXPECT_EQ(parse_memory(text).value(), 3 << 20);
  for (const std::string text : {"1g", "1gb", "1GiB"}) EXPECT_EQ(parse_memory(text).value(), std::int64_t{1} << 30);
  for (const std::string text : {"1t", "1tb", "1TiB"}) EXPECT_EQ(parse_memory(text).value(), std::int64_t{1} << 40);
  for (const std::string text : {"1p", "1pb", "1PiB"}) EXPECT_EQ(parse_memory(text).value(), std::int64_t{1} << 50);
  EXPECT_EQ(parse_memory("0").value(), 0);
  EXPECT_EQ(parse_memory("8191p").value(), std::int64_t{8191} << 50);
  EXPECT_EQ(parse_memory("9223372036854775807b").value(), std::numeric_limits<std::int64_t>::max());
}

TEST(memory_text, refuses_the_rest_and_repeats_it) {
  for (const std::string text : {"",
                                 "g",
                                 "-1g",
                                 "+1g",
                                 "1 g",
                                 " 1g",
                                 "1g ",
                                 "01g",
                                 "1x",
                                 "1gg",
                                 "1gib2",
                                 "1bb",
                                 "1bib",
                                 "1i",
                                 "1gi",
                                 "8192p",
                                 "9223372036854775808b",
                                 "99999999999999999999g",
                                 "0x1g",
                                 "1e3"}) {
    const auto parsed = parse_memory(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("\"" + text + "\""));
  }
  EXPECT_THAT(parse_memory("0.5g").error().message, HasSubstr("fractional values are not supported"));
}

TEST(memory_text, writes_the_largest_exact_unit) {
  EXPECT_EQ(memory_to_string(std::int64_t{1} << 30), "1g");
  EXPECT_EQ(memory_to_string(std::int64_t{1536} << 20), "1536m");
  EXPECT_EQ(memory_to_string(17), "17b");
  EXPECT_EQ(memory_to_string(0), "0b");
  EXPECT_EQ(memory_to_string(std::int64_t{3} << 50), "3p");
  std::mt19937_64 random{11};
  for (int i = 0; i < 5'000; ++i) {
    const auto bytes = static_cast<std::int64_t>(random() >> (1 + random() % 50));
    const auto rounded = bytes & ~((std::int64_t{1} << (random() % 20)) - 1);
    EXPECT_EQ(parse_memory(memory_to_string(bytes)).value(), bytes);
    EXPECT_EQ(parse_memory(memory_to_string(rounded)).value(), rounded);
  }
}

} // namespace
} // namespace troupe
