#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/bucket_sizes.hpp>

namespace troupe {
namespace {

TEST(bucket_sizes, take_a_byte_each_and_are_at_most_a_tenth_too_large) {
  std::mt19937_64 random{1};
  std::vector<std::uint64_t> sizes{0, 1, 2, 9, 10, 11, 12, 4ull << 30, 60ull << 30};
  while (sizes.size() < most_levels) sizes.push_back(random() >> (28 + random() % 36));
  const auto encoded = encode_bucket_sizes(sizes);
  EXPECT_EQ(encoded.size(), 1 + sizes.size());
  const auto known = bucket_sizes::parse(encoded, static_cast<std::uint32_t>(sizes.size()));
  ASSERT_TRUE(known);
  for (std::uint32_t b = 0; b < sizes.size(); ++b) {
    EXPECT_EQ(known->may_hold(b), sizes[b] > 0) << b;
    EXPECT_GE(known->of(b), sizes[b]) << b;
    EXPECT_LE(known->of(b), sizes[b] + sizes[b] / 10 + 1) << b;
  }
}

TEST(bucket_sizes, of_very_many_are_an_average_and_the_outliers) {
  std::vector<std::uint64_t> sizes(10'000, 1000);
  for (std::size_t b = 0; b < sizes.size(); b += 3) sizes[b] = 0;
  sizes[1] = 1'000'000;
  sizes[9998] = 50'000;
  const auto encoded = encode_bucket_sizes(sizes);
  EXPECT_LE(encoded.size(), sizes.size() / 4) << "much less than a byte each";
  const auto known = bucket_sizes::parse(encoded, 10'000);
  ASSERT_TRUE(known);
  for (std::uint32_t b = 0; b < sizes.size(); ++b) EXPECT_EQ(known->may_hold(b), sizes[b] > 0) << b;
  EXPECT_EQ(known->of(2), 1000u);
  EXPECT_EQ(known->of(3), 0u);
  EXPECT_GE(known->of(1), 1'000'000u);
  EXPECT_LE(known->of(1), 1'100'000u);
  EXPECT_GE(known->of(9998), 50'000u);
  EXPECT_LE(known->of(9998), 55'000u);
}

TEST(bucket_sizes, never_take_more_than_a_byte_each) {
  std::mt19937_64 random{2};
  std::vector<std::uint64_t> sizes;
  // As many outliers as there can be: a few large ones raise the average that the others are measured by.
  for (int b = 0; b < 5000; ++b) sizes.push_back(b % 6 == 0 ? 1'000'000 + random() % 1000 : 1);
  const auto encoded = encode_bucket_sizes(sizes);
  EXPECT_LE(encoded.size(), sizes.size());
  EXPECT_TRUE(bucket_sizes::parse(encoded, 5000));
}

TEST(bucket_sizes, may_be_unknown) {
  const auto unknown = bucket_sizes::parse({}, 3);
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(unknown->may_hold(2));
  EXPECT_EQ(unknown->of(2), 0u);
  EXPECT_EQ(encode_bucket_sizes({}), "");
}

TEST(bucket_sizes, that_follow_no_form_are_malformed) {
  const std::vector<std::uint64_t> few{1, 2, 3};
  std::vector<std::uint64_t> many(4000, 7);
  many[10] = many[20] = 1000;
  for (const auto& sizes : {few, many}) {
    const auto good = encode_bucket_sizes(sizes);
    const auto buckets = static_cast<std::uint32_t>(sizes.size());
    EXPECT_TRUE(bucket_sizes::parse(good, buckets));
    EXPECT_FALSE(bucket_sizes::parse(good, buckets + 8));
    EXPECT_FALSE(bucket_sizes::parse(good + "x", buckets));
    EXPECT_FALSE(bucket_sizes::parse("\2" + good.substr(1), buckets));
    for (std::size_t n = 1; n < std::min<std::size_t>(good.size(), 40); ++n)
      EXPECT_FALSE(bucket_sizes::parse(std::string_view{good}.substr(0, n), buckets)) << n;
  }
  auto twice = encode_bucket_sizes(many);
  twice.replace(13 + 5, 4, twice, 13, 4); // the second named bucket is the first one again
  EXPECT_FALSE(bucket_sizes::parse(twice, 4000));
}

TEST(empty_buckets, are_told_by_a_bit_each) {
  const std::vector<std::uint64_t> few{5, 0, 7, 0, 0, 0, 0, 1, 0};
  const auto bits = empty_buckets(encode_bucket_sizes(few), 9);
  EXPECT_EQ(bits.size(), 2u);
  for (std::uint32_t b = 0; b < 9; ++b) EXPECT_EQ(is_empty_bucket(bits, b), few[b] == 0) << b;
  std::vector<std::uint64_t> many(5000, 3);
  EXPECT_EQ(empty_buckets(encode_bucket_sizes(many), 5000), "") << "nothing to tell";
  many[4999] = 0;
  const auto last = empty_buckets(encode_bucket_sizes(many), 5000);
  EXPECT_TRUE(is_empty_bucket(last, 4999));
  EXPECT_FALSE(is_empty_bucket(last, 4998));
  EXPECT_EQ(empty_buckets("", 9), "");
  EXPECT_EQ(empty_buckets("nonsense", 9), "");
  EXPECT_FALSE(is_empty_bucket("\xff", 8)) << "beyond what was told";
  EXPECT_FALSE(is_empty_bucket(bits, 0xffffffff));
}

} // namespace
} // namespace troupe
