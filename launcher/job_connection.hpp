#pragma once

/// A submitter's side: hands jobs to a driver and waits for their ends. Implements what the job API calls.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>

#include <caf/actor_system.hpp>

#include <troupe/actors/client.hpp>
#include <troupe/actors/common.hpp>
#include <troupe/launcher/cluster_jobs.hpp>
#include <troupe/messages/interfaces.hpp>
#include <troupe/runtime/transfer/block_client.hpp>

namespace troupe {

class job_connection : public cluster_jobs {
public:
  struct options {
    driver_actor driver;
    std::string described = "the driver"; ///< for the error of those who wait when it is gone
    std::shared_ptr<block_client> blocks; ///< fetches large results
    /// Makes a broadcast, and ends it; without them there is none.
    std::function<result<broadcast_reference>(const broadcast_content&)> publish;
    std::function<void(broadcast_id)> withdraw;
    logger_source loggers = silent_loggers();
    duration request_timeout = std::chrono::seconds{10};
    std::function<void(const job_progress&)> on_progress; ///< on a CAF thread; must not block
    std::function<void(const job_end&)> on_end;           ///< the same
  };
  /// `system` lives until `close` has returned.
  job_connection(caf::actor_system& system, options opts);
  ~job_connection() override;

  job_end run(std::shared_ptr<const job_spec> job) override;
  result<std::string> fetch(const result_location& where) override;
  void release(job_id job) override;
  result<std::vector<task_placement>> placements(job_id job) override;
  result<void> cancel(job_id job, std::string_view reason) override;
  result<void> cancel_stage(job_id job, std::uint32_t stage, std::string_view reason) override;
  result<std::vector<job_id>> cancel_group(std::string_view group, std::string_view reason) override;

  result<broadcast_reference> publish(const broadcast_content& content) override;
  void withdraw(broadcast_id id) override;

  void cancel_all(std::string_view reason) override;
  /// The driver cannot be reached any more: every wait ends with this error.
  void lose(const error& why);
  /// Lets go of the actor system: every wait ends, every later call fails. Datasets of a program may hold the
  /// connection for longer than its session lives.
  void close();

  result<job_explanation> explain(job_id job) override;
  result<cluster_status> status() override;
  result<void> stop(const std::string& reason, duration timeout) override;
  client_actor client() const { return client_; }

private:
  /// A job that was handed over. It stays until nothing more can be heard of it.
  struct submitted {
    boxed<job_submission> submission; ///< its address names the job until there is an id
    job_id job;                       ///< once accepted
    std::optional<boxed<job_end>> end;
    error refused;
    bool awaited = true; ///< false: whoever submitted it was told of a failure and has gone
  };
  bool answered(const boxed<job_submission>& submission, const result<job_id>& job);
  void ended(const boxed<job_end>& end);
  template <class Answer, class... Question>
  result<boxed<Answer>> call(duration timeout, const Question&... question);

  mutable std::shared_mutex open_; ///< held shared by calls, exclusively by `close`
  caf::actor_system* system_;      ///< null once closed
  options options_;
  local_client_actor client_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const job_submission*, std::shared_ptr<submitted>> submitted_;
  std::map<job_id, boxed<job_end>> early_; ///< ends that overtook their acceptance
  error lost_;
};

} // namespace troupe
