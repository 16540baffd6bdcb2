// Executors are told of broadcasts that are needed no longer.

#include <gmock/gmock-more-matchers.h>
#include <gtest/gtest.h>

#include <troupe/tests/support/scheduler_harness.hpp>

namespace troupe::testing {
namespace {

using ::testing::ElementsAre;

TEST(withdrawn_broadcasts, are_told_to_every_executor_once) {
  scheduler_harness h;
  const auto busy = h.add(executor_builder{}.cores(1));
  const auto idle = h.add(executor_builder{}.cores(1));
  h.submit(job_builder{}.stage("only", 1));
  const broadcast_id one{0x8000000000000001u, 3};
  h.withdraw(one);
  for (const auto e : {busy, idle}) EXPECT_THAT(h.executor(e).withdrawn(), ElementsAre(one));
  h.tick();
  const auto late = h.add(executor_builder{}.cores(1));
  h.withdraw({one.program, 0});
  EXPECT_THAT(h.executor(busy).withdrawn(), ElementsAre(one, broadcast_id{one.program, 0}));
  EXPECT_THAT(h.executor(late).withdrawn(), ElementsAre(broadcast_id{one.program, 0}));
}

} // namespace
} // namespace troupe::testing
