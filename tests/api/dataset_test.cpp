#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <stdlib.h>

#include <troupe/runtime/api/resource_profile_builder.hpp>
#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/api/stable_hash.hpp>

#include "inline_runner.hpp"

namespace {

using troupe::ec;
using troupe::emitter;
using troupe::job_error;
using troupe::with;
using word_count = std::pair<std::string, long>;

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < line.size();) {
    const auto end = std::min(line.find(' ', at), line.size());
    if (end > at) found.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return found;
}
std::size_t length(const std::string& text) noexcept { return text.size(); }

/// Counts copies, so that a record that was to be moved is not copied unseen.
struct counted {
  int value = 0;
  inline static int copies = 0;
  counted() = default;
  explicit counted(int v) : value(v) {}
  counted(counted&&) = default;
  counted& operator=(counted&&) = default;
  counted(const counted& other) : value(other.value) { ++copies; }
  counted& operator=(const counted& other) {
    value = other.value;
    ++copies;
    return *this;
  }
  template <class Archive>
  friend void troupe_serialize(Archive& archive, counted& c) {
    archive(c.value);
  }
};

/// Can be written, and read only while tasks run.
struct fragile {};
} // namespace
template <>
struct troupe::serializer<fragile> {
  static void write(encoder& out, const fragile&) { out.number('x'); }
  static fragile read(decoder& in) {
    in.number<char>();
    try {
      static_cast<void>(task_context::current());
    } catch (const std::logic_error&) {
      throw decode_error("not here");
    }
    return {};
  }
};
namespace {

class datasets : public testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {3, {}, {}, {}}};

  troupe::dataset<std::string> lines(std::uint32_t partitions = 3) {
    return session_.parallelize<std::string>({"to be or", "not to be", "", "that is", "to be"}, partitions);
  }
  troupe::dataset<word_count> pairs() {
    return lines().flat_map(troupe::fn<words>).map([](std::string w) { return word_count{std::move(w), 1}; });
  }
};

template <class T>
std::vector<T> sorted(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return values;
}

