// Names of events.

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <troupe/runtime/events/event.hpp>

namespace troupe::events {
namespace {

template <std::size_t... I>
std::vector<any> one_of_each(std::index_sequence<I...>) {
  return {any{std::in_place_index<I>}...};
}

TEST(event, has_a_name_of_its_own_in_kebab_case) {
  std::set<std::string> names;
  for (const auto& event : one_of_each(std::make_index_sequence<std::variant_size_v<any>>{})) {
    const std::string name{name_of(event)};
    EXPECT_FALSE(name.empty());
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string::npos) << name;
    EXPECT_TRUE(names.insert(name).second) << name << " names two events";
  }
  EXPECT_EQ(name_of(stage_submitted{}), "stage-submitted");
  EXPECT_EQ(name_of(executor_removed{}), "executor-removed");
}

} // namespace
} // namespace troupe::events
