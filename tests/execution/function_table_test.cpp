#include <gtest/gtest.h>

#include <troupe/runtime/execution/function_table.hpp>

namespace troupe {
namespace {

std::string noop(task_context&, std::string_view, std::string_view) { return {}; }
std::string other(task_context&, std::string_view, std::string_view) { return "other"; }

struct key_b {
  static std::string_view name() { return "function_table_test/b"; }
};
struct key_a {
  static std::string_view name() { return "function_table_test/a"; }
};
using entry_b = registered_function<key_b, &other>;
using entry_a = registered_function<key_a, &noop>;

TEST(function_table, indexes_in_the_order_of_keys_whatever_the_order_of_registration) {
  EXPECT_LT(entry_a::index(), entry_b::index());
}

TEST(function_table, finds_by_index_and_by_key) {
  const auto& table = function_table::instance();
  const auto index = table.find_key(key_b::name());
  ASSERT_TRUE(index);
  EXPECT_EQ(*index, entry_b::index());
  const auto* const function = table.find(*index);
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(std::get<task_function>(*function), &other);
}

TEST(function_table, refuses_an_index_from_outside_that_names_nothing) {
  const auto& table = function_table::instance();
  EXPECT_EQ(table.find(static_cast<std::uint32_t>(table.size())), nullptr);
  EXPECT_EQ(table.find(0xffffffffu), nullptr);
  const auto missing = table.find_key("function_table_test/c");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ec::not_found);
  EXPECT_NE(missing.error().message.find("function_table_test/c"), std::string::npos);
}

TEST(function_table, equal_keys_and_late_entries_are_start_up_errors) {
  function_table equal;
  equal.add("same", any_function{&noop});
  equal.add("else", any_function{&noop});
  equal.add("same", any_function{&other});
  const auto doubled = equal.check();
  ASSERT_FALSE(doubled);
  EXPECT_NE(doubled.error().message.find("'same'"), std::string::npos);

  function_table placed;
  placed.add("same", any_function{&other}, "b.cpp");
  placed.add("same", any_function{&noop}, "a.cpp");
  EXPECT_TRUE(placed.check());
  EXPECT_EQ(std::get<task_function>(*placed.find(0)), &noop) << "by place, whatever came first";
  function_table at_one_place;
  for (int i = 0; i < 2; ++i) at_one_place.add("same", any_function{&noop}, "a.cpp");
  const auto twice = at_one_place.check();
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.error().message.find("both called 'a.cpp'"), std::string::npos);

  function_table late;
  const auto first = late.add("first", any_function{&noop});
  EXPECT_TRUE(late.check());
  const auto handle = late.add("late", any_function{&other});
  EXPECT_EQ(late.index_of(first), 0u);
  EXPECT_THROW(late.index_of(handle), std::logic_error);
  const auto refused = late.check();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("'late'"), std::string::npos);
  EXPECT_EQ(late.size(), 1u);
}

} // namespace
} // namespace troupe
