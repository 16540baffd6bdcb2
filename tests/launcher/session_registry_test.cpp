#include <troupe/launcher/session_registry.hpp>

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

session_record record(const std::string& name, const std::string& address, const std::string& session) {
  session_record out;
  out.name = name;
  out.address = address;
  out.session_id = session;
  out.cluster_id = "cluster-of-" + session;
  return out;
}

TEST(sessions, on_all_interfaces_are_reached_by_loopback) {
  EXPECT_EQ(reached_from_here({"0.0.0.0", 7}), (endpoint{"127.0.0.1", 7}));
  EXPECT_EQ(reached_from_here({"::", 7}), (endpoint{"127.0.0.1", 7}));
  EXPECT_EQ(reached_from_here({"192.0.2.1", 7}), (endpoint{"192.0.2.1", 7}));
  EXPECT_EQ(reached_from_here({"some-host", 7}), (endpoint{"some-host", 7}));

  const auto open = record("open", "0.0.0.0:7", "abcd1");
  for (const auto* address : {"0.0.0.0:7", "127.0.0.1:7", "troupe://127.0.0.1:7"})
    EXPECT_TRUE(listens_at(open, address)) << address;
  for (const auto* address : {"127.0.0.1:8", "192.0.2.1:7", "open", ""})
    EXPECT_FALSE(listens_at(open, address)) << address;
  EXPECT_FALSE(listens_at(record("closed", "127.0.0.2:7", "abcd2"), "127.0.0.1:7"));
}

TEST(sessions, are_chosen_by_name_address_or_the_beginning_of_an_id) {
  const std::vector<session_record> all{record("one", "127.0.0.1:7", "abcd1"), record("two", "0.0.0.0:8", "abcd2")};
  for (const auto* which : {"two", "0.0.0.0:8", "127.0.0.1:8", "troupe://127.0.0.1:8", "abcd2", "cluster-of-abcd2"}) {
    const auto chosen = choose_session(all, which);
    ASSERT_TRUE(chosen) << which << ": " << chosen.error().message;
    EXPECT_EQ(chosen->name, "two") << which;
  }
  EXPECT_TRUE(choose_session({all.front()}, ""));
}

TEST(sessions, that_are_not_clear_are_listed_with_the_flag_that_chooses) {
  const std::vector<session_record> all{record("one", "127.0.0.1:7", "abcd1"), record("two", "0.0.0.0:8", "abcd2")};
  for (const auto* which : {"", "abcd"}) {
    const auto several = choose_session(all, which);
    ASSERT_FALSE(several);
    EXPECT_EQ(several.error().code, ec::invalid_configuration);
    EXPECT_THAT(several.error().message,
                AllOf(HasSubstr("--cluster=NAME"), HasSubstr("one at 127.0.0.1:7"), HasSubstr("session abcd2")));
  }
  EXPECT_EQ(choose_session(all, "three").error().code, ec::unreachable);
  EXPECT_EQ(choose_session({}, "").error().code, ec::unreachable);
}

} // namespace
} // namespace troupe
