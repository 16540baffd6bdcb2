#pragma once

/// Accepted attempts whose output files are not in place yet. Owner: the dag scheduler. Not thread-safe.
///
/// Invariant: a task has at most one entry, and has one exactly while it is `task_set::status::publishing`. So no two
/// attempts of a task are ever published side by side.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/scheduling/suspect_book.hpp>

namespace troupe {

struct accepted_attempt {
  stage_task task;
  attempt_number attempt = 0;
  executor_id executor; ///< that has staged its files
  lease_id lease;       ///< under which it ran
  /// The outcome that was accepted, and its entry there.
  std::shared_ptr<const outcome_batch> batch;
  std::uint32_t entry = 0;
  bool begun = false;     ///< somebody may be publishing it
  bool granted = false;   ///< its own executor may publish it, since the driver does not see its files
  bool discarded = false; ///< it counts for nothing, however its publication ends: its gang has failed
};

class publication_book {
public:
  /// @pre the task has no entry
  accepted_attempt& add(accepted_attempt what);
  /// Null: there is no such entry.
  accepted_attempt* find(const stage_task& task, attempt_number attempt);
  void remove(const stage_task& task);
  /// Removes all of the stage.
  void forget(stage_id stage);
  /// Tasks of the stage that have an entry, ascending.
  std::vector<stage_task> of_stage(stage_id stage) const;
  bool has(stage_id stage) const;
  /// The number of tasks whose files the executor has staged.
  std::size_t count_of(executor_id executor) const;
  /// Tasks whose files the executor has staged.
  std::vector<stage_task> of_executor(executor_id executor) const;
  accepted_attempt& at(const stage_task& task) { return entries_.at(task); }
  std::size_t size() const noexcept { return entries_.size(); }

private:
  std::map<stage_task, accepted_attempt> entries_;
  std::map<executor_id, std::set<stage_task>> by_executor_; ///< none is empty
};

} // namespace troupe
