#include <gtest/gtest.h>

#include <troupe/runtime/resources/memory_split.hpp>

namespace troupe::memory_split_tests {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;

resource_profile profile_of(std::int64_t memory, std::int64_t off_heap, std::int64_t cores) {
  resource_profile p;
  p.executor["cores"] = {cores, {}, {}};
  if (memory > 0) p.executor["memory"] = {memory, {}, {}};
  if (off_heap > 0) p.executor["offHeap"] = {off_heap, {}, {}};
  p.task["cpus"] = share::whole(1);
  return p;
}

TEST(memory_split, gives_blocks_their_part_and_tasks_even_shares_of_the_rest) {
  const memory_split split{{share::units_per_whole / 2}, {share::units_per_whole / 4}};
  const auto profile = profile_of(8 * gib, 0, 3);
  EXPECT_EQ(split.for_blocks(profile), gib);
  EXPECT_EQ(split.for_task(profile, 3, share::whole(1)), gib);
  EXPECT_EQ(split.for_task(profile, 3, {share::units_per_whole / 2}), gib / 2);
  EXPECT_EQ(split.for_task(profile, 3, share::whole(3)), 3 * gib);
  EXPECT_EQ(split.for_task(profile, 3, share::whole(9)), 3 * gib) << "no more than there is";
  EXPECT_EQ(split.for_task(profile, 30, share::whole(1)), gib / 10) << "of an executor that runs ten times as many";
  EXPECT_EQ(split.for_blocks(profile_of(4 * gib, 4 * gib, 3)), gib) << "off-heap memory counts like any other";
}

TEST(memory_split, leaves_each_task_a_mebibyte_and_takes_a_gibibyte_where_nothing_is_said) {
  const memory_split nothing{{}, {}};
  EXPECT_EQ(nothing.for_blocks(profile_of(gib, 0, 1)), 0u);
  EXPECT_EQ(nothing.for_task(profile_of(gib, 0, 1), 1, share::whole(1)), 1u << 20);
  EXPECT_EQ(memory_split{}.for_task(profile_of(gib, 0, 1), 0, {}), 1u << 20);
  const memory_split split;
  EXPECT_EQ(split.for_blocks(profile_of(0, 0, 1)), split.for_blocks(profile_of(gib, 0, 1)));
  EXPECT_EQ(split.for_blocks(profile_of(gib, 0, 1)), gib * 3 / 10);
}

TEST(memory_split, does_not_overflow) {
  const memory_split all{share::whole(1), share::whole(1)};
  EXPECT_EQ(all.for_blocks(profile_of(std::int64_t{1} << 60, 0, 1)), std::uint64_t{1} << 60);
}

} // namespace
} // namespace troupe::memory_split_tests
