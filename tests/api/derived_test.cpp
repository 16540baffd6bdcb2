// Operations that are made of others, and those that move partitions.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/job_error.hpp>
#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace derived_tests {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using troupe::with;
using pair = std::pair<std::string, std::int64_t>;

struct version {
  int major = 0;
  std::string name;
  bool operator<(const version& other) const { return major < other.major; }
};
template <class Archive>
void troupe_serialize(Archive& archive, version& v) {
  archive(v.major, v.name);
}

class derived_operations : public ::testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {3, {}, {}, {}}};

  troupe::dataset<std::int64_t> numbers(std::int64_t end = 7) { return session_.range(0, end, 3); }
  troupe::dataset<pair> pairs() {
    return session_.parallelize<pair>({{"a", 1}, {"b", 2}, {"a", 3}, {"c", 4}, {"b", 5}, {"a", 6}}, 3);
  }
  troupe::dataset<pair> others() { return session_.parallelize<pair>({{"a", 10}, {"d", 20}, {"a", 30}}, 2); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& stage : runner_->jobs.back()->stages) all.push_back(stage.name);
    return all;
  }
};

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST_F(derived_operations, map_values_leaves_the_keys) {
  EXPECT_THAT(pairs().map_values([](std::int64_t n) { return 0.5 * static_cast<double>(n); }).take(2),
              ElementsAre(Pair("a", 0.5), Pair("b", 1.0)));
  EXPECT_THAT(
      pairs().map_values(with(std::int64_t{10}), [](std::int64_t by, std::int64_t n) { return n * by; }).take(2),
      ElementsAre(Pair("a", 10), Pair("b", 20)));
  EXPECT_THAT(names(), ElementsAre("parallelize, map_values, take"));
}

TEST_F(derived_operations, key_by_keys_and_values_take_pairs_together_and_apart) {
  const auto keyed = numbers(3).key_by([](std::int64_t n) { return "n" + std::to_string(n); });
  EXPECT_THAT(keyed.collect(), ElementsAre(Pair("n0", 0), Pair("n1", 1), Pair("n2", 2)));
  EXPECT_THAT(keyed.keys().collect(), ElementsAre("n0", "n1", "n2"));
  EXPECT_THAT(keyed.values().collect(), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers(3).key_by(with(2), [](int by, std::int64_t n) { return n % by; }).keys().collect(),
              ElementsAre(0, 1, 0));
}

TEST_F(derived_operations, distinct_has_each_record_once) {
  EXPECT_THAT(pairs().keys().distinct().collect(), UnorderedElementsAre("a", "b", "c"));
  EXPECT_EQ(numbers(0).distinct().count(), 0u);
  EXPECT_EQ(pairs().keys().distinct(5).partitions(), 5u);
}

TEST_F(derived_operations, aggregates_begin_with_zero_in_each_task_and_are_merged) {
  const auto fold = [](std::set<std::int64_t> all, std::int64_t n) {
    all.insert(n);
    return all;
  };
  const auto merge = [](std::set<std::int64_t> a, const std::set<std::int64_t>& b) {
    a.insert(b.begin(), b.end());
    return a;
  };
  EXPECT_THAT(pairs().aggregate_by_key(std::set<std::int64_t>{0}, fold, merge).collect(),
              UnorderedElementsAre(Pair("a", ElementsAre(0, 1, 3, 6)), Pair("b", ElementsAre(0, 2, 5)),
                                   Pair("c", ElementsAre(0, 4))));
  EXPECT_THAT(pairs()
                  .aggregate_by_key(
                      with(std::string{"+"}), std::string{},
                      [](const std::string& sign, std::string s, std::int64_t n) {
                        return std::move(s) + sign + std::to_string(n);
                      },
                      [](const std::string& sign, std::string a, const std::string& b) {
                        return std::move(a) + sign + sign + b;
                      })
                  .collect(),
              UnorderedElementsAre(Pair("a", "+1+++3+++6"), Pair("b", "+2+++5"), Pair("c", "+4")));
  // One task: the fold sees all, one after the other.
  EXPECT_THAT(pairs()
                  .coalesce(1)
                  .aggregate_by_key(
                      0, [](int count, std::int64_t) { return count + 1; }, [](int, int) { return -1; })
                  .collect(),
              UnorderedElementsAre(Pair("a", 3), Pair("b", 2), Pair("c", 1)));
}

