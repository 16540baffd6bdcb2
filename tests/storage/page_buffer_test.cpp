#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/storage/page_buffer.hpp>
#include <troupe/tests/support/blocks.hpp>

namespace troupe {
namespace {

/// Hands out `bytes` in pieces of random size and counts how many it was asked for at most.
class pieces {
public:
  pieces(std::string_view bytes, unsigned seed, std::size_t largest) : rest_(bytes), random_(seed), largest_(largest) {}

  page_buffer::source source() {
    return [this](char* to, std::size_t room) -> result<std::size_t> {
      most_room = std::max(most_room, room);
      if (rest_.empty()) return make_error(ec::io, "the end");
      const auto n = std::min({room, rest_.size(), 1 + random_() % largest_});
      rest_.copy(to, n);
      rest_.remove_prefix(n);
      return n;
    };
  }
  std::size_t most_room = 0;

private:
  std::string_view rest_;
  std::mt19937_64 random_;
  std::size_t largest_;
};

std::string bytes_of_pages(const std::vector<std::string>& texts) {
  std::string bytes;
  for (const auto& text : texts) bytes += testing::content_of({text}).pages[0][0];
  return bytes;
}

TEST(page_buffer, gives_page_by_page_however_the_bytes_come) {
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) texts.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i) * 700, 'x'));
  texts.push_back(std::string(3'000'000, 'L')); // larger than the buffer
  texts.push_back("behind it");
  const auto bytes = bytes_of_pages(texts);
  page_buffer buffer;
  for (const std::size_t largest : {std::size_t{1000}, std::size_t{1} << 20})
    for (unsigned seed = 0; seed < 5; ++seed) {
      pieces from{bytes, seed, largest};
      buffer.begin(bytes.size());
      std::uint64_t taken = 0;
      for (const auto& text : texts) {
        ASSERT_FALSE(buffer.at_end());
        const auto content = buffer.next(from.source());
        ASSERT_TRUE(content) << content.error().message;
        ASSERT_TRUE(*content == text);
        taken += page_header_size + text.size();
        EXPECT_EQ(buffer.taken(), taken);
      }
      EXPECT_TRUE(buffer.at_end());
    }
}

TEST(page_buffer, reads_nothing_beyond_its_block) {
  const auto bytes = bytes_of_pages({"one", "two"});
  const auto both = bytes + bytes;
  pieces from{both, 1, 1 << 20};
  page_buffer buffer;
  buffer.begin(bytes.size());
  while (!buffer.at_end()) ASSERT_TRUE(buffer.next(from.source()));
  buffer.begin(bytes.size());
  EXPECT_EQ(*buffer.next(from.source()), "one") << "of the second block";
}

TEST(page_buffer, believes_no_size_that_does_not_come) {
  auto page = bytes_of_pages({"a lie"});
  page[14] = '\x7f'; // 35 petabytes follow, it says
  page_buffer buffer;
  pieces from{page, 1, 1 << 20};
  buffer.begin(std::uint64_t{1} << 60);
  const auto got = buffer.next(from.source());
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ec::io) << "the source ends";
  EXPECT_LT(from.most_room, std::size_t{1} << 20) << "memory was taken for what has not come";
  // More than the block has left.
  buffer.begin(page.size());
  pieces again{page, 1, 1 << 20};
  EXPECT_EQ(buffer.next(again.source()).error().code, ec::malformed);
  // So much that the header does not fit behind it.
  std::fill(page.begin() + 8, page.begin() + 16, '\xff');
  buffer.begin(~std::uint64_t{0});
  pieces impossible{page, 1, 1 << 20};
  EXPECT_EQ(buffer.next(impossible.source()).error().code, ec::malformed);
}

TEST(page_buffer, takes_damage_for_what_it_is) {
  const auto good = bytes_of_pages({"some text that is worth a checksum", "more"});
  for (std::size_t bit = 0; bit < good.size() * 8; bit += 3) {
    auto bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    page_buffer buffer;
    buffer.begin(bad.size());
    pieces from{bad, 1, 1 << 20};
    bool failed = false;
    while (!failed && !buffer.at_end()) failed = !buffer.next(from.source());
    EXPECT_TRUE(failed) << "bit " << bit;
  }
  for (std::size_t n = 1; n < good.size(); ++n) {
    if (n == bytes_of_pages({"some text that is worth a checksum"}).size()) continue; // a whole page
    page_buffer buffer;
    buffer.begin(n);
    pieces from{std::string_view{good}.substr(0, n), 1, 1 << 20};
    bool failed = false;
    while (!failed && !buffer.at_end()) failed = !buffer.next(from.source());
    EXPECT_TRUE(failed) << n;
  }
}

} // namespace
} // namespace troupe
