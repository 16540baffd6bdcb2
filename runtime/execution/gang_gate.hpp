#pragma once

/// Where the tasks of gangs wait for each other: on their lease threads, until the driver lets them go on.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include <troupe/runtime/scheduling/orders.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// A task waited for the others of its gang in vain. Thrown by `task_context::barrier` and `all_gather`.
class barrier_failure : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// One per executor; any thread.
class gang_gate {
public:
  using texts = std::shared_ptr<const packed_column>;

  /// @param on_arrival tells the driver; called on the waiting thread, without any lock
  explicit gang_gate(std::function<void(barrier_arrival)> on_arrival) : on_arrival_(std::move(on_arrival)) {}

  /// Tells of the arrival and waits for its release. Throws barrier_failure with the words of the release, or when the
  /// attempt is cancelled before or meanwhile.
  /// @param cancelled of the attempt; null: never. Whoever sets it calls `wake`
  /// @returns what the release brings: null where nobody handed anything over
  texts wait(const barrier_arrival& arrival, const std::atomic<bool>* cancelled);
  /// Lets those go on that wait in this very round of this attempt of the stage; others are not concerned.
  void release(const barrier_release& what);
  /// The attempt with this flag looks at it again, if it waits.
  void wake(const std::atomic<bool>& cancelled);

private:
  struct waiter;

  const std::function<void(barrier_arrival)> on_arrival_;
  std::mutex mutex_;
  std::vector<waiter*> waiting_; ///< in no order; each lies on the stack of its thread
};

} // namespace troupe
