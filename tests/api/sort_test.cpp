// Sorting, with little memory and with much.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <csignal>
#include <malloc.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <troupe/runtime/api/session.hpp>

#include "inline_runner.hpp"

namespace {

using troupe::encode_value;
using troupe::record_sorter;
using troupe::record_spill;
using troupe::sort_order;
using troupe::detail::directed_order;

// -- the order of encoded keys

template <class K>
void expect_order(const std::vector<K>& rising) {
  using up = directed_order<K, false>;
  using down = directed_order<K, true>;
  for (std::size_t i = 0; i < rising.size(); ++i)
    for (std::size_t j = 0; j < rising.size(); ++j) {
      const auto a = encode_value(rising[i]);
      const auto b = encode_value(rising[j]);
      EXPECT_EQ(troupe::detail::comes_before<up>(a, b), i < j) << i << ' ' << j;
      EXPECT_EQ(troupe::detail::comes_before<down>(a, b), j < i) << i << ' ' << j;
    }
}

enum class shade : std::int8_t { dark = -1, grey = 0, light = 1 };
struct version {
  int major = 0;
  int minor = 0;
  bool operator<(const version& other) const { return std::pair{major, minor} < std::pair{other.major, other.minor}; }
  bool operator==(const version&) const = default;
  template <class Archive>
  friend void troupe_serialize(Archive& archive, version& v) {
    archive(v.major, v.minor);
  }
};

TEST(key_order, of_what_consists_of_others_is_that_of_these) {
  const auto nan = std::numeric_limits<double>::quiet_NaN();
  expect_order<std::pair<int, double>>({{0, -1.0}, {0, 2.0}, {0, nan}, {1, -5.0}, {1, nan}});
  expect_order<std::tuple<std::string, double, bool>>(
      {{"a", 1.0, false}, {"a", 1.0, true}, {"a", nan, false}, {"b", -1.0, false}});
  expect_order<std::vector<double>>({{}, {1.0}, {1.0, 2.0}, {2.0}, {nan}});
  expect_order<std::optional<double>>({std::nullopt, -1.0, 1.0, nan});
  expect_order<std::array<double, 2>>({{1.0, 2.0}, {1.0, nan}, {2.0, 0.0}});
}

TEST(key_order, is_that_of_the_values) {
  using limits = std::numeric_limits<std::int64_t>;
  expect_order<std::int64_t>({limits::min(), -256, -1, 0, 1, 255, 256, limits::max()});
  expect_order<std::uint64_t>({0, 1, 255, 256, std::numeric_limits<std::uint64_t>::max()});
  expect_order<int>({-70'000, -1, 0, 1, 70'000});
  expect_order<bool>({false, true});
  expect_order<shade>({shade::dark, shade::grey, shade::light});
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  expect_order<double>({-infinity, -1e300, -1.5, -1e-300, 0.0, 1e-300, 1.5, 1e300, infinity, std::nan("")});
  expect_order<float>({-1.5f, 0.0f, 1.5f});
  EXPECT_FALSE((troupe::detail::comes_before<directed_order<double, false>>(encode_value(-0.0), encode_value(0.0))));
  expect_order<std::string>({"", std::string(1, '\0'), "a", std::string("a\0", 2), "aaaaaaaa", "aaaaaaaab", "aaaaaaaac",
                             "a\x7f", "a\x80", "b", "\xff"});
  expect_order<std::pair<std::string, int>>({{"a", -1}, {"a", 2}, {"aaaaaaaaa", 0}, {"b", -5}});
  expect_order<version>({{1, 9}, {1, 10}, {2, 0}});
  expect_order<std::vector<int>>({{}, {1}, {1, 2}, {2}});
}

// -- the sorter

class record_sorter_test : public testing::Test {
protected:
  record_sorter_test() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-sort-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary directory");
    directory = pattern;
    directories.emplace(std::vector<std::string>{directory});
  }
  ~record_sorter_test() override { std::filesystem::remove_all(directory); }

  record_sorter::options options(std::uint64_t memory) {
    using order = directed_order<std::string, false>;
    record_sorter::options o;
    o.memory = memory;
    o.prefix = &order::prefix;
    o.compare = &order::compare;
    o.piece = &order::piece;
    o.spill = [this](std::size_t page) -> std::optional<record_spill::options> {
      return record_spill::options{&*directories, "sort", {}, page};
    };
    return o;
  }
  using records = std::vector<std::pair<std::string, std::string>>;
  static records some(std::size_t count, std::uint32_t keys) {
    std::mt19937 dice{5};
    records all;
    for (std::size_t i = 0; i < count; ++i)
      all.emplace_back("common prefix " + std::to_string(dice() % keys),
                       std::to_string(i) + std::string(dice() % 40, '.'));
    return all;
  }
  static void add(record_sorter& sorter, const records& all) {
    for (const auto& [key, value] : all) sorter.add(encode_value(key), value);
  }
  static records sorted_of(record_sorter& sorter) {
    records out;
    sorter.for_each(
        [&](const troupe::sorted_record& r) { out.emplace_back(troupe::decode_value<std::string>(r.key), r.value); });
    return out;
  }
  static records stably(records all) {
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return all;
  }

