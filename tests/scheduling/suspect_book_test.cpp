#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/suspect_book.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr stage_task task(std::uint64_t stage, partition_index partition) { return {stage_id{stage}, partition}; }

TEST(suspect_book, one_that_is_convicted_clears_those_of_its_case) {
  suspect_book book;
  book.accuse({task(1, 0), task(1, 1), task(2, 0)});
  book.accuse({task(1, 7), task(1, 8)});
  EXPECT_THAT(book.convict(task(1, 1)), ElementsAre(task(1, 0), task(2, 0)));
  EXPECT_FALSE(book.contains(task(1, 0)));
  EXPECT_TRUE(book.contains(task(1, 7))) << "of another case";
  EXPECT_THAT(book.convict(task(1, 1)), IsEmpty()) << "not accused any more";
}

TEST(suspect_book, one_that_is_acquitted_is_not_cleared_again) {
  suspect_book book;
  book.accuse({task(1, 0), task(1, 1)});
  book.acquit(task(1, 0));
  book.acquit(task(5, 5)); // unknown
  EXPECT_THAT(book.convict(task(1, 1)), IsEmpty());
  EXPECT_TRUE(book.empty());
}

TEST(suspect_book, forgets_stages) {
  suspect_book book;
  book.accuse({task(1, 0), task(2, 0), task(3, 0)});
  book.forget(stage_id{2});
  EXPECT_FALSE(book.contains(task(2, 0)));
  EXPECT_THAT(book.convict(task(1, 0)), ElementsAre(task(3, 0)));
  EXPECT_TRUE(book.empty());
}

} // namespace
} // namespace troupe
