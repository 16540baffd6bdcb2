// Datasets that are kept for later jobs, with real processes.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <troupe/runtime/api/session.hpp>
#include <troupe/tests/system/rendezvous.hpp>
#include <troupe/tests/system/shapes.hpp>

namespace troupe::system_tests {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Lt;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
namespace fs = std::filesystem;

/// Says that the partition was computed, here.
void mark(const std::string& directory, std::int64_t partition) {
  std::ofstream{directory + "/" + std::to_string(partition), std::ios::app} << ::getpid() << '\n';
}

/// Which process computed each partition last, and how often it was computed.
struct computation {
  pid_t last = 0;
  int times = 0;
};
std::map<std::int64_t, computation> computations(const std::string& directory) {
  std::map<std::int64_t, computation> all;
  for (const auto& entry : fs::directory_iterator{directory}) {
    auto& one = all[std::stoll(entry.path().filename())];
    std::ifstream file{entry.path()};
    while (file >> one.last) ++one.times;
  }
  return all;
}
int total(const std::string& directory) {
  int times = 0;
  for (const auto& [partition, one] : computations(directory)) times += one.times;
  return times;
}

/// Memory files that the processes have open: what they keep in memory and share with others.
std::size_t memory_files(const test_cluster& cluster) {
  std::size_t count = 0;
  for (const auto& e : cluster.executors()) {
    std::error_code ignored;
    for (const auto& fd : fs::directory_iterator{"/proc/" + std::to_string(e.pid) + "/fd", ignored})
      count += fs::read_symlink(fd.path(), ignored).string().starts_with("/memfd:");
  }
  return count;
}

/// `partitions` partitions of so many bytes each, from process `pid`; computing one leaves a mark.
using made = std::pair<std::int64_t, std::string>;
dataset<made> slow(session& in, const std::string& marks, std::int64_t partitions, std::size_t bytes) {
  return in.range(0, partitions, static_cast<std::uint32_t>(partitions))
      .map(with(marks, bytes), [](const std::string& directory, std::size_t size, std::int64_t n) {
        mark(directory, n);
        return made{::getpid(), std::string(size, static_cast<char>('a' + n % 26))};
      });
}

class kept_datasets_of_clusters : public ::testing::TestWithParam<cluster_shape> {
protected:
  testing::temporary_directory marks;
};
INSTANTIATE_TEST_SUITE_P(on, kept_datasets_of_clusters, ::testing::ValuesIn(all_shapes()),
                         [](const auto& param) { return param.param.name; });

TEST_P(kept_datasets_of_clusters, are_computed_once) {
  test_cluster cluster{GetParam().options()};
  {
    auto session = cluster.make_session();
    const auto kept = slow(session, marks.path(), 8, 100).cache();
    EXPECT_EQ(kept.count(), 8u);
    EXPECT_EQ(total(marks.path()), 8);
    EXPECT_EQ(kept.map([](const made& m) { return m.second.size(); }).collect(), std::vector<std::size_t>(8, 100));
    EXPECT_EQ(kept.filter([](const made& m) { return m.second[0] < 'e'; }).count(), 4u);
    EXPECT_EQ(total(marks.path()), 8) << "what the first job has left is enough";
    kept.unpersist();
    EXPECT_EQ(kept.count(), 8u);
    EXPECT_EQ(total(marks.path()), 16) << "nothing is kept any more";
  }
  cluster.check_clean();
}

TEST_P(kept_datasets_of_clusters, are_made_by_operations_that_look_at_the_records_first) {
  test_cluster cluster{GetParam().options()};
  {
    auto session = cluster.make_session();
    auto sorted = slow(session, marks.path(), 8, 100)
                      .sort_by([](const made& m) { return m.second; }, sort_order::descending, 3)
                      .map([](const made& m) { return m.second[0]; });
    EXPECT_EQ(sorted.collect(), (std::vector<char>{'h', 'g', 'f', 'e', 'd', 'c', 'b', 'a'}));
    EXPECT_EQ(total(marks.path()), 8) << "the sample and the sort read what was computed once";
    EXPECT_EQ(slow(session, marks.path(), 4, 10).zip_with_index().count(), 4u);
    EXPECT_EQ(total(marks.path()), 12);
  }
  cluster.check_clean();
}

TEST_P(kept_datasets_of_clusters, are_groups_that_need_no_second_shuffle) {
  test_cluster cluster{GetParam().options()};
  {
    auto session = cluster.make_session();
    const auto sums = slow(session, marks.path(), 6, 10)
                          .map([](const made& m) {
                            return std::pair{m.second[0] % 2, 1};
                          })
                          .reduce_by_key(std::plus<>{}, 3)
                          .persist(storage_level::memory_and_disk);
    EXPECT_THAT(sums.collect(), UnorderedElementsAre(Pair(0, 3), Pair(1, 3)));
    EXPECT_EQ(sums.count(), 2u);
    EXPECT_EQ(total(marks.path()), 6);
  }
  cluster.check_clean();
}

class kept_datasets_of_processes : public ::testing::Test {
protected:
  testing::temporary_directory marks;
};

TEST_F(kept_datasets_of_processes, are_read_where_they_are) {
  // Tasks wait for their executor for ever, since it may stand still for some seconds.
  test_cluster cluster{{.master = "local-cluster[3,1,1g]", .conf = {"troupe.locality.executor-wait=never"}}};
  auto session = cluster.make_session();
  const auto kept = slow(session, marks.path(), 9, 100'000).cache();
  const auto is_near = [](const made& m) { return m.first == ::getpid(); };
  EXPECT_EQ(kept.filter(is_near).count(), 9u) << "by the job that computes them";
  EXPECT_EQ(kept.filter(is_near).count(), 9u) << "and by the next one";
}

TEST_F(kept_datasets_of_processes, that_die_are_computed_again_in_part) {
  test_cluster cluster{{.master = "local-cluster[2,1,1g]"}};
  auto session = cluster.make_session();
  const auto kept = slow(session, marks.path(), 8, 100'000).cache();
  EXPECT_EQ(kept.count(), 8u);
  const auto before = computations(marks.path());
  const auto victim = before.at(3).last;
  const auto lost =
      std::count_if(before.begin(), before.end(), [&](const auto& one) { return one.second.last == victim; });
  ASSERT_GE(lost, 1);
  for (const auto& e : cluster.executors())
    if (e.pid == victim) cluster.kill(e);
  EXPECT_EQ(kept.map([](const made& m) { return m.second.size(); }).count(), 8u);
  EXPECT_EQ(total(marks.path()), 8 + lost);
  EXPECT_EQ(kept.count(), 8u);
  EXPECT_EQ(total(marks.path()), 8 + lost) << "those are kept now, too";
  cluster.check_clean();
}

TEST_F(kept_datasets_of_processes, take_no_memory_when_they_are_not_kept_any_more) {
  test_cluster cluster{{.master = "local-cluster[2,1,1g]"}};
  auto session = cluster.make_session();
  {
    const auto kept = slow(session, marks.path(), 4, 1'000'000).cache();
    EXPECT_EQ(kept.count(), 4u);
    EXPECT_TRUE(testing::wait_until([&] { return memory_files(cluster) == 4; }));
    kept.unpersist();
    EXPECT_TRUE(testing::wait_until([&] { return memory_files(cluster) == 0; }));
  }
  {
    const auto kept = slow(session, marks.path(), 4, 1'000'000).cache();
    EXPECT_EQ(kept.count(), 4u);
    EXPECT_TRUE(testing::wait_until([&] { return memory_files(cluster) == 4; }));
  }
  EXPECT_TRUE(testing::wait_until([&] { return memory_files(cluster) == 0; })) << "the last handle is gone";
}

/// 320 MB, which two executors of 256 MiB cannot have in memory.
class too_much_to_keep : public ::testing::Test {
protected:
  static constexpr std::int64_t partitions = 32;
  testing::temporary_directory marks;
  test_cluster::options options{.master = "local-cluster[2,1,256m]", .conf = {"troupe.executor.memory=256m"}};
};

TEST_F(too_much_to_keep, in_memory_is_kept_in_part) {
  test_cluster cluster{options};
  auto session = cluster.make_session();
  const auto kept = slow(session, marks.path(), partitions, 10'000'000).cache();
  const auto sizes = kept.map([](const made& m) { return m.second.size(); });
  EXPECT_EQ(sizes.collect(), std::vector<std::size_t>(partitions, 10'000'000));
  EXPECT_EQ(sizes.collect(), std::vector<std::size_t>(partitions, 10'000'000));
  EXPECT_THAT(total(marks.path()), AllOf(Ge(partitions + 1), Lt(2 * partitions)))
      << "some are there, and some are computed again";
}

TEST_F(too_much_to_keep, in_memory_may_be_kept_on_disk) {
  test_cluster cluster{options};
  auto session = cluster.make_session();
  for (const auto level : {storage_level::memory_and_disk, storage_level::disk}) {
    const auto before = total(marks.path());
    const auto kept = slow(session, marks.path(), partitions, 10'000'000).persist(level);
    const auto sizes = kept.map([](const made& m) { return m.second.size(); });
    EXPECT_EQ(sizes.collect(), std::vector<std::size_t>(partitions, 10'000'000));
    EXPECT_EQ(sizes.collect(), std::vector<std::size_t>(partitions, 10'000'000));
    EXPECT_EQ(total(marks.path()), before + partitions);
  }
}

} // namespace
} // namespace troupe::system_tests
