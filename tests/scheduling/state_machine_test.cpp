#include <troupe/runtime/scheduling/state_machine.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <troupe/runtime/execution/executor_core.hpp>

namespace troupe {
namespace {

/// The arrows of a machine as the page writes them: "a to b, c; b to c". Blanks and line ends are one blank.
std::string arrows_on_the_page(const std::string& machine) {
  std::ifstream file{TROUPE_SOURCE_DIRECTORY "/docs/state-machines.md"};
  const std::string page{std::istreambuf_iterator<char>{file}, {}};
  const auto title = "\nArrows of " + machine + ": ";
  const auto begin = page.find(title);
  if (begin == page.npos) return "none";
  auto text = page.substr(begin + title.size(), page.find('.', begin) - begin - title.size());
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// The same from the code.
template <class State>
std::string arrows_of(const std::vector<std::pair<State, std::string>>& states) {
  std::string out;
  for (const auto& [from, name] : states) {
    std::string targets;
    for (const auto& [to, other] : states)
      if (may_follow(from, to)) targets += (targets.empty() ? "" : ", ") + other;
    if (!targets.empty()) out += (out.empty() ? "" : "; ") + name + " to " + targets;
  }
  return out;
}

template <class State>
std::vector<std::pair<State, std::string>> named(const std::vector<State>& states) {
  std::vector<std::pair<State, std::string>> out;
  for (const auto s : states) out.emplace_back(s, to_string(s));
  return out;
}

TEST(state_machines, are_the_ones_of_the_page) {
  using j = job_state;
  EXPECT_EQ(arrows_of(named<j>({j::accepted, j::running, j::succeeded, j::failed, j::cancelled})),
            arrows_on_the_page("job"));
  using s = stage_state;
  EXPECT_EQ(arrows_of(named<s>({s::waiting, s::running, s::complete, s::failed})), arrows_on_the_page("stage"));
  using t = task_set::status;
  EXPECT_EQ(arrows_of<t>(
                {{t::pending, "pending"}, {t::running, "running"}, {t::publishing, "publishing"}, {t::done, "done"}}),
            arrows_on_the_page("task"));
  using e = executor_record::state;
  EXPECT_EQ(arrows_of<e>({{e::active, "active"}, {e::draining, "draining"}}), arrows_on_the_page("executor"));
  using l = lease_state;
  EXPECT_EQ(arrows_of<l>({{l::open, "open"}, {l::closing, "closing"}}), arrows_on_the_page("lease"));
}

TEST(state_machines, refuse_what_is_no_arrow_and_change_nothing) {
  auto state = job_state::succeeded;
  EXPECT_THROW(transition("job", state, job_state::failed), std::logic_error);
  EXPECT_EQ(state, job_state::succeeded);
}

TEST(state_machines, are_obeyed_by_tasks) {
  task_set tasks{2};
  EXPECT_THROW(tasks.requeue(0, tasks.attempt_of(0), true), std::logic_error) << "it was not handed out";
  task_batch batch;
  tasks.take(0, 1, 0, batch);
  EXPECT_THROW(tasks.invalidate(0), std::logic_error) << "it has no output yet";
  tasks.succeed(0, tasks.attempt_of(0));
  EXPECT_THROW(tasks.requeue(0, tasks.attempt_of(0), true), std::logic_error) << "it is done";
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
