#pragma once

/// Totals of the accumulators of one job. Each task counts once: with what its last accepted attempt has counted,
/// however often it was tried, copied, or run again since what it had made was lost.

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/accumulated.hpp>

namespace troupe {

/// Owner: the dag scheduler, one for each job that runs. Not thread-safe.
class accumulator_book {
public:
  accumulator_book() = default;
  accumulator_book(accumulator_book&&) = default;
  accumulator_book& operator=(accumulator_book&&) = default;

  /// Takes what the accepted attempt of a task has counted, in place of what an earlier one of the same task had.
  /// @param stage its index in the job
  /// @param names of the accumulators that `counted` refers to
  /// @returns false, and takes nothing more, where the job would count in more than `max_accumulators`
  bool accept(std::uint32_t stage, partition_index partition, std::span<const counted_amount> counted,
              const std::vector<std::string>& names);

  /// What was counted so far, ascending names.
  std::vector<accumulated> totals() const;

private:
  struct part {
    std::int64_t* total; ///< in `totals_`
    std::int64_t amount;
  };
  std::map<std::string, std::int64_t, std::less<>> totals_;
  std::unordered_map<std::uint64_t, std::vector<part>> of_task_; ///< of tasks that have counted anything
};

} // namespace troupe
