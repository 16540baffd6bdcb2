#pragma once

/// What a session's process asks of its driver, beyond what the job API calls. Names nothing of the actor framework,
/// whose headers take longer to compile than most programs that include this.

#include <string>
#include <string_view>

#include <troupe/messages/session.hpp>
#include <troupe/runtime/api/job_client.hpp>
#include <troupe/runtime/scheduling/explanation.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Any thread; each call may wait for the driver's answer.
class cluster_jobs : public job_client {
public:
  /// Cancels every job of this connection that has not ended.
  virtual void cancel_all(std::string_view reason) = 0;
  /// Why a job and its stages wait. ec::not_found: there is no such job.
  virtual result<job_explanation> explain(job_id job) = 0;
  /// Executors and jobs as the driver sees them.
  virtual result<cluster_status> status() = 0;
  /// Ends the session of the driver.
  virtual result<void> stop(const std::string& reason, duration timeout) = 0;
};

} // namespace troupe
