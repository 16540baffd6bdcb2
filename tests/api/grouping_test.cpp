// What belongs to equal keys, with little memory and with much.

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <malloc.h>
#include <stdlib.h>

#include <troupe/runtime/api/grouping.hpp>

namespace troupe::detail {
namespace {

using ::testing::HasSubstr;

/// Tasks with directories for what they put aside.
class grouping_test : public ::testing::Test {
protected:
  grouping_test() {
    auto pattern = (std::filesystem::temp_directory_path() / "troupe-grouping-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no temporary directory");
    directory = pattern;
    directories.emplace(std::vector<std::string>{directory});
  }
  ~grouping_test() override { std::filesystem::remove_all(directory); }

  task_context::environment environment(std::uint64_t memory) {
    task_context::environment e;
    e.stage = &install;
    e.memory = memory;
    e.directories = &*directories;
    return e;
  }

  template <class V>
  using records = std::vector<std::pair<std::string, V>>;
  template <class V>
  static void add(grouping<listed<V>>& to, const records<V>& all) {
    for (const auto& [key, value] : all) add_one(to, key, 0, value);
  }
  template <class Policy, class V>
  static void add_one(grouping<Policy>& to, const std::string& key, std::uint8_t side, const V& value) {
    const auto encoded = encode_value(value);
    decoder in{encoded};
    to.add(key, side, in);
    EXPECT_TRUE(in.at_end());
  }
  template <class V>
  std::vector<std::pair<std::string, std::vector<V>>> groups_of(const records<V>& all, std::uint64_t memory) {
    task_context context{environment(memory)};
    grouping groups{context, listed<V>{}};
    add(groups, all);
    std::vector<std::pair<std::string, std::vector<V>>> out;
    groups.for_each([&](std::string_view key, std::vector<V>&& values) { out.emplace_back(key, std::move(values)); });
    return out;
  }
  /// `count` records with keys below `keys`, from a seed.
  static records<std::string> some(std::uint32_t count, std::uint32_t keys) {
    std::mt19937 dice{7};
    records<std::string> all;
    for (std::uint32_t i = 0; i < count; ++i)
      all.emplace_back("key " + std::to_string(dice() % keys), std::to_string(i) + std::string(dice() % 50, '.'));
    return all;
  }

