#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/scheduling/cache_book.hpp>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr executor_id e1{1};
constexpr executor_id e2{2};

TEST(cache_book, knows_who_keeps_each_partition) {
  cache_book book;
  const auto cache = book.open({7, 1});
  EXPECT_TRUE(cache) << "0 is none";
  EXPECT_EQ(book.open({7, 1}), cache);
  EXPECT_NE(book.open({7, 2}), cache);
  EXPECT_TRUE(book.add(cache, 4, e1));
  EXPECT_TRUE(book.add(cache, 4, e1)) << "as it says already";
  EXPECT_FALSE(book.add(cache, 4, e2)) << "somebody else does";
  EXPECT_TRUE(book.add(cache, 2, e2));
  EXPECT_EQ(book.find(cache, 4), e1);
  EXPECT_EQ(book.find(cache, 5), std::nullopt);
  EXPECT_THAT(book.partitions(cache), ElementsAre(Pair(2, e2), Pair(4, e1)));
}

TEST(cache_book, forgets_what_made_room) {
  cache_book book;
  const auto cache = book.open({7, 1});
  book.add(cache, 4, e1);
  EXPECT_FALSE(book.remove(cache, 4, e2)) << "that is another one's";
  EXPECT_FALSE(book.remove(cache, 5, e1));
  EXPECT_FALSE(book.remove(cache_id{99}, 4, e1));
  EXPECT_TRUE(book.has_any(e1));
  EXPECT_TRUE(book.remove(cache, 4, e1));
  EXPECT_FALSE(book.has_any(e1));
  EXPECT_THAT(book.partitions(cache), IsEmpty());
}

TEST(cache_book, forgets_who_is_gone) {
  cache_book book;
  const auto cache = book.open({7, 1});
  book.add(cache, 0, e1);
  book.add(cache, 1, e2);
  book.forget(e1);
  book.forget(e1);
  EXPECT_THAT(book.partitions(cache), ElementsAre(Pair(1, e2)));
  EXPECT_TRUE(book.is_open(cache));
}

TEST(cache_book, forgets_what_is_withdrawn) {
  cache_book book;
  const auto a = book.open({7, 1});
  const auto b = book.open({7, 2});
  const auto other = book.open({8, 1});
  for (const auto cache : {a, b, other}) book.add(cache, 0, e1);
  EXPECT_THAT(book.withdraw({7, 1}), ElementsAre(a));
  EXPECT_THAT(book.withdraw({7, 1}), IsEmpty());
  EXPECT_FALSE(book.is_open(a));
  EXPECT_FALSE(book.add(a, 1, e1)) << "nobody wants it any more";
  EXPECT_THAT(book.partitions(a), IsEmpty());
  EXPECT_THAT(book.withdraw({7, 0}), ElementsAre(b)) << "all of the program's";
  EXPECT_TRUE(book.has_any(e1));
  EXPECT_THAT(book.partitions(other), SizeIs(1));
  EXPECT_NE(book.open({7, 1}), a) << "what was said of the old one does not count for the new one";
}

} // namespace
} // namespace troupe
