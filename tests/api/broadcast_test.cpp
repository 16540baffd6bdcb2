// Broadcasts as the author of a program sees them.

#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace {

using troupe::broadcast;
using troupe::job;
using troupe::task;
using troupe::with;
using dictionary = std::map<std::string, int>;

int look_up(const broadcast<dictionary>& words, const std::string& word) { return words->at(word); }

class broadcast_values : public testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {2, {}, {}, {}}};
};

TEST_F(broadcast_values, are_read_by_tasks_and_by_the_program) {
  const dictionary words{{"a", 1}, {"b", 2}};
  const auto shared = session_.broadcast(words);
  static_assert(std::is_same_v<decltype(shared), const broadcast<dictionary>>);
  EXPECT_EQ(*shared, words);
  const auto known =
      session_.parallelize<std::string>({"a", "x", "b", "a"})
          .filter(with(shared), [](const auto& w, const std::string& word) { return w->contains(word); })
          .map(with(shared), [](const broadcast<dictionary>& w, const std::string& word) { return (*w).at(word); });
  EXPECT_EQ(known.collect(), (std::vector{1, 2, 1}));
  EXPECT_EQ(known.reduce(with(shared), [](const auto& w, int a, int b) { return a + b + w->at("a"); }), 4 + 2)
      << "which the program does, too";
  EXPECT_EQ(known.top(1, with(shared), [](const auto& w, int a, int b) { return w->at("a") == 1 && a > b; }),
            std::vector{2});
}

TEST_F(broadcast_values, go_with_the_last_handle_dataset_or_job_that_names_them) {
  std::optional<broadcast<int>> handle = session_.broadcast(10);
  const auto copy = handle;
  std::optional mapped = session_.range(0, 2).map(with(*handle), [](const auto& b, std::int64_t n) { return n + *b; });
  handle.reset();
  EXPECT_EQ(runner_->kept_broadcasts(), 1u) << "a copy is there";
  const_cast<std::optional<broadcast<int>>&>(copy).reset();
  EXPECT_EQ(runner_->kept_broadcasts(), 1u) << "a dataset needs it";
  std::optional more = mapped->map([](std::int64_t n) {
                               return std::pair{n % 2, n};
                             })
                           .reduce_by_key([](std::int64_t a, std::int64_t b) { return a + b; });
  mapped.reset();
  EXPECT_EQ(more->count(), 2u);
  EXPECT_EQ(runner_->kept_broadcasts(), 1u) << "so does what is computed from it";
  more.reset();
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
}

TEST_F(broadcast_values, of_a_combining_function_stay_for_both_sides_of_the_shuffle) {
  auto sums = [&] {
    return session_.range(0, 4)
        .map([](std::int64_t n) {
          return std::pair{n % 2, n};
        })
        .reduce_by_key(
            with(session_.broadcast(100)), [](const auto& b, std::int64_t x, std::int64_t y) { return x + y + *b; }, 1);
  }();
  EXPECT_EQ(runner_->kept_broadcasts(), 1u);
  std::int64_t total = 0;
  for (const auto& [key, sum] : sums.collect()) total += sum;
  EXPECT_EQ(total, 6 + 2 * 100);
  sums = session_.range(0, 1).map([](std::int64_t n) { return std::pair{n, n}; });
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
}

TEST_F(broadcast_values, are_captures_of_named_tasks) {
  std::optional<job> j{"look-up"};
  {
    const auto stage = j->stage("look").run(task<"test.look_up", look_up>, session_.broadcast(dictionary{{"a", 1}}));
    auto asked = stage;
    asked.arguments({"a", "a"});
    EXPECT_EQ(session_.run(*j, asked), (std::vector{1, 1}));
    EXPECT_EQ(runner_->kept_broadcasts(), 1u);
  }
  j.reset();
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
}

TEST_F(broadcast_values, that_came_back_from_a_task_or_never_were_have_no_value_here) {
  EXPECT_THROW(*broadcast<int>{}, std::logic_error);
  const auto shared = session_.broadcast(1);
  const auto back = session_.range(0, 1).map(with(shared), [](const auto& b, std::int64_t) { return b; }).collect();
  ASSERT_EQ(back.size(), 1u);
  EXPECT_THROW(*back[0], std::logic_error);
  EXPECT_EQ(session_.range(0, 1).map(with(back[0]), [](const auto& b, std::int64_t) { return *b; }).collect(),
            std::vector{1})
      << "a task finds it";
}

TEST_F(broadcast_values, that_are_gone_fail_the_tasks_that_read_them) {
  std::vector<broadcast<int>> records;
  records.push_back(session_.broadcast(1));
  const auto kept = session_.parallelize(records, 1);
  records.clear(); // records keep nothing
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
  EXPECT_THROW(kept.count(), troupe::job_error);
}

} // namespace