  stage_install install;
  std::string directory;
  std::optional<block_directories> directories;
};

TEST_F(grouping_test, keys_come_in_the_order_of_their_hashes_with_their_values_in_order) {
  const auto all = some(1000, 100);
  std::map<std::string, std::vector<std::string>> expected;
  for (const auto& [key, value] : all) expected[key].push_back(value);
  const auto groups = groups_of(all, 64 << 20);
  ASSERT_EQ(groups.size(), expected.size());
  std::uint64_t before = 0;
  for (const auto& [key, values] : groups) {
    EXPECT_EQ(values, expected.at(key));
    EXPECT_LE(before, stable_hash(key));
    before = stable_hash(key);
  }
}

TEST_F(grouping_test, results_do_not_depend_on_how_much_memory_there_is) {
  const auto all = some(20'000, 3000);
  const auto expected = groups_of(all, 64 << 20);
  for (const std::uint64_t memory : {1u, 10'000u, 100'000u, 1'000'000u})
    EXPECT_TRUE(groups_of(all, memory) == expected) << memory;
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(grouping_test, what_does_not_fit_is_put_aside) {
  task_context context{environment(100'000)};
  grouping groups{context, listed<std::string>{}};
  std::uintmax_t most = 0;
  const auto open_files = [] {
    std::size_t count = 0;
    for (const auto& fd : std::filesystem::directory_iterator{"/proc/self/fd"}) {
      std::error_code gone;
      count += std::filesystem::read_symlink(fd, gone).string().find(".spill") != std::string::npos;
    }
    return count;
  };
  for (const auto& [key, value] : some(20'000, 3000)) add_one(groups, key, 0, value);
  most = open_files();
  EXPECT_GE(most, 2u);
  EXPECT_LE(most, 10u) << "each halves what is left";
  groups.for_each([](std::string_view, std::vector<std::string>&&) {});
  EXPECT_EQ(open_files(), 0u);
}

TEST_F(grouping_test, folds_see_their_records_in_order) {
  // Sums of floating-point numbers depend on the order.
  const auto sums = [&](std::uint64_t memory) {
    std::mt19937 dice{11};
    const auto plus = [](double a, double b) { return a + b; };
    task_context context{environment(memory)};
    grouping groups{context, folded<double, decltype(plus)>{const_cast<std::remove_const_t<decltype(plus)>&>(plus)}};
    for (int i = 0; i < 30'000; ++i)
      add_one(groups, std::to_string(dice() % 2000), 0, std::ldexp(1.0 + dice() % 1000, static_cast<int>(dice() % 80)));
    std::vector<std::pair<std::string, double>> out;
    groups.for_each([&](std::string_view key, double&& sum) { out.emplace_back(key, sum); });
    return out;
  };
  const auto expected = sums(64 << 20);
  EXPECT_EQ(expected.size(), 2000u);
  for (const std::uint64_t memory : {1000u, 50'000u}) EXPECT_TRUE(sums(memory) == expected) << memory;
}

TEST_F(grouping_test, a_fold_that_stays_small_counts_as_it_is) {
  auto longest = [](std::string a, std::string b) { return a.size() < b.size() ? b : a; };
  task_context context{environment(100'000)};
  grouping groups{context, folded<std::string, decltype(longest)>{longest}};
  for (int i = 0; i < 20'000; ++i) add_one(groups, std::to_string(i % 100), 0, std::string(i % 53, 'x'));
  std::size_t fds = 0;
  for (const auto& fd : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    std::error_code gone;
    fds += std::filesystem::read_symlink(fd, gone).string().find(".spill") != std::string::npos;
  }
  EXPECT_EQ(fds, 0u) << "a hundred short texts have room";
  std::size_t keys = 0;
  groups.for_each([&](std::string_view, std::string&& text) {
    ++keys;
    EXPECT_EQ(text.size(), 52u);
  });
  EXPECT_EQ(keys, 100u);
}

TEST_F(grouping_test, both_sides_of_a_join_are_kept_apart) {
  const auto sides = [&](std::uint64_t memory) {
    task_context context{environment(memory)};
    grouping groups{context, paired<int, std::string>{}};
    for (int i = 0; i < 5000; ++i) add_one(groups, std::to_string(i % 700), 0, i);
    for (int i = 0; i < 5000; ++i) add_one(groups, std::to_string(i % 900), 1, std::to_string(i));
    std::vector<std::tuple<std::string, std::vector<int>, std::vector<std::string>>> out;
    groups.for_each([&](std::string_view key, std::pair<std::vector<int>, std::vector<std::string>>&& both) {
      out.emplace_back(key, std::move(both.first), std::move(both.second));
    });
    return out;
  };
  const auto expected = sides(64 << 20);
  EXPECT_EQ(expected.size(), 900u);
  for (const auto& [key, left, right] : expected) {
    EXPECT_EQ(left.empty(), std::stoi(key) >= 700);
    EXPECT_EQ(right.at(0), key);
  }
  EXPECT_TRUE(sides(20'000) == expected);
}

TEST_F(grouping_test, values_with_much_inside_count_as_what_they_take) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "memory is counted otherwise";
#endif
  const auto before = ::mallinfo2().uordblks + ::mallinfo2().hblkhd;
  constexpr std::uint64_t memory = 4 << 20;
  task_context context{environment(memory)};
  grouping groups{context, listed<std::vector<std::string>>{}};
  std::size_t most = 0;
  for (int i = 0; i < 20'000; ++i) {
    add_one(groups, "key " + std::to_string(i % 500), 0, std::vector<std::string>(50, "ab"));
    if (i % 100 == 0) most = std::max(most, ::mallinfo2().uordblks + ::mallinfo2().hblkhd - before);
  }
  std::size_t values = 0;
  groups.for_each([&](std::string_view, std::vector<std::vector<std::string>>&& all) {
    values += all.size();
    most = std::max(most, ::mallinfo2().uordblks + ::mallinfo2().hblkhd - before);
  });
  EXPECT_EQ(values, 20'000u);
  EXPECT_LT(most, 2 * memory);
}

/// Cannot be made of nothing.
class checked {
public:
  explicit checked(std::int64_t n) : n_(n) {}
  std::int64_t number() const { return n_; }

private:
  std::int64_t n_;
};

} // namespace
} // namespace troupe::detail

template <>
struct troupe::serializer<troupe::detail::checked> {
  static void write(encoder& out, const detail::checked& value) { out.number(value.number()); }
  static detail::checked read(decoder& in) { return detail::checked{in.number<std::int64_t>()}; }
};

namespace troupe::detail {
namespace {

TEST_F(grouping_test, values_need_no_default) {
  task_context context{environment(4096)};
  auto function = [](const checked& a, const checked& b) { return checked{a.number() + b.number()}; };
  grouping groups{context, folded<checked, decltype(function)>{function}};
  for (int i = 0; i < 10'000; ++i) add_one(groups, "key " + std::to_string(i % 1000), 0, checked{i});
  std::int64_t total = 0;
  groups.for_each([&](std::string_view, checked&& sum) { total += sum.number(); });
  EXPECT_EQ(total, 9'999 * 10'000 / 2);
}

TEST_F(grouping_test, one_giant_key_takes_what_it_takes) {
  records<std::string> all;
  for (int i = 0; i < 10'000; ++i) all.emplace_back("giant", std::to_string(i));
  all.emplace_back("other", "alone");
  const auto groups = groups_of(all, 1000);
  ASSERT_EQ(groups.size(), 2u);
  for (const auto& [key, values] : groups) EXPECT_EQ(values.size(), key == "giant" ? 10'000u : 1u);
}

TEST_F(grouping_test, a_disk_that_is_not_there_is_named) {
  directories.emplace(std::vector<std::string>{"/proc/no-such-place"});
  const auto all = some(5000, 3000);
  EXPECT_THAT([&] { groups_of(all, 10'000); },
              ::testing::ThrowsMessage<std::runtime_error>(HasSubstr("/proc/no-such-place")));
}

TEST_F(grouping_test, without_directories_everything_stays_in_memory) {
  directories.reset();
  auto e = task_context::environment{};
  e.stage = &install;
  e.memory = 1000;
  task_context context{e};
  grouping groups{context, listed<std::string>{}};
  for (const auto& [key, value] : some(5000, 300)) add_one(groups, key, 0, value);
  std::size_t keys = 0;
  groups.for_each([&](std::string_view, std::vector<std::string>&&) { ++keys; });
  EXPECT_EQ(keys, 300u);
}

} // namespace
} // namespace troupe::detail
