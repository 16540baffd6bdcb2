#include <troupe/runtime/discovery/device_mask.hpp>

#include <string>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using strings = std::vector<std::string>;

strings entries(std::string_view text) { return device_mask::parse(text).entries(); }

TEST(device_mask, an_unset_variable_restricts_nothing_and_an_empty_one_everything) {
  EXPECT_FALSE(device_mask::parse(std::nullopt).is_restricted());
  EXPECT_TRUE(device_mask::parse("").is_restricted());
  EXPECT_THAT(entries(""), IsEmpty());
  EXPECT_THAT(entries("  "), IsEmpty());
}

TEST(device_mask, reads_indices_and_identifiers) {
  EXPECT_THAT(entries("2,0,1"), ElementsAre("2", "0", "1"));
  EXPECT_THAT(entries(" 2 ,\t0"), ElementsAre("2", "0"));
  EXPECT_THAT(entries("007,10"), ElementsAre("7", "10"));
  EXPECT_THAT(entries("GPU-8932f937-d72c-4106,0,MIG-GPU-8932f937/1/0"),
              ElementsAre("GPU-8932f937-d72c-4106", "0", "MIG-GPU-8932f937/1/0"));
}

TEST(device_mask, ends_before_the_first_entry_that_names_no_new_device) {
  EXPECT_THAT(entries("-1"), IsEmpty());
  EXPECT_THAT(entries("0,-1,1"), ElementsAre("0"));
  EXPECT_THAT(entries("0,1,0,2"), ElementsAre("0", "1"));
  EXPECT_THAT(entries("3,03"), ElementsAre("3"));
  EXPECT_THAT(entries("0,,1"), ElementsAre("0"));
  EXPECT_THAT(entries("0,"), ElementsAre("0"));
  EXPECT_THAT(entries("1,NoDevFiles,2"), ElementsAre("1"));
  EXPECT_THAT(entries("0 1"), IsEmpty());
  EXPECT_THAT(entries("0,0x1"), ElementsAre("0"));
  EXPECT_THAT(entries("0,GPU-,1"), ElementsAre("0"));
  EXPECT_THAT(entries("0,GPU-a\x01,1"), ElementsAre("0"));
  EXPECT_THAT(entries("99999999999999999999,0"), IsEmpty());
}

TEST(device_mask, knows_the_ordinal_of_each_device) {
  const auto mask = device_mask::parse("3,GPU-a,1");
  EXPECT_EQ(mask.ordinal_of("3"), 0);
  EXPECT_EQ(mask.ordinal_of("GPU-a"), 1);
  EXPECT_EQ(mask.ordinal_of("1"), 2);
  EXPECT_EQ(mask.ordinal_of("0"), -1);
  EXPECT_EQ(device_mask{}.ordinal_of("0"), -1);
}

TEST(device_mask, gives_each_its_part_in_the_order_of_its_addresses) {
  const auto mask = device_mask::parse("3,GPU-a,1");
  EXPECT_EQ(mask.view_of({"1", "3"}), (device_view{"1,3", {0, 1}}));
  EXPECT_EQ(mask.view_of({"GPU-a"}), (device_view{"GPU-a", {0}}));
  EXPECT_EQ(mask.view_of({}), (device_view{"", {}}));
}

TEST(device_mask, never_shows_what_was_hidden) {
  const auto mask = device_mask::parse("1,2");
  EXPECT_EQ(mask.view_of({"0", "2", "1"}), (device_view{"2,1", {-1, 0, 1}}));
  EXPECT_EQ(device_mask::parse("").view_of({"0", "1"}), (device_view{"", {-1, -1}}));
  EXPECT_EQ(mask.view_of({"-1", "2"}), (device_view{"2", {-1, 0}}));
}

TEST(device_mask, without_a_restriction_takes_what_can_be_a_device) {
  EXPECT_EQ(device_mask{}.view_of({"1", "GPU-b", "fake-0", "-1", "0"}), (device_view{"1,GPU-b,0", {0, 1, -1, -1, 2}}));
  EXPECT_EQ(device_mask{}.view_of({"01"}), (device_view{"", {-1}})) << "would not be found under its own spelling";
}

TEST(device_mask, one_device_named_twice_is_one_entry) {
  EXPECT_EQ(device_mask{}.view_of({"1", "1", "2"}), (device_view{"1,2", {0, 0, 1}}));
}

TEST(device_mask, a_view_is_a_mask_again) {
  const auto executor = device_mask::parse(device_mask::parse("5,4,3").view_of({"3", "5"}).text);
  EXPECT_THAT(executor.entries(), ElementsAre("3", "5"));
  EXPECT_EQ(executor.ordinal_of("5"), 1);
  EXPECT_EQ(executor.view_of({"5"}), (device_view{"5", {0}}));
  EXPECT_EQ(executor.view_of({"4"}), (device_view{"", {-1}}));
}

TEST(device_mask, hides_the_devices_that_it_does_not_list) {
  EXPECT_FALSE(device_mask{}.hides("0"));
  const auto some = device_mask::parse("3,GPU-a");
  EXPECT_TRUE(some.hides("0"));
  EXPECT_TRUE(some.hides("GPU-b"));
  EXPECT_FALSE(some.hides("3"));
  EXPECT_FALSE(some.hides("GPU-a"));
  EXPECT_FALSE(some.hides("fake-0"));
  EXPECT_TRUE(device_mask::parse("").hides("0"));
}

TEST(device_mask, order_is_that_of_the_ordinals_as_far_as_addresses_reach) {
  const auto all = device_mask::parse(std::nullopt);
  EXPECT_EQ(all.order_of({"2", "0"}), (strings{"0", "1", "2"}));
  EXPECT_EQ(all.order_of({"fake-0", "fake-1"}), strings{});
  const auto some = device_mask::parse("3,1");
  EXPECT_EQ(some.order_of({"1"}), (strings{"3", "1"}));
  EXPECT_EQ(some.order_of({"0"}), strings{}) << "it is hidden";
}

} // namespace
} // namespace troupe