TEST_F(datasets, a_range_is_cut_into_parts_without_gap_or_overlap) {
  for (const std::uint32_t parts : {1u, 2u, 3u, 7u, 20u}) {
    std::vector<std::int64_t> expected(11);
    std::iota(expected.begin(), expected.end(), -3);
    EXPECT_EQ(session_.range(-3, 8, parts).collect(), expected) << parts;
  }
  EXPECT_EQ(session_.range(5, 5).count(), 0u);
  EXPECT_EQ(session_.range(5, 4).count(), 0u);
  EXPECT_EQ(session_.range(0, 10).partitions(), 3u);
  const auto [low, high] =
      std::pair{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(session_.range(high - 2, high, 2).collect(), (std::vector{high - 2, high - 1}));
  EXPECT_EQ(session_.range(low, low + 2, 2).collect(), (std::vector{low, low + 1}));
}

TEST_F(datasets, narrow_operations_run_in_order_within_one_stage) {
  const auto lengths = lines()
                           .flat_map(troupe::fn<words>)
                           .filter([](const std::string& w) { return w != "be"; })
                           .map(troupe::fn<length>)
                           .collect();
  EXPECT_EQ(lengths, (std::vector<std::size_t>{2, 2, 3, 2, 4, 2, 2}));
  EXPECT_EQ(runner_->jobs.back()->stages.size(), 1u);
}

TEST_F(datasets, of_what_a_reference_shows_the_next_step_gets_a_copy) {
  const auto texts = lines().map([](const std::string& line) -> const std::string& { return line; });
  static_assert(std::is_same_v<decltype(texts)::record_type, std::string>);
  EXPECT_EQ(texts.collect(), lines().collect());
  EXPECT_EQ(
      session_.range(0, 2)
          .map(with(std::string{"shared"}), [](std::string const& s, std::int64_t) -> const std::string& { return s; })
          .map([](std::string s) { return std::move(s) + "!"; })
          .collect(),
      (std::vector<std::string>{"shared!", "shared!"}));
}

TEST_F(datasets, captures_come_before_the_record) {
  const auto numbers = session_.range(0, 6);
  EXPECT_EQ(numbers
                .map(with(10, std::string{"!"}), [](const int& factor, const std::string& mark,
                                                    std::int64_t n) { return std::to_string(n * factor) + mark; })
                .collect(),
            (std::vector<std::string>{"0!", "10!", "20!", "30!", "40!", "50!"}));
  EXPECT_EQ(numbers.filter(with(4), [](int limit, std::int64_t n) { return n >= limit; }).count(), 2u);
  EXPECT_EQ(numbers.reduce(with(1), [](int one, std::int64_t a, std::int64_t b) { return a + b + one; }), 15 + 5);
  EXPECT_EQ(
      numbers.top(1, with(3), [](int x, std::int64_t a, std::int64_t b) { return std::abs(a - x) < std::abs(b - x); }),
      std::vector<std::int64_t>{3});
}

TEST_F(datasets, flat_map_takes_an_emitter_too) {
  const auto repeated = session_.range(0, 4, 2)
                            .flat_map([](std::int64_t n, emitter<std::string>& emit) {
                              for (std::int64_t i = 0; i < n; ++i) emit(std::to_string(n));
                            })
                            .collect();
  EXPECT_EQ(repeated, (std::vector<std::string>{"1", "2", "2", "3", "3", "3"}));
}

/// Where nothing stands between, no string is made of it.
TEST_F(datasets, an_emitter_takes_keys_that_are_texts_as_they_are) {
  std::vector<word_count> expected;
  for (std::size_t size = 0; size < 40; ++size)
    expected.emplace_back(std::string(size, 'k'), static_cast<long>(40 - size));
  const auto lengths = session_.range(0, 40, 3);
  const auto prefixes = [](std::int64_t n, emitter<word_count>& each) {
    const std::string text(40, 'k');
    for (std::int64_t size = 0; size <= n; ++size)
      each(std::string_view{text}.substr(0, static_cast<std::size_t>(size)), 1);
  };
  const auto pairs = lengths.flat_map(prefixes);
  EXPECT_THAT(pairs.reduce_by_key(std::plus<>{}).collect(), ::testing::UnorderedElementsAreArray(expected));
  EXPECT_THAT(pairs.map([](word_count record) { return record; }).reduce_by_key(std::plus<>{}, 2).collect(),
              ::testing::UnorderedElementsAreArray(expected));
  EXPECT_EQ(pairs.count(), 40u * 41 / 2);
}

TEST_F(datasets, map_partitions_sees_whole_partitions_and_empty_ones) {
  const auto numbers = session_.range(0, 3, 5);
  EXPECT_EQ(numbers.map_partitions([](std::vector<std::int64_t> part) { return std::vector{part.size()}; }).collect(),
            (std::vector<std::size_t>{0, 1, 0, 1, 1}));
  EXPECT_EQ(numbers
                .map_partitions(with(7),
                                [](int seven, const std::vector<std::int64_t>& part, emitter<std::int64_t>& emit) {
                                  for (const auto n : part) emit(n + seven);
                                })
                .collect(),
            (std::vector<std::int64_t>{7, 8, 9}));
}

TEST_F(datasets, records_are_moved_not_copied) {
  counted::copies = 0;
  const auto total = session_.range(0, 100, 2)
                         .map([](std::int64_t n) { return counted{static_cast<int>(n)}; })
                         .filter([](const counted& c) { return c.value % 2 == 0; })
                         .flat_map([](counted c, emitter<counted>& emit) { emit(std::move(c)); })
                         .map_partitions([](std::vector<counted> part) { return part; })
                         .map([](counted c) { return c.value; })
                         .reduce(std::plus<>{});
  EXPECT_EQ(total, 2450);
  EXPECT_EQ(counted::copies, 0);
}

TEST_F(datasets, what_a_view_shows_is_copied_not_emptied) {
  const auto twice = session_.parallelize<std::vector<std::string>>({{"x", "y"}}, 1)
                         .flat_map([](std::vector<std::string> v, emitter<std::string>& emit) {
                           for (int i = 0; i < 2; ++i)
                             for (const auto& s : std::views::all(v)) emit(s);
                         })
                         .collect();
  EXPECT_EQ(twice, (std::vector<std::string>{"x", "y", "x", "y"}));
  static std::vector<std::string> kept{"long enough to live on the heap, surely"};
  const auto dataset = session_.range(0, 2, 1).flat_map([](std::int64_t) { return std::views::all(kept); });
  EXPECT_EQ(dataset.collect(), (std::vector<std::string>{kept[0], kept[0]}));
}

TEST_F(datasets, reduce_by_key_combines_each_key_once) {
  const auto counts = pairs().reduce_by_key(std::plus<>{}).collect();
  const std::vector<word_count> expected{{"be", 3}, {"is", 1}, {"not", 1}, {"or", 1}, {"that", 1}, {"to", 3}};
  EXPECT_EQ(sorted(counts), expected);
  EXPECT_EQ(sorted(pairs().reduce_by_key(std::plus<>{}, 1).collect()), expected);
  EXPECT_EQ(
      sorted(
          pairs().reduce_by_key(with(100L), [](long cap, long a, long b) { return std::min(cap, a + b); }).collect()),
      expected);
}

TEST_F(datasets, values_are_combined_before_the_shuffle) {
  const auto same = session_.range(0, 1000, 2).map([](std::int64_t n) { return std::pair{n % 3, std::vector{n}}; });
  const auto joined = same.reduce_by_key([](std::vector<std::int64_t> a, std::vector<std::int64_t>) { return a; }, 1);
  // The first value of each key in partition order: map tasks and the reducer both keep order.
  EXPECT_EQ(sorted(joined.collect()),
            (std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>{{0, {0}}, {1, {1}}, {2, {2}}}));
}

TEST_F(datasets, results_are_the_same_every_time) {
  const auto run = [&] { return pairs().reduce_by_key(std::plus<>{}, 2).collect(); };
  EXPECT_EQ(run(), run());
  std::uint64_t before = 0;
  for (const auto& [word, ones] : pairs().group_by_key(1).collect()) {
    const auto hash = troupe::stable_hash(troupe::encode_value(word));
    EXPECT_LT(before, hash) << "keys come in the order of their hashes";
    before = hash;
  }
}

TEST_F(datasets, a_map_task_combines_no_more_than_so_much_at_once) {
  // Each key comes twice, far apart: the reducer has to put together what the map task has let go of.
  static std::atomic<int> in_reducers = 0;
  const auto sums = session_.range(0, 400'000, 1)
                        .map([](std::int64_t n) {
                          return std::pair{"some key of a few bytes " + std::to_string(n % 200'000), n};
                        })
                        .reduce_by_key(
                            [](std::int64_t a, std::int64_t b) {
                              if (troupe::task_context::current().buckets == 0) ++in_reducers;
                              return a + b;
                            },
                            1);
  EXPECT_EQ(sums.map([](const std::pair<std::string, std::int64_t>& p) { return p.second; })
                .reduce([](std::int64_t a, std::int64_t b) { return a + b; }),
            std::int64_t{400'000} * 399'999 / 2);
  EXPECT_EQ(sums.count(), 200'000u);
  EXPECT_GT(in_reducers, 0);
}

TEST_F(datasets, group_by_key_keeps_the_order_of_partitions) {
  const auto grouped = session_.range(0, 12, 4)
                           .map([](std::int64_t n) {
                             return std::pair{n % 2 == 0, n};
                           })
                           .group_by_key(2)
                           .collect();
  ASSERT_EQ(grouped.size(), 2u);
  const std::map<bool, std::vector<std::int64_t>> by_key(grouped.begin(), grouped.end());
  EXPECT_EQ(by_key.at(true), (std::vector<std::int64_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(by_key.at(false), (std::vector<std::int64_t>{1, 3, 5, 7, 9, 11}));
}

TEST_F(datasets, join_gives_every_combination_of_a_key) {
  const auto left = session_.parallelize<std::pair<int, std::string>>({{1, "a"}, {2, "b"}, {1, "c"}}, 2);
  const auto right = session_.parallelize<std::pair<int, double>>({{1, 0.5}, {3, 1.5}, {1, 2.5}}, 2);
  using joined = std::pair<int, std::pair<std::string, double>>;
  EXPECT_EQ(sorted(left.join(right).collect()),
            (std::vector<joined>{{1, {"a", 0.5}}, {1, {"a", 2.5}}, {1, {"c", 0.5}}, {1, {"c", 2.5}}}));
  EXPECT_EQ(left.join(left).count(), 5u) << "with itself";
}

TEST_F(datasets, top_orders_pairs_by_value_and_then_key) {
  const auto counts = pairs().reduce_by_key(std::plus<>{});
  EXPECT_EQ(counts.top(3), (std::vector<word_count>{{"be", 3}, {"to", 3}, {"is", 1}}));
  EXPECT_EQ(counts.top(0), std::vector<word_count>{});
  EXPECT_EQ(counts.top(99).size(), 6u);
  EXPECT_EQ(counts.top(2, [](const auto& a, const auto& b) { return a.first < b.first; }),
            (std::vector<word_count>{{"be", 3}, {"is", 1}}));
  std::vector<std::int64_t> last(100);
  std::iota(last.rbegin(), last.rend(), 900);
  EXPECT_EQ(session_.range(0, 1000, 3).top(100), last);
}

TEST_F(datasets, equal_records_stay_in_the_order_of_partitions) {
  const auto firsts = session_.range(0, 1000, 4).top(5, [](std::int64_t, std::int64_t) { return false; });
  EXPECT_EQ(firsts, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST_F(datasets, reduce_folds_in_order_and_has_nothing_to_say_about_nothing) {
  const auto letters = session_.parallelize<std::string>({"a", "b", "c", "d", "e"}, 2);
  EXPECT_EQ(letters.reduce(std::plus<>{}), "abcde");
  EXPECT_EQ(session_.parallelize<std::string>({"z"}, 3).reduce(std::plus<>{}), "z") << "empty partitions have no say";
  EXPECT_EQ(session_.range(0, 0).reduce(std::plus<>{}), std::nullopt);
}

TEST_F(datasets, take_stops_at_its_number) {
  EXPECT_EQ(session_.range(0, 100, 4).take(3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(session_.range(0, 4, 4).take(3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(session_.range(0, 2).take(3).size(), 2u);
}

TEST_F(datasets, foreach_reaches_every_record) {
  static std::int64_t sum = 0;
  sum = 0;
  session_.range(0, 10, 3).foreach ([](std::int64_t n) { sum += n; });
  EXPECT_EQ(sum, 45);
}

TEST_F(datasets, tasks_see_their_own_addresses) {
  const auto gpu = troupe::resource_profile_builder{}
                       .require(troupe::executor_resource_requests{}.cores(2).resource("gpu", 1))
                       .require(troupe::task_resource_requests{}.cpus(1).resource("gpu", "0.5"))
                       .build();
  const auto seen = session_.range(0, 1, 1)
                        .map([](std::int64_t) {
                          const auto& own = troupe::task_context::current().addresses("gpu");
                          return own.empty() ? std::string{"none"} : own.front().address;
                        })
                        .with_resources(gpu);
  EXPECT_EQ(seen.collect(), std::vector<std::string>{"0"});
}

TEST_F(datasets, large_results_are_fetched_in_their_place) {
  runner_->max_inline_result = 20;
  const auto values = session_.parallelize<std::string>({"small", std::string(100, 'x'), "end"}, 3).collect();
  EXPECT_EQ(values, (std::vector<std::string>{"small", std::string(100, 'x'), "end"}));
}

TEST_F(datasets, results_are_released_when_all_were_fetched_or_one_could_not_be_read) {
  runner_->max_inline_result = 0;
  EXPECT_EQ(session_.range(0, 9, 3).count(), 9u);
  EXPECT_EQ(runner_->kept_results(), 0u);
  EXPECT_THROW(session_.parallelize<fragile>({{}}, 2).collect(), troupe::decode_error);
  EXPECT_EQ(runner_->kept_results(), 0u);
}

TEST_F(datasets, a_failed_task_is_an_exception_with_its_words) {
  try {
    session_.range(0, 3, 3)
        .map([](std::int64_t n) {
          if (n == 1) throw std::runtime_error("one is too many");
          return n;
        })
        .count();
    FAIL() << "no exception";
  } catch (const job_error& e) {
    EXPECT_EQ(e.code(), ec::task_failed);
    EXPECT_NE(std::string{e.what()}.find("one is too many"), std::string::npos);
    EXPECT_NE(std::string{e.what()}.find("partition 1"), std::string::npos);
    EXPECT_EQ(e.progress().state, troupe::job_state::failed);
  }
}

TEST_F(datasets, text_files_are_lines_of_files_in_order) {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "troupe-text-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const fs::path folder{name};
  const std::string wide(200'000, 'w'); // longer than what is read at once
  std::ofstream{folder / "a"} << "one\ntwo\r\n\nlast without end";
  std::ofstream{folder / "b"} << wide << "\n";
  std::ofstream{folder / "c"};
  fs::create_symlink("a", folder / "also-a");
  EXPECT_EQ(session_.text_files((folder / "*").string()).collect(),
            (std::vector<std::string>{"one", "two", "", "last without end", wide}));
  const auto whole = session_.whole_text_files((folder / "[ac]").string(), 1);
  EXPECT_EQ(whole.partitions(), 1u);
  EXPECT_EQ(whole.collect(),
            (std::vector<std::pair<std::string, std::string>>{
                {(folder / "a").string(), "one\ntwo\r\n\nlast without end"}, {(folder / "c").string(), ""}}));
  const auto lines = session_.text_files((folder / "a").string());
  fs::remove_all(folder);
  EXPECT_THROW(session_.text_files((folder / "a").string()), job_error);
  EXPECT_THROW(lines.count(), job_error) << "the file is gone when the task reads it";
}

} // namespace