  std::string directory;
  std::optional<troupe::block_directories> directories;
};

/// Texts of which many begin alike, for long, with zeros and ends where one does not expect them.
TEST_F(record_sorter_test, keys_that_begin_alike_are_in_order_to_their_ends) {
  std::mt19937 dice{7};
  records all;
  for (int i = 0; i < 20'000; ++i) {
    std::string key(dice() % 3 * 40, 'p'); // beyond what is looked at in pieces, too
    const auto rest = dice() % 24;
    for (std::uint32_t n = 0; n < rest; ++n) key += "\0ab\xff"[dice() % 4 & dice()];
    all.emplace_back(std::move(key), std::to_string(i));
  }
  for (const std::uint64_t memory : {64 << 20, 200 << 10}) {
    record_sorter up{options(memory)};
    add(up, all);
    EXPECT_EQ(sorted_of(up), stably(all)) << memory;
    auto o = options(memory);
    using down = directed_order<std::string, true>;
    o.prefix = &down::prefix;
    o.compare = &down::compare;
    o.piece = &down::piece;
    record_sorter falling{std::move(o)};
    add(falling, all);
    auto expected = all;
    std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return b.first < a.first; });
    EXPECT_EQ(sorted_of(falling), expected) << memory;
  }
}

TEST_F(record_sorter_test, equal_keys_keep_their_order_however_little_memory_there_is) {
  const auto all = some(20'000, 500);
  const auto expected = stably(all);
  for (const std::uint64_t memory : {64u << 20, 1'000'000u, 100'000u, 5'000u}) {
    record_sorter sorter{options(memory)};
    add(sorter, all);
    if (memory > 60'000'000)
      EXPECT_EQ(sorter.runs(), 0u);
    else
      EXPECT_GE(sorter.runs(), 1u);
    EXPECT_TRUE(sorted_of(sorter) == expected) << memory;
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(record_sorter_test, many_runs_are_merged_to_few) {
  record_sorter sorter{options(20'000)};
  const auto all = some(30'000, 30'000);
  add(sorter, all); // in memory for some 150 records: 200 runs
  EXPECT_LE(sorter.runs(), 16u);
  EXPECT_TRUE(sorted_of(sorter) == stably(all));
}

TEST_F(record_sorter_test, nothing_and_records_larger_than_memory_are_no_exceptions) {
  record_sorter empty{options(1000)};
  EXPECT_TRUE(sorted_of(empty).empty());
  records large;
  for (int i = 5; i > 0; --i) large.emplace_back(std::string(1, static_cast<char>('a' + i)), std::string(100'000, 'x'));
  large.emplace_back("", "");
  record_sorter sorter{options(1000)};
  add(sorter, large);
  EXPECT_TRUE(sorted_of(sorter) == stably(large));
}

TEST_F(record_sorter_test, without_a_place_everything_stays_in_memory) {
  auto o = options(1000);
  o.spill = nullptr;
  record_sorter sorter{std::move(o)};
  const auto all = some(5000, 300);
  add(sorter, all);
  EXPECT_EQ(sorter.runs(), 0u);
  EXPECT_TRUE(sorted_of(sorter) == stably(all));
}

TEST_F(record_sorter_test, runs_of_large_records_are_merged_within_the_memory) {
  record_sorter sorter{options(1 << 20)};
  for (int i = 0; i < 40; ++i) sorter.add(encode_value(std::to_string(2000 - i)), std::string(300'000, 'x'));
  std::size_t count = 0;
  std::string last;
  sorter.for_each([&](const troupe::sorted_record& r) {
    EXPECT_LE(last, r.key);
    last = r.key;
    EXPECT_EQ(r.value.size(), 300'000u);
    ++count;
  });
  EXPECT_EQ(count, 40u);
}

TEST_F(record_sorter_test, reading_its_runs_takes_no_more_than_its_memory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "memory is counted otherwise";
#endif
  const auto before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  record_sorter sorter{options(1 << 20)};
  for (int i = 0; i < 200'000; ++i) sorter.add(encode_value(std::to_string(i * 7919 % 200'000)), std::string(90, 'x'));
  std::size_t most = 0;
  std::size_t count = 0;
  sorter.for_each([&](const troupe::sorted_record&) {
    if (++count % 1000 == 0) most = std::max(most, ::mallinfo2().uordblks + ::mallinfo2().hblkhd - before);
  });
  EXPECT_EQ(count, 200'000u);
  EXPECT_LT(most, (1u << 20) * 2);
}

TEST_F(record_sorter_test, without_a_place_many_records_take_no_longer_each) {
  record_sorter sorter{{.memory = 64 << 10, .spill = {}, .prefix = &directed_order<std::string, false>::prefix}};
  // Were all of it copied for each record beyond the memory, this would take hours.
  for (int i = 0; i < 1'000'000; ++i) sorter.add(encode_value(std::to_string(i)), "0123456789");
  std::size_t count = 0;
  sorter.for_each([&](const troupe::sorted_record&) { ++count; });
  EXPECT_EQ(count, 1'000'000u);
}

TEST_F(record_sorter_test, a_file_that_takes_no_more_is_gone_on_with_in_another) {
  // As a full directory: no file may be larger.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto small = before;
  small.rlim_cur = 100'000;
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::vector<std::string> sorted;
  {
    record_sorter sorter{options(1 << 20)};
    for (int i = 0; i < 20'000; ++i)
      sorter.add(encode_value(std::to_string(100'000 + i * 7919 % 20'000)), std::string(90, 'x'));
    sorter.for_each([&](const troupe::sorted_record& r) { sorted.emplace_back(r.key); });
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(sorted.size(), 20'000u);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
}

TEST_F(record_sorter_test, a_disk_that_is_not_there_is_named) {
  directories.emplace(std::vector<std::string>{"/proc/no-such-place"});
  record_sorter sorter{options(1000)};
  EXPECT_THAT([&] { add(sorter, some(5000, 300)); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("/proc/no-such-place")));
}

// -- datasets

class sorted_datasets : public testing::Test {
protected:
  std::shared_ptr<troupe::test::inline_runner> runner_ = std::make_shared<troupe::test::inline_runner>();
  troupe::session session_{runner_, {4, {}, {}, {}}};

  /// Pairs whose keys repeat and jump about.
  troupe::dataset<std::pair<std::int64_t, std::int64_t>> pairs() {
    return session_.range(0, 1000, 7).map([](std::int64_t n) { return std::pair{n * 7919 % 100, n}; });
  }
};

TEST_F(sorted_datasets, are_in_order_over_all_partitions_and_equal_keys_keep_theirs) {
  auto expected = pairs().collect();
  std::stable_sort(expected.begin(), expected.end(), [](auto& a, auto& b) { return a.first < b.first; });
  const auto sorted = pairs().sort_by_key();
  EXPECT_EQ(sorted.partitions(), 4u);
  EXPECT_EQ(sorted.collect(), expected);
  EXPECT_EQ(pairs().sort_by_key(sort_order::ascending, 1).collect(), expected);
  EXPECT_EQ(pairs().sort_by_key(sort_order::ascending, 9).collect(), expected);
  std::stable_sort(expected.begin(), expected.end(), [](auto& a, auto& b) { return a.first > b.first; });
  EXPECT_EQ(pairs().sort_by_key(sort_order::descending).collect(), expected);
}

TEST_F(sorted_datasets, of_whole_records_need_no_key) {
  const auto texts = session_.parallelize<std::string>({"pear", "", "apple", "fig", "apple", "date"}, 3);
  EXPECT_EQ(texts.sorted().collect(), (std::vector<std::string>{"", "apple", "apple", "date", "fig", "pear"}));
  EXPECT_EQ(texts.sorted(sort_order::descending, 2).collect(),
            (std::vector<std::string>{"pear", "fig", "date", "apple", "apple", ""}));
  EXPECT_TRUE(session_.parallelize<std::string>({}, 2).sorted().collect().empty());
}

TEST_F(sorted_datasets, have_ranges_of_about_the_same_size) {
  const auto sizes = session_.range(0, 20'000, 5)
                         .map([](std::int64_t n) {
                           return std::pair{n * n % 10'007, n};
                         })
                         .sort_by_key(sort_order::ascending, 8)
                         .map_partitions([](const std::vector<std::pair<std::int64_t, std::int64_t>>& part) {
                           return std::vector{part.size()};
                         })
                         .collect();
  ASSERT_EQ(sizes.size(), 8u);
  for (const auto size : sizes) EXPECT_NEAR(static_cast<double>(size), 2500, 900);
}

TEST_F(sorted_datasets, of_large_records_take_small_samples) {
  const auto large = session_.range(0, 200, 4).map(
      [](std::int64_t n) { return std::to_string(1000 + n * 37 % 200) + std::string(100'000, 'x'); });
  const auto sorted =
      large.sorted(sort_order::ascending, 4).map([](const std::string& s) { return s.substr(0, 4); }).collect();
  EXPECT_EQ(sorted.size(), 200u);
  EXPECT_TRUE(std::is_sorted(sorted.begin(), sorted.end()));
  EXPECT_LT(runner_->most_result, 300'000u) << "of the job that takes the sample";
}

TEST_F(sorted_datasets, of_one_key_have_one_range) {
  const auto same = session_.range(0, 100, 3).map([](std::int64_t n) { return std::pair{7, n}; }).sort_by_key();
  EXPECT_EQ(same.partitions(), 1u) << "equal keys cannot be told apart";
  EXPECT_EQ(same.count(), 100u);
}

} // namespace
