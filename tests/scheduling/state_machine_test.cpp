#include <troupe/runtime/scheduling/state_machine.hpp>

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace troupe {
namespace {

/// All arrows of a machine, as pairs of from and to.
template <class State>
std::vector<std::pair<State, State>> arrows(const std::vector<State>& states) {
  std::vector<std::pair<State, State>> out;
  for (const auto from : states)
    for (const auto to : states)
      if (may_follow(from, to)) out.emplace_back(from, to);
  return out;
}

TEST(state_machines, job) {
  using s = job_state;
  const std::vector<std::pair<s, s>> expected{{s::accepted, s::running},   {s::accepted, s::failed},
                                              {s::accepted, s::cancelled}, {s::running, s::succeeded},
                                              {s::running, s::failed},     {s::running, s::cancelled}};
  EXPECT_EQ(arrows<s>({s::accepted, s::running, s::succeeded, s::failed, s::cancelled}), expected);
}

TEST(state_machines, stage) {
  using s = stage_state;
  const std::vector<std::pair<s, s>> expected{
      {s::waiting, s::running},  {s::waiting, s::complete}, {s::waiting, s::failed},   {s::running, s::waiting},
      {s::running, s::complete}, {s::running, s::failed},   {s::complete, s::waiting}, {s::complete, s::running}};
  EXPECT_EQ(arrows<s>({s::waiting, s::running, s::complete, s::failed}), expected);
}

TEST(state_machines, task) {
  using s = task_set::status;
  const std::vector<std::pair<s, s>> expected{
      {s::pending, s::running}, {s::running, s::pending}, {s::running, s::done}, {s::done, s::pending}};
  EXPECT_EQ(arrows<s>({s::pending, s::running, s::done}), expected);
}

TEST(state_machines, executor) {
  using s = executor_record::state;
  const std::vector<std::pair<s, s>> expected{{s::active, s::draining}};
  EXPECT_EQ(arrows<s>({s::active, s::draining}), expected);
}

TEST(state_machines, refuse_what_is_no_arrow_and_change_nothing) {
  auto state = job_state::succeeded;
  EXPECT_THROW(transition("job", state, job_state::failed), std::logic_error);
  EXPECT_EQ(state, job_state::succeeded);
}

TEST(state_machines, are_obeyed_by_tasks) {
  task_set tasks{2};
  EXPECT_THROW(tasks.requeue(0, true), std::logic_error) << "it was not handed out";
  task_batch batch;
  tasks.take(1, 0, batch);
  EXPECT_THROW(tasks.invalidate(0), std::logic_error) << "it has no output yet";
  tasks.succeed(0);
  EXPECT_THROW(tasks.requeue(0, true), std::logic_error) << "it is done";
  EXPECT_EQ(tasks.done(), 1u);
  EXPECT_EQ(tasks.running(), 0u);
}

TEST(state_machines, are_obeyed_by_leases) {
  lease_record lease;
  lease.draining = true;
  task_batch batch;
  batch.count = 1;
  EXPECT_THROW(lease.add(batch), std::logic_error);
}

} // namespace
} // namespace troupe
