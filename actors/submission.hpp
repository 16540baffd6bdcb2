#pragma once

/// A job of an application's own, in one call: it is handed to a driver of the same actor system, and functions hear
/// how it goes and how it ends.
///
///     auto submitted = troupe::submit(system, cluster.driver, job, {
///         .on_success = [](const troupe::job_end& end) { … },
///         .on_failure = [](const troupe::error& why) { … },
///     });
///     …
///     submitted.cancel("nobody wants it any more");

#include <functional>
#include <future>
#include <memory>
#include <string>

#include <caf/actor_system.hpp>

#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// All are called in one actor that exists for this job alone, so never two at once; none may block or throw. What goes
/// on in an actor of the application starts with a message to it. Of `on_success`, `on_failure` and `on_cancelled`
/// exactly one is called, once, then `on_end`, and nothing after it.
struct job_handlers {
  std::function<void(job_id)> on_accepted = {}; ///< a job that ends at once may end without it
  std::function<void(const job_progress&)> on_progress = {};
  std::function<void(const job_end&)> on_success = {}; ///< large values: see `keep_results`
  /// It was refused, or it failed. ec::unreachable: its driver is not there any more.
  std::function<void(const error&)> on_failure = {};
  std::function<void(const error&)> on_cancelled = {};
  std::function<void(const job_end&)> on_end = {}; ///< whichever it is
  /// Results that stayed on their executors stay there after `on_success`, for `fetch_result` on a thread that may
  /// wait; they go with `release_results_of`, or with the driver. Else they go when `on_success` has returned.
  bool keep_results = false;
};

/// A job that was handed over. Copies name the same one; letting go of it changes nothing. Any thread.
class submitted_job {
public:
  /// Ends the job where it has not ended: also before the driver has taken it.
  void cancel(std::string reason) const;

private:
  friend submitted_job submit(caf::actor_system& system, const driver_actor& driver,
                              std::shared_ptr<const job_spec> job, job_handlers handlers);
  extended<client_actor, void(local_message<cancel_job>)> actor_;
};

/// Submits a job. `driver` is an actor of `system`, alive or not: one that has ended is told to `on_failure`. Any
/// thread.
submitted_job submit(caf::actor_system& system, const driver_actor& driver, std::shared_ptr<const job_spec> job,
                     job_handlers handlers);

/// The same for a thread that waits: its end, whatever it is. Its results are released.
std::future<job_end> submit(caf::actor_system& system, const driver_actor& driver, std::shared_ptr<const job_spec> job);

/// Lets results of a job go that `job_handlers::keep_results` has kept.
void release_results_of(caf::actor_system& system, const driver_actor& driver, job_id job);

} // namespace troupe
