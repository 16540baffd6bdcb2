#include <gtest/gtest.h>

#include <troupe/runtime/allocation/exit_book.hpp>

namespace troupe {
namespace {

const executor_exit starved{exit_cause::memory_limit, 0, 9, 1 << 28, 1 << 27};

TEST(exit_book, tells_an_end_once_it_was_seen_and_from_then_on) {
  exit_book book;
  book.on_snapshot({{request_id{1}, shape_id{1}, launch_state::running, {}}});
  EXPECT_EQ(book.find(request_id{1}), std::nullopt);
  book.on_snapshot({{request_id{1}, shape_id{1}, launch_state::gone, {}, starved}});
  EXPECT_EQ(book.find(request_id{1}), starved);
  book.on_snapshot({});
  EXPECT_EQ(book.find(request_id{1}), starved);
}

TEST(exit_book, knows_nothing_of_what_its_backend_does_not_have) {
  exit_book book;
  book.on_snapshot({{request_id{1}, shape_id{1}, launch_state::running, {}},
                    {request_id{2}, shape_id{1}, launch_state::refused, {}}});
  EXPECT_EQ(book.find(request_id{2}), executor_exit{});
  EXPECT_EQ(book.find(request_id{3}), executor_exit{});
}

TEST(exit_book, forgets_the_oldest_beyond_a_thousand) {
  exit_book book;
  for (std::uint64_t i = 1; i <= exit_book::most_remembered + 1; ++i)
    book.on_snapshot({{request_id{i}, shape_id{1}, launch_state::gone, {}, starved}});
  EXPECT_EQ(book.find(request_id{1}), executor_exit{});
  EXPECT_EQ(book.find(request_id{2}), starved);
}

} // namespace
} // namespace troupe
