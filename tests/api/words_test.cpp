#include <cctype>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/words.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> all;
  for_each_word(text, [&](std::string_view word) { all.emplace_back(word); });
  return all;
}

TEST(words, stand_between_blanks) {
  EXPECT_THAT(words_of("to be  or\tnot\n\v\f\rto be"), ElementsAre("to", "be", "or", "not", "to", "be"));
  EXPECT_THAT(words_of("  framed "), ElementsAre("framed"));
  EXPECT_THAT(words_of("alone"), ElementsAre("alone"));
  EXPECT_THAT(words_of(""), IsEmpty());
  EXPECT_THAT(words_of(" \n "), IsEmpty());
}

TEST(words, may_hold_anything_that_is_no_blank) {
  const std::string odd{"a\0b\x01\x1f\x7f\x80\xff!c", 10};
  EXPECT_THAT(words_of(odd + " " + odd), ElementsAre(odd, odd));
}

TEST(words, are_the_same_wherever_they_lie) {
  std::mt19937 random{11};
  for (int round = 0; round < 2'000; ++round) {
    std::string text(random() % 60, '\0');
    for (auto& c : text)
      c = static_cast<char>(random() % 4 == 0 ? "\t\n\v\f\r \x08\x0e\x1f!"[random() % 10] : random());
    std::vector<std::string> expected;
    std::string word;
    for (const char c : text + " ") {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) {
        word.push_back(c);
      } else if (!word.empty()) {
        expected.push_back(std::exchange(word, {}));
      }
    }
    ASSERT_EQ(words_of(text), expected) << round;
  }
}

} // namespace
} // namespace troupe
