// Functions that are known in their own file alone, though they have one name.

#include <memory>

#include <gtest/gtest.h>

#include <troupe/runtime/execution/function_table.hpp>

#include "inline_runner.hpp"
#include "twins.hpp"

namespace {

TEST(twins, have_each_their_own_lambdas) {
  const auto checked = troupe::function_table::instance().check();
  ASSERT_TRUE(checked) << checked.error().message;
  troupe::session s{std::make_shared<troupe::test::inline_runner>(), {}};
  EXPECT_EQ(sum_of_twin_a(s), 55);
  EXPECT_EQ(sum_of_twin_b(s), 10'045);
}

} // namespace
