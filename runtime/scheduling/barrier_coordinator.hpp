#pragma once

/// Where the tasks of one gang meet: in one round after the other, each of them once in each, with or without a text
/// for the others (spec BA-10). One stage attempt has one of its own, so that no other can disturb its clock. Owner:
/// the stage in the dag scheduler. Not thread-safe; no clock, no I/O. A round: open -> complete, and the next one is
/// open; open -> failed, for good.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/scheduling/reports.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

class barrier_coordinator {
public:
  /// @param tasks of the gang
  explicit barrier_coordinator(std::uint32_t tasks);

  /// Tasks that wait no longer.
  struct verdict {
    std::uint32_t round = 0;
    std::vector<partition_index> partitions;
    std::shared_ptr<const packed_column> texts; ///< by partition; null: nobody handed one over, or it failed
    std::string failure;                        ///< why the others will not come; "": all have
  };

  /// A task waits. One that waits already is ignored.
  /// @pre the partition is one of the gang
  std::optional<verdict> on_arrival(const barrier_arrival& arrival, time_point now);
  /// A task has ended: it comes to no further round, so that none can be complete any more.
  std::optional<verdict> on_ended(partition_index partition);
  /// The first of those that wait has waited for too long. @pre somebody waits
  verdict on_timeout(duration limit);

  /// Since when somebody waits; nothing: nobody does.
  std::optional<time_point> waiting_since() const noexcept { return since_; }

private:
  verdict fail(std::string why);

  std::vector<std::optional<std::string>> texts_; ///< of those that wait, by partition
  std::uint32_t waiting_ = 0;
  std::uint32_t round_ = 0;
  sync_kind kind_ = sync_kind::barrier; ///< of the first that came
  std::size_t bytes_ = 0;               ///< of all texts
  std::optional<time_point> since_;
  std::optional<partition_index> ended_; ///< the first one
  std::string failure_;
};

} // namespace troupe
