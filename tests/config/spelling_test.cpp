#include "support.hpp"

#include <troupe/runtime/spelling.hpp>

namespace troupe::testing {
namespace {

TEST(spelling, counts_single_letter_edits) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("cores", "cores"), 0u);
  EXPECT_EQ(edit_distance("cores", "core"), 1u);
  EXPECT_EQ(edit_distance("core", "cores"), 1u);
  EXPECT_EQ(edit_distance("cores", "corks"), 1u);
  EXPECT_EQ(edit_distance("cores", "croes"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(spelling, finds_the_nearest_name) {
  const std::vector<std::string> names{"cores", "memory", "memory-overhead", "off-heap"};
  EXPECT_EQ(nearest_name("core", names), "cores");
  EXPECT_EQ(nearest_name("memoy", names), "memory");
  EXPECT_EQ(nearest_name("memoryOverhead", names), "memory-overhead");
  EXPECT_EQ(nearest_name("off_heap", names), "off-heap");
  EXPECT_EQ(nearest_name("colour-of-the-sky", names), "");
  EXPECT_EQ(nearest_name("zz", names), "");
  EXPECT_EQ(nearest_name(std::string(5000, 'a'), names), "");
}

TEST(spelling, hints_name_the_nearest_or_all) {
  EXPECT_EQ(spelling_hint("core", {"cores", "memory"}), "; did you mean cores?");
  EXPECT_EQ(spelling_hint("sky-blue", {"cores", "memory"}), "; valid here: cores, memory");
  EXPECT_EQ(spelling_hint("x", {}), "");
}

} // namespace
} // namespace troupe::testing
