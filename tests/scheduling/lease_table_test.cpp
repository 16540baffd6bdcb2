#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/flat_index.hpp>
#include <troupe/runtime/scheduling/lease_record.hpp>

namespace troupe {
namespace {

/// Ids that come one after the other, of which some stay for long, as those of leases do.
TEST(flat_index, agrees_with_a_map) {
  std::mt19937 random{7};
  flat_index<lease_id> index;
  std::map<lease_id, std::uint32_t> expected;
  std::uint64_t next = 1;
  for (int step = 0; step < 20'000; ++step) {
    if (expected.size() < 10 || random() % 2 == 0) {
      const lease_id id{random() % 50 == 0 ? next += random() % 4096 : next++};
      const auto position = static_cast<std::uint32_t>(random() % 1000);
      index.insert(id, position);
      expected.emplace(id, position);
      next = id.value + 1;
    } else {
      auto it = expected.begin();
      std::advance(it, static_cast<std::ptrdiff_t>(random() % std::min<std::size_t>(expected.size(), 20)));
      index.erase(it->first);
      ASSERT_EQ(index.find(it->first), index.none);
      expected.erase(it);
    }
    ASSERT_EQ(index.size(), expected.size());
    if (step % 100 != 0) continue;
    for (const auto& [id, position] : expected) ASSERT_EQ(index.find(id), position) << "after step " << step;
  }
}

TEST(flat_index, knows_nothing_at_first_and_ignores_what_it_does_not_know) {
  flat_index<lease_id> index;
  EXPECT_EQ(index.find({1}), index.none);
  index.erase({1});
  index.insert({1}, 5);
  index.erase({2});
  EXPECT_EQ(index.find({1}), 5u);
  EXPECT_EQ(index.size(), 1u);
}

TEST(lease_table, keeps_each_lease_where_it_is_and_uses_its_place_again) {
  lease_table leases;
  std::map<std::uint64_t, lease_record*> where;
  for (std::uint64_t i = 1; i <= 1000; ++i) where[i] = &leases.add({i});
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    ASSERT_EQ(leases.find({i}), where[i]);
    ASSERT_EQ(where[i]->id.value, i);
  }
  where[17]->in_flight = 3;
  leases.erase({17});
  EXPECT_EQ(leases.find({17}), nullptr);
  auto& fresh = leases.add({1001});
  EXPECT_EQ(&fresh, where[17]);
  EXPECT_EQ(fresh.in_flight, 0u) << "what stood there is gone";
  EXPECT_EQ(leases.size(), 1000u);
}

/// Against a list of all partitions that are in flight, in order.
TEST(lease_record, runs_are_what_was_added_and_not_removed) {
  std::mt19937 random{3};
  lease_record lease;
  std::vector<partition_index> expected;
  partition_index next = 0;
  for (int step = 0; step < 5'000; ++step) {
    if (expected.empty() || random() % 3 == 0) {
      task_batch batch;
      batch.stage = {1};
      next += random() % 3; // some runs join the last one
      batch.first = next;
      batch.count = 1 + static_cast<std::uint32_t>(random() % 6);
      for (std::uint32_t i = 0; i < batch.count; ++i) expected.push_back(next++);
      lease.add(batch);
    } else {
      const auto at = random() % 3 == 0 ? random() % expected.size() : 0;
      ASSERT_TRUE(lease.remove({1}, expected[at], 0));
      ASSERT_FALSE(lease.remove({1}, expected[at], 0));
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::vector<partition_index> have;
    for (const auto& run : lease.runs)
      for (auto p = run.first; p < run.first + run.count; ++p) have.push_back(p);
    ASSERT_EQ(have, expected) << "after step " << step;
    ASSERT_EQ(lease.in_flight, expected.size());
    ASSERT_EQ(lease.runs.empty(), expected.empty());
  }
}

} // namespace
} // namespace troupe