TEST_F(derived_operations, joins_keep_what_meets_nothing_on_the_sides_that_they_name) {
  const auto left = pairs().filter([](const pair& p) { return p.second > 3; }); // c 4, b 5, a 6
  EXPECT_THAT(left.left_join(others()).collect(),
              UnorderedElementsAre(Pair("a", Pair(6, Optional(10))), Pair("a", Pair(6, Optional(30))),
                                   Pair("b", Pair(5, std::nullopt)), Pair("c", Pair(4, std::nullopt))));
  EXPECT_THAT(left.full_join(others()).collect(), UnorderedElementsAre(Pair("a", Pair(Optional(6), Optional(10))),
                                                                       Pair("a", Pair(Optional(6), Optional(30))),
                                                                       Pair("b", Pair(Optional(5), std::nullopt)),
                                                                       Pair("c", Pair(Optional(4), std::nullopt)),
                                                                       Pair("d", Pair(std::nullopt, Optional(20)))));
  EXPECT_THAT(left.join(others()).collect(), UnorderedElementsAre(Pair("a", Pair(6, 10)), Pair("a", Pair(6, 30))));
}

TEST_F(derived_operations, cogroup_has_the_values_of_both_sides_in_their_order) {
  EXPECT_THAT(pairs().cogroup(others()).collect(),
              UnorderedElementsAre(Pair("a", Pair(ElementsAre(1, 3, 6), ElementsAre(10, 30))),
                                   Pair("b", Pair(ElementsAre(2, 5), IsEmpty())),
                                   Pair("c", Pair(ElementsAre(4), IsEmpty())),
                                   Pair("d", Pair(IsEmpty(), ElementsAre(20)))));
}

TEST_F(derived_operations, sort_by_orders_by_what_the_function_says) {
  const auto last_digit = [](std::int64_t n) { return n * 7 % 10; };
  EXPECT_THAT(numbers().sort_by(last_digit).collect(), ElementsAre(0, 3, 6, 2, 5, 1, 4));
  EXPECT_THAT(numbers().sort_by(last_digit, troupe::sort_order::descending, 2).collect(),
              ElementsAre(4, 1, 5, 2, 6, 3, 0));
  EXPECT_THAT(numbers().sort_by(with(3), [](int by, std::int64_t n) { return n % by; }).collect(),
              ElementsAre(0, 3, 6, 1, 4, 2, 5));
}

TEST_F(derived_operations, union_has_the_records_of_one_and_then_of_the_other) {
  const auto both = numbers(4).union_with(session_.range(10, 13, 2));
  EXPECT_EQ(both.partitions(), 5u);
  EXPECT_THAT(both.collect(), ElementsAre(0, 1, 2, 3, 10, 11, 12));
  EXPECT_THAT(both.union_with(both).map([](std::int64_t n) { return n; }).collect(), SizeIs(14));
  EXPECT_EQ(numbers(0).union_with(numbers(0)).count(), 0u);
}

