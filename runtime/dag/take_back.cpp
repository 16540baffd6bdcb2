// Work that was queued behind a task which turns out to be long goes where a slot is free for it.

#include <troupe/runtime/dag/dag_scheduler.hpp>

namespace troupe {

/// To be called when an attempt of the lease has ended and when it has been given tasks.
void dag_scheduler::heard_of(lease_record& lease, time_point now) {
  if (lease.in_flight > 1 && !lease.recalled)
    queued_.heard(lease.id, lease.demand, now);
  else
    queued_.forget(lease.id);
}

/// Asks leases of which nothing was heard for longer than a long task for what has not begun there, each once until
/// there is news of it, where there is room for it elsewhere. What has begun meanwhile simply ends.
/// @returns whether there was any
bool dag_scheduler::take_back(time_point now) {
  const auto silent =
      queued_.take_silent(now - options_.long_task, [this](demand_index d) { return pool_.has_room(d); });
  for (const auto id : silent) {
    auto& lease = *pool_.find_lease(id);
    lease.recalled = true;
    orders_for(lease.executor).recalled.push_back(id);
  }
  return !silent.empty();
}

} // namespace troupe
