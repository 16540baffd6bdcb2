#pragma once

/// Attempts that ran together on an executor that died of a crash or of memory: any of them may have done it. Each runs
/// alone until one dies again, and is guilty, or until it has succeeded.
/// Owner: the dag scheduler. Not thread-safe; no clock, no I/O.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include <troupe/runtime/ids.hpp>

namespace troupe {

/// One partition of one stage.
struct stage_task {
  stage_id stage;
  partition_index partition = 0;
  auto operator<=>(const stage_task&) const = default;
};

class suspect_book {
public:
  /// One of these has ended an executor. @pre none of them is a suspect
  void accuse(const std::vector<stage_task>& together);
  /// It has done nothing. No effect on others.
  void acquit(stage_task task);
  /// It was the one. @returns those that were accused with it, who are not suspects any more
  std::vector<stage_task> convict(stage_task task);
  /// The stage has ended.
  void forget(stage_id stage);

  bool contains(stage_task task) const { return case_of_.contains(task); }
  bool empty() const noexcept { return case_of_.empty(); }

private:
  std::map<stage_task, std::uint64_t> case_of_;
  std::map<std::uint64_t, std::set<stage_task>> cases_; ///< none is empty
  std::uint64_t next_case_ = 0;
};

} // namespace troupe
