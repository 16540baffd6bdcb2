#include <cstring>
#include <random>

#include <gtest/gtest.h>
#include <xxhash.h>

#include <troupe/runtime/storage/page.hpp>

namespace troupe {
namespace {

std::string page_of(const std::string& text, page_compression how = {}) {
  std::string page;
  page_sealer::begin(page);
  page += text;
  page_sealer{how}.seal(page);
  return page;
}

std::string noise(std::size_t size) {
  std::mt19937 random{1};
  std::string bytes(size, '\0');
  for (auto& c : bytes) c = static_cast<char>(random());
  return bytes;
}

class pages : public ::testing::TestWithParam<page_compression> {};
INSTANTIATE_TEST_SUITE_P(codecs, pages,
                         ::testing::Values(page_compression{page_codec::none, 1}, page_compression{page_codec::lz4, 1},
                                           page_compression{page_codec::zstd, 1},
                                           page_compression{page_codec::zstd, 19}),
                         [](const auto& at) {
                           return std::string{to_string(at.param.codec)} + "_" + std::to_string(at.param.level);
                         });

TEST_P(pages, are_read_as_they_were_written) {
  const std::vector<std::string> texts{"", "a", std::string(100'000, 'x'), noise(10'000), "the last"};
  std::string all;
  for (const auto& text : texts) all += page_of(text, GetParam());
  page_reader reader{all};
  for (const auto& text : texts) {
    ASSERT_FALSE(reader.at_end());
    const auto content = reader.next();
    ASSERT_TRUE(content) << content.error().message;
    EXPECT_TRUE(*content == text);
  }
  EXPECT_TRUE(reader.at_end());
}

TEST_P(pages, that_differ_in_a_single_bit_or_are_cut_short_are_damaged) {
  const auto good = page_of(std::string(200, 'x') + "and more", GetParam());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    page_reader reader{bad};
    const auto content = reader.next();
    ASSERT_FALSE(content) << "bit " << bit;
    EXPECT_EQ(content.error().code, ec::malformed);
  }
  for (std::size_t n = 1; n < good.size(); ++n) {
    page_reader reader{std::string_view{good}.substr(0, n)};
    ASSERT_FALSE(reader.next()) << n;
  }
}

TEST_P(pages, of_more_than_can_come_of_what_is_stored_are_damaged) {
  if (GetParam().codec == page_codec::none) return;
  // With a right checksum: somebody means it.
  auto page = page_of(std::string(100'000, 'x'), GetParam());
  for (int i = 0; i < 7; ++i) page[static_cast<std::size_t>(i)] = i < 6 ? '\0' : '\x10'; // four petabytes
  const auto checksum = XXH3_64bits_withSeed(page.data() + page_header_size, page.size() - page_header_size,
                                             XXH3_64bits(page.data(), 16));
  std::memcpy(page.data() + 16, &checksum, sizeof checksum);
  const auto content = page_reader{page}.next();
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().code, ec::malformed);
}

TEST(page, compresses_only_what_gets_smaller) {
  const auto text = std::string(100'000, 'x');
  EXPECT_EQ(page_of(text).size(), page_header_size + text.size());
  EXPECT_LT(page_of(text, {page_codec::lz4, 1}).size(), 1000u);
  EXPECT_LT(page_of(text, {page_codec::zstd, 1}).size(), 200u);
  for (const auto codec : {page_codec::lz4, page_codec::zstd})
    EXPECT_EQ(page_of(noise(10'000), {codec, 1}).size(), page_header_size + 10'000);
}

} // namespace
} // namespace troupe
