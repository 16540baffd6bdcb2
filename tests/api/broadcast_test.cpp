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

/// A text that counts how often it was decoded.
struct counted_text {
  std::string text;
  static inline int decoded = 0;
};
template <class Archive>
void troupe_serialize(Archive& archive, counted_text& t) {
  archive(t.text);
  if constexpr (std::is_same_v<Archive, troupe::decoder>) ++counted_text::decoded;
}

std::size_t size_of_both(const counted_text& text, const std::string& argument) {
  return text.text.size() + argument.size();
}

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

TEST_F(broadcast_values, inside_of_others_stay_as_long_as_those) {
  std::optional inner = session_.broadcast(std::string{"text"});
  std::optional outer = session_.broadcast(std::vector{*inner});
  const auto sizes =
      session_.range(0, 2).map(with(*outer), [](const auto& all, std::int64_t) { return all->at(0)->size(); });
  inner.reset();
  outer.reset();
  EXPECT_EQ(sizes.collect(), (std::vector<std::size_t>{4, 4}));
}

TEST_F(broadcast_values, are_what_large_captures_become) {
  const counted_text large{std::string(2'000'000, 'x')};
  const std::string small(1000, 'y');
  counted_text::decoded = 0;
  std::optional sizes = session_.range(0, 100, 4).map(
      with(small, large, 7), [](const std::string& s, const counted_text& l, int i, std::int64_t) {
        return s.size() + l.text.size() + static_cast<std::size_t>(i);
      });
  EXPECT_EQ(runner_->kept_broadcasts(), 1u) << "of the three";
  EXPECT_EQ(sizes->collect(), std::vector<std::size_t>(100, 2'001'007));
  EXPECT_EQ(counted_text::decoded, 1) << "for all four tasks";
  sizes.reset();
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
}

TEST_F(broadcast_values, are_what_large_captures_of_actions_become_for_their_time) {
  const counted_text large{std::string(2'000'000, 'x')};
  const auto numbers = session_.range(0, 4, 2);
  EXPECT_EQ(
      numbers.reduce(with(large), [](const counted_text& l, std::int64_t a,
                                     std::int64_t b) { return a + b + static_cast<std::int64_t>(l.text.size()); }),
      6 + 3 * 2'000'000);
  EXPECT_EQ(
      numbers.top(1, with(large),
                  [](const counted_text& l, std::int64_t a, std::int64_t b) { return l.text[0] == 'x' && a > b; }),
      std::vector<std::int64_t>{3});
  numbers.foreach (with(large), [](const counted_text& l, std::int64_t) {
    if (l.text.size() != 2'000'000) throw std::runtime_error("not all of it");
  });
  EXPECT_EQ(runner_->kept_broadcasts(), 0u);
  EXPECT_EQ(runner_->most_broadcasts(), 1u);
}

TEST_F(broadcast_values, are_what_large_captures_of_named_tasks_become_for_their_job) {
  job j{"sizes"};
  auto sizes = j.stage("sizes").run(task<"test.size_of_both", size_of_both>, counted_text{std::string(2'000'000, 'x')});
  sizes.arguments({"a", "bc", "def"});
  EXPECT_EQ(runner_->kept_broadcasts(), 0u) << "nobody knows yet who will run it";
  for (int run = 0; run < 2; ++run) {
    counted_text::decoded = 0;
    EXPECT_EQ(session_.run(j, sizes), (std::vector<std::size_t>{2'000'001, 2'000'002, 2'000'003}));
    EXPECT_EQ(counted_text::decoded, 1);
    EXPECT_EQ(runner_->kept_broadcasts(), 0u);
  }
  EXPECT_EQ(runner_->most_broadcasts(), 1u);
  const auto alone = j.build({}, std::nullopt);
  EXPECT_GT(std::get<troupe::native_program>(alone.stages[0].program).operations[0].arguments.size(), 2'000'000u)
      << "whoever builds it for himself has all of it there";
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