TEST_F(derived_operations, repartition_spreads_records_evenly) {
  const auto spread = session_.range(0, 12, 1).repartition(4);
  EXPECT_EQ(spread.partitions(), 4u);
  const auto sizes = spread.map_partitions([](std::vector<std::int64_t> part) { return std::vector{part.size()}; });
  EXPECT_THAT(sizes.collect(), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(sorted(spread.collect()), SizeIs(12));
  // Old partitions begin at different new ones.
  EXPECT_THAT(session_.range(0, 3, 3).repartition(3).collect(), ElementsAre(0, 1, 2));
  EXPECT_THAT(session_.range(0, 3, 3)
                  .repartition(3)
                  .map_partitions([](std::vector<std::int64_t> part) { return std::vector{part.size()}; })
                  .collect(),
              ElementsAre(1, 1, 1));
}

TEST_F(derived_operations, coalesce_puts_neighbours_together) {
  const auto few = session_.range(0, 10, 5).coalesce(2);
  EXPECT_EQ(few.partitions(), 2u);
  EXPECT_THAT(few.map_partitions([](std::vector<std::int64_t> part) { return std::vector{part.size()}; }).collect(),
              ElementsAre(6, 4));
  EXPECT_THAT(few.collect(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_EQ(session_.range(0, 10, 5).coalesce(9).partitions(), 5u) << "it makes none more";
}

TEST_F(derived_operations, zip_with_index_counts_over_all_partitions) {
  const auto odd = numbers(9).filter([](std::int64_t n) { return n % 2 == 1; });
  EXPECT_THAT(odd.zip_with_index().collect(), ElementsAre(Pair(1, 0), Pair(3, 1), Pair(5, 2), Pair(7, 3)));
  EXPECT_EQ(numbers(0).zip_with_index().count(), 0u);
}

/// Both jobs have a stage that keeps, and it keeps the same.
void expect_kept_between(const troupe::job_spec& first, const troupe::job_spec& second) {
  ASSERT_TRUE(first.stages.at(0).keeps);
  ASSERT_TRUE(second.stages.at(0).keeps);
  EXPECT_EQ(first.stages[0].keeps->id, second.stages[0].keeps->id);
  EXPECT_EQ(first.stages[0].keeps->level, troupe::storage_level::memory_and_disk);
}

TEST_F(derived_operations, that_look_at_records_first_keep_them_for_the_job_itself) {
  const auto squares = numbers().map([](std::int64_t n) { return n * n; });
  squares.zip_with_index().count();
  ASSERT_THAT(runner_->jobs, SizeIs(2));
  expect_kept_between(*runner_->jobs[0], *runner_->jobs[1]);
  squares.sorted().count();
  ASSERT_THAT(runner_->jobs, SizeIs(4));
  expect_kept_between(*runner_->jobs[2], *runner_->jobs[3]);
  const auto kept = squares.cache();
  kept.sorted().count();
  EXPECT_EQ(runner_->jobs.back()->stages[0].keeps->level, troupe::storage_level::memory) << "kept anyway";
  kept.unpersist();
  kept.sorted().count();
  EXPECT_EQ(runner_->jobs.back()->stages[0].keeps->level, troupe::storage_level::memory_and_disk);
  numbers().sorted().count();
  EXPECT_FALSE(runner_->jobs.back()->stages[0].keeps) << "no function of the author's has made them";
  squares.sorted(troupe::sort_order::ascending, 1).count();
  EXPECT_FALSE(runner_->jobs.back()->stages[0].keeps) << "no job looks first";
}

TEST_F(derived_operations, that_have_kept_records_let_them_go) {
  const auto squares = numbers().map([](std::int64_t n) { return n * n; });
  const auto expect_let_go = [&](const auto& made) {
    EXPECT_EQ(runner_->kept_broadcasts(), 1u);
    const auto before = made.collect();
    made.unpersist();
    EXPECT_EQ(runner_->kept_broadcasts(), 0u);
    EXPECT_EQ(made.collect(), before);
    EXPECT_FALSE(runner_->jobs.back()->stages[0].keeps);
  };
  expect_let_go(squares.zip_with_index());
  expect_let_go(squares.sorted());
  expect_let_go(squares.sort_by([](std::int64_t n) { return -n; }));
  const auto kept = squares.cache();
  kept.sorted().unpersist();
  EXPECT_EQ(runner_->kept_broadcasts(), 1u) << "the author's own";
}

TEST_F(derived_operations, samples_are_as_large_as_they_should_be_and_the_same_for_one_seed) {
  const auto many = session_.range(0, 10'000, 4);
  const auto some = many.sample(0.1, 7).collect();
  EXPECT_GT(some.size(), 850u); // five standard deviations
  EXPECT_LT(some.size(), 1150u);
  EXPECT_EQ(many.sample(0.1, 7).collect(), some);
  EXPECT_NE(many.sample(0.1, 8).collect(), some);
  EXPECT_EQ(many.sample(0).count(), 0u);
  EXPECT_EQ(many.sample(1).count(), 10'000u);
  std::map<std::int64_t, int> quarters;
  for (const auto n : some) ++quarters[n / 2500];
  EXPECT_THAT(quarters, SizeIs(4));
  for (const auto& [quarter, count] : quarters) EXPECT_GT(count, 170) << quarter;
  // Partitions draw other numbers.
  const auto first = session_.range(0, 1000, 1).sample(0.5).collect();
  auto second = session_.range(-1000, 1000, 2).sample(0.5).filter([](std::int64_t n) { return n >= 0; }).collect();
  EXPECT_NE(first, second);
  EXPECT_THROW(many.sample(1.5), std::invalid_argument);
  EXPECT_THROW(many.sample(-0.1), std::invalid_argument);
}

TEST_F(derived_operations, numbers_are_added_up_in_their_widest_type) {
  EXPECT_EQ(numbers().sum(), 21);
  EXPECT_EQ(numbers(0).sum(), 0);
  const auto bytes = numbers(3).map([](std::int64_t) { return static_cast<std::uint8_t>(200); }).sum();
  static_assert(std::is_same_v<decltype(bytes), const std::uint64_t>);
  EXPECT_EQ(bytes, 600u);
  EXPECT_EQ(numbers(3).map([](std::int64_t) { return -1; }).sum(), -3);
  EXPECT_EQ(numbers(3).map([](std::int64_t) { return 0.5F; }).sum(), 1.5);
  EXPECT_EQ(pairs().keys().sum(), "abacba") << "in partition order";
}

TEST_F(derived_operations, least_and_greatest_are_the_first_of_equal_ones) {
  EXPECT_THAT(numbers().min(), Optional(0));
  EXPECT_THAT(numbers().max(), Optional(6));
  EXPECT_FALSE(numbers(0).min());
  EXPECT_FALSE(numbers(0).max());
  const auto versions = session_.parallelize<version>({{2, "a"}, {1, "b"}, {2, "c"}, {1, "d"}}, 2);
  EXPECT_EQ(versions.min()->name, "b");
  EXPECT_EQ(versions.max()->name, "a");
}

TEST_F(derived_operations, first_is_the_first_in_partition_order) {
  EXPECT_THAT(numbers().filter([](std::int64_t n) { return n > 3; }).first(), Optional(4));
  EXPECT_FALSE(numbers(0).first());
}

TEST_F(derived_operations, work_on_flags_and_on_what_may_be_nothing) {
  const auto flags = session_.parallelize<std::pair<int, bool>>({{1, true}, {2, false}}, 2);
  EXPECT_THAT(flags.left_join(flags.filter([](const auto& p) { return p.second; })).collect(),
              UnorderedElementsAre(Pair(1, Pair(true, Optional(true))), Pair(2, Pair(false, std::nullopt))));
  EXPECT_THAT(flags.full_join(flags).count(), 2u);
  EXPECT_THAT(flags.values().first(), Optional(true));
  EXPECT_EQ(flags.values().top(1), std::vector<bool>{true});
  const auto maybe = session_.parallelize<std::optional<int>>({std::nullopt, 3}, 1);
  EXPECT_THAT(maybe.first(), Optional(std::optional<int>{}));
  EXPECT_FALSE(maybe.filter([](const auto& m) { return m && *m > 9; }).first());
}

TEST_F(derived_operations, what_is_no_number_is_greater_than_all_numbers) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::uint32_t parts : {1u, 3u}) {
    const auto some = session_.parallelize<double>({nan, 1, nan, 2}, parts);
    EXPECT_EQ(some.min(), 1) << parts;
    EXPECT_TRUE(std::isnan(*some.max())) << parts;
    EXPECT_THAT(session_.parallelize<double>({1, nan}, parts).min(), Optional(1)) << parts;
  }
}

TEST_F(derived_operations, samples_of_samples_draw_again) {
  const auto ten_each = session_.range(0, 20'000, 2'000);
  EXPECT_LT(ten_each.sample(0.1).sample(0.1).count(), 300u) << "a hundredth, and not nearly a tenth";
  EXPECT_LT(ten_each.sample(0.1).union_with(ten_each.filter([](std::int64_t) { return false; })).sample(0.1).count(),
            300u);
}

TEST_F(derived_operations, zip_with_index_fails_where_other_records_come) {
  static std::atomic<int> rounds{0};
  rounds = 0;
  const auto more_each_time = session_.range(0, 1, 1).flat_map(
      [](std::int64_t) { return std::vector<int>(static_cast<std::size_t>(++rounds)); });
  try {
    more_each_time.zip_with_index().count(); // nothing is kept between jobs here
    FAIL() << "no exception";
  } catch (const troupe::job_error& e) {
    EXPECT_THAT(e.what(), ::testing::HasSubstr("not the records that were counted"));
  }
}

TEST_F(derived_operations, where_records_may_come_in_another_order_they_go_by_their_content) {
  const auto spread = session_.range(0, 100, 1).indeterminate().repartition(4);
  const auto again = session_.range(0, 100, 2).indeterminate().repartition(4);
  const auto parts = [](const auto& what) {
    auto all = what.map_partitions([](std::vector<std::int64_t> part) {
                     return std::vector<std::vector<std::int64_t>>{std::move(part)};
                   })
                   .collect();
    for (auto& part : all) std::sort(part.begin(), part.end());
    return all;
  };
  EXPECT_EQ(parts(spread), parts(again));
  EXPECT_NE(parts(session_.range(0, 100, 1).repartition(4)), parts(spread));
}

TEST_F(derived_operations, aggregates_that_grow_leave_the_task_before_they_are_all_of_its_memory) {
  static std::atomic<int> merges{0};
  merges = 0;
  const auto all = session_.range(0, 400'000, 1)
                       .key_by([](std::int64_t) { return 0; })
                       .aggregate_by_key(
                           std::vector<std::int64_t>{},
                           [](std::vector<std::int64_t> list, std::int64_t n) {
                             list.push_back(n);
                             return list;
                           },
                           [](std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
                             ++merges;
                             a.insert(a.end(), b.begin(), b.end());
                             return a;
                           })
                       .collect();
  EXPECT_GT(merges, 0) << "of one task, whose values were folded to several lists";
  ASSERT_THAT(all, SizeIs(1));
  std::vector<std::int64_t> expected(400'000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_TRUE(all[0].second == expected);
}

TEST_F(derived_operations, count_by_key_counts_pairs) {
  EXPECT_THAT(pairs().count_by_key(), UnorderedElementsAre(Pair("a", 3u), Pair("b", 2u), Pair("c", 1u)));
}

} // namespace
} // namespace derived_tests
