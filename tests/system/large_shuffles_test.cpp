// Shuffles that are larger than the memory of their executors, with real processes.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/runtime/api/session.hpp>
#include <troupe/runtime/api/stable_hash.hpp>
#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::Gt;
using ::testing::Lt;

constexpr std::size_t record_size = 100;

/// Record number `n`: a key that looks random, and a rest.
std::string record_of(std::int64_t n) {
  static constexpr char digits[] = "0123456789abcdef";
  auto z = static_cast<std::uint64_t>(n) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z ^= z >> 27;
  std::string text(record_size, '.');
  for (int i = 0; i < 16; ++i) text[static_cast<std::size_t>(i)] = digits[z >> (60 - 4 * i) & 15];
  return text;
}

/// What is known of some records that follow each other.
struct stretch {
  std::string first;
  std::string last;
  std::uint64_t records = 0;
  std::uint64_t sum = 0; ///< of hashes: the same whatever their order
  bool in_order = true;

  static stretch of(std::string record) {
    stretch one;
    one.records = 1;
    one.sum = stable_hash(record);
    one.first = one.last = std::move(record);
    return one;
  }
  stretch then(stretch next) && {
    in_order = in_order && next.in_order && last <= next.first;
    last = std::move(next.last);
    records += next.records;
    sum += next.sum;
    return std::move(*this);
  }
  template <class Archive>
  friend void troupe_serialize(Archive& archive, stretch& s) {
    archive(s.first, s.last, s.records, s.sum, s.in_order);
  }
};

/// As the executors have measured it themselves.
void expect_peaks_below(const session& of, std::uint64_t limit) {
  auto stages = of.last_job().stages;
  std::erase_if(stages, [](const stage_progress& s) { return s.run_nanoseconds == 0; }); // kept by an earlier job
  ASSERT_FALSE(stages.empty());
  EXPECT_THAT(stages, Each(Field(&stage_progress::peak_memory, Gt(0u))));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_THAT(stages, Each(Field(&stage_progress::peak_memory, Lt(limit))));
#else
  static_cast<void>(limit); // a sanitizer takes many times as much
#endif
}

/// Sorts so many records on two executors of 256 MiB each.
void sort_records(std::int64_t count) {
  test_cluster cluster{{.master = "local-cluster[2,1,256m]", .conf = {"troupe.executor.memory=256m"}}};
  auto session = cluster.make_session();
  const auto records = session.range(0, count, 8).map([](std::int64_t n) { return record_of(n); });
  const auto all = records.sorted()
                       .map([](std::string record) { return stretch::of(std::move(record)); })
                       .reduce([](stretch a, stretch b) { return std::move(a).then(std::move(b)); });
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->in_order);
  EXPECT_EQ(all->records, static_cast<std::uint64_t>(count));
  std::uint64_t sum = 0;
  for (std::int64_t n = 0; n < count; ++n) sum += stable_hash(record_of(n));
  EXPECT_EQ(all->sum, sum) << "every record came once";
  expect_peaks_below(session, std::uint64_t{256} << 20);
  cluster.check_clean();
}

TEST(shuffles_larger_than_memory, are_sorted_on_disk) { sort_records(2'000'000); }

TEST(shuffles_larger_than_memory, of_4_gib_are_sorted_by_two_executors_of_256_mib) {
  if (!std::getenv("TROUPE_SLOW_TESTS")) GTEST_SKIP() << "takes minutes and 15 GB of disk: run with tests/run --slow";
  sort_records((std::int64_t{4} << 30) / record_size);
}

TEST(shuffles_larger_than_memory, are_grouped_and_joined_on_disk) {
  test_cluster cluster{{.master = "local-cluster[2,1,128m]", .conf = {"troupe.executor.memory=128m"}}};
  auto session = cluster.make_session();
  constexpr std::int64_t count = 1'000'000;
  const auto records = session.range(0, count, 4).map([](std::int64_t n) {
    return std::pair{n * 7919 % 100'000, std::pair{n, record_of(n)}};
  });
  using group = std::pair<std::int64_t, std::vector<std::pair<std::int64_t, std::string>>>;
  const auto grouped = records.group_by_key(2)
                           .map([](const group& g) {
                             const auto& [key, values] = g;
                             bool right = values.size() == 10 && values[0].first * 7919 % 100'000 == key;
                             // Those of earlier map tasks come first, and the numbers of a key are 100'000 apart.
                             for (std::size_t i = 0; right && i < values.size(); ++i)
                               right = values[i].first == values[0].first + static_cast<std::int64_t>(i) * 100'000 &&
                                       values[i].second == record_of(values[i].first);
                             return std::int64_t{right};
                           })
                           .reduce([](std::int64_t a, std::int64_t b) { return a + b; });
  EXPECT_EQ(grouped, 100'000);
  expect_peaks_below(session, std::uint64_t{128} << 20);
  const auto others = session.range(0, 50'000, 2).map([](std::int64_t n) { return std::pair{n * 2, n}; });
  EXPECT_EQ(records.join(others, 2).count(), 500'000u);
  expect_peaks_below(session, std::uint64_t{128} << 20);
  cluster.check_clean();
}

} // namespace
} // namespace troupe::system_tests
