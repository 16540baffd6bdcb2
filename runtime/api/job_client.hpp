#pragma once

/// The seam between what job authors use and what runs their jobs. A session calls it; whoever owns the connection to a
/// driver implements it.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/execution/broadcast_source.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

/// Runs jobs somewhere. Every method may be called from any thread and may wait; none throws for what can be expected
/// to fail.
class job_client {
public:
  virtual ~job_client() = default;

  /// Hands a job over and waits for its end. One that is refused ends with the reason and without an id; a lost driver
  /// ends it with `ec::unreachable`.
  virtual job_end run(std::shared_ptr<const job_spec> job) = 0;
  /// A result that `job_results::elsewhere` names. To be had until `release` is called for its job.
  virtual result<std::string> fetch(const result_location& where) = 0;
  /// Nothing more is fetched of an ended job: executors may drop its results. A job without results elsewhere needs no
  /// release.
  virtual void release(job_id job) = 0;
  /// Which accepted attempt of a running or ended job ran where, stage by stage, ascending partitions.
  virtual result<std::vector<task_placement>> placements(job_id job) = 0;
  /// Ends a job, of this client or another; `run` then returns soon. A job that has ended stays as it is; one that the
  /// driver does not know is `ec::not_found`.
  virtual result<void> cancel(job_id job, std::string_view reason) = 0;
  /// Ends one stage of a job, by its place there from 0; the job needs it and so fails, saying that the stage was
  /// cancelled. A stage that is complete and a job that has ended stay as they are; `ec::not_found` where there is
  /// none.
  virtual result<void> cancel_stage(job_id job, std::uint32_t stage, std::string_view reason) = 0;
  /// Ends every unfinished job of a group, of this client or another, as `cancel` does; not those that are submitted
  /// later. @returns those that it has ended; `ec::not_found` where the driver knows no job of the group
  virtual result<std::vector<job_id>> cancel_group(std::string_view group, std::string_view reason) = 0;
  /// Makes a value available to the tasks of this client's jobs, until it is withdrawn.
  virtual result<broadcast_reference> publish(const broadcast_content& content) = 0;
  /// Tasks that have not read the value by then fail.
  virtual void withdraw(broadcast_id id) = 0;
};

} // namespace troupe
