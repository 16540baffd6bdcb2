#pragma once

/// The arrows of the state machines of docs/state-machines.md. A state changes through `transition` alone, which throws
/// where there is no such arrow: a defect that must not be built upon.

#include <stdexcept>
#include <string>
#include <string_view>

#include <troupe/runtime/scheduling/executor_pool.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>
#include <troupe/runtime/scheduling/task_set.hpp>

namespace troupe {

/// accepted -> running; accepted | running -> failed | cancelled; running -> succeeded.
constexpr bool may_follow(job_state from, job_state to) noexcept {
  if (from > job_state::running || to == job_state::accepted) return false;
  return from == job_state::accepted ? to != job_state::succeeded : to != job_state::running;
}

/// waiting -> running -> complete; running -> waiting when an input is lost; complete -> waiting | running when its own
/// output is; waiting -> complete where nobody needs its output any more; waiting | running -> failed with its job.
constexpr bool may_follow(stage_state from, stage_state to) noexcept {
  return from != stage_state::failed && from != to && !(from == stage_state::complete && to == stage_state::failed);
}

/// pending -> running -> done; running -> publishing -> done where files have to be put in place; pending -> done where
/// its output is there from a former job; running | publishing -> pending when the attempt did not succeed, or its
/// files could not be published; done -> pending when the output is lost.
constexpr bool may_follow(task_set::status from, task_set::status to) noexcept {
  using s = task_set::status;
  switch (from) {
  case s::pending: return to == s::running || to == s::done;
  case s::running: return to != s::running;
  case s::publishing: return to == s::pending || to == s::done;
  case s::done: return to == s::pending;
  }
  return false;
}

/// active -> draining.
constexpr bool may_follow(executor_record::state from, executor_record::state to) noexcept {
  return from == executor_record::state::active && to == executor_record::state::draining;
}

/// Throws std::logic_error, naming the machine and both states by their numbers.
template <class State>
[[noreturn]] void refuse_transition(std::string_view machine, State from, State to) {
  throw std::logic_error{"a " + std::string{machine} + " must not go from state " +
                         std::to_string(static_cast<int>(from)) + " to " + std::to_string(static_cast<int>(to))};
}

/// Moves `now` along an arrow. Throws std::logic_error where there is none.
template <class State>
void transition(std::string_view machine, State& now, State to) {
  if (!may_follow(now, to)) [[unlikely]]
    refuse_transition(machine, now, to);
  now = to;
}
/// The same where only one state may be left. @param from that state
template <class State>
void transition(std::string_view machine, State& now, State from, State to) {
  if (now != from) [[unlikely]]
    refuse_transition(machine, now, to);
  transition(machine, now, to);
}

} // namespace troupe
