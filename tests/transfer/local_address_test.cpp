#include <gtest/gtest.h>

#include <troupe/runtime/transfer/local_address.hpp>

namespace troupe {
namespace {

TEST(address_to_reach, is_the_bound_one_where_that_says_enough) {
  EXPECT_EQ(*address_to_reach("127.0.0.3", "127.0.0.1", 7), "127.0.0.3");
  EXPECT_EQ(*address_to_reach("::1", "::1", 7), "::1");
  EXPECT_EQ(*address_to_reach("some-host", "127.0.0.1", 7), "some-host");
}

TEST(address_to_reach, of_all_interfaces_is_the_one_that_talks_to_the_peer) {
  EXPECT_EQ(*address_to_reach("0.0.0.0", "127.0.0.1", 7), "127.0.0.1");
  EXPECT_EQ(*address_to_reach("::", "127.0.0.1", 7), "127.0.0.1");
}

TEST(address_to_reach, says_when_there_is_no_way) {
  const auto none = address_to_reach("0.0.0.0", "no-such-host.invalid", 7);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ec::unreachable);
  EXPECT_NE(none.error().message.find("no-such-host.invalid"), std::string::npos);
}

} // namespace
} // namespace troupe
