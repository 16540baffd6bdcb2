#pragma once

/// Executors as actors of this process: the backend of `local[N]` and of embedders. Used by the allocator actor alone.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>

#include <troupe/actors/executor.hpp>
#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/execution/command_terms.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/resources/memory_split.hpp>
#include <troupe/runtime/storage/page.hpp>
#include <troupe/runtime/transfer/block_client.hpp>

namespace troupe {

class in_process_backend : public executor_backend {
public:
  struct options {
    std::vector<carving_host> hosts;
    std::string described_by; ///< what the user would edit, for messages
    driver_actor driver;
    std::string cluster_id;
    std::shared_ptr<const session_secret> secret;
    std::string directory;                      ///< of the session
    std::vector<std::string> local_directories; ///< of the session, at least one: for blocks in files, and for attempts
    std::string staging_journal;                ///< of the executors' staging roots (staging_roots.hpp); "": none
    bool keep_attempts = false;                 ///< what commands printed stays when their executor has ended
    std::vector<std::string> devices;           ///< GPUs of this process in the order of their ordinals
    memory_split memory;                        ///< of each executor
    page_compression compression;               ///< of map outputs and large results
    std::uint64_t max_inline_result = 1 << 20;
    duration driver_timeout = std::chrono::seconds{6};
    duration abandon_timeout = std::chrono::seconds{60};
    duration shutdown_grace = std::chrono::seconds{1};
    /// What the commands of the executor of this name may take; unset: no limits.
    std::function<command_limits(const std::string& name, const executor_capacity& capacity)> limit_commands;
    duration kill_grace = std::chrono::seconds{10}; ///< of attempts that are cancelled
    command_terms terms;
    std::string serve_at; ///< address at which executors of other processes read their blocks; "": there are none
    std::shared_ptr<local_blocks> local;          ///< where executors of this process find each other's blocks
    std::shared_ptr<block_client> fetcher;        ///< reads shuffles
    std::shared_ptr<broadcast_source> broadcasts; ///< of the program; null: it makes none
    logger_source loggers = silent_loggers();
  };
  /// `system` outlives it.
  in_process_backend(caf::actor_system& system, options opts);
  ~in_process_backend() override;

  void converge(const std::vector<executor_order>& wanted) override;
  std::vector<launch_status> snapshot() override;
  feasibility check(const executor_shape& shape) override;
  std::uint32_t room_for(const executor_shape& shape) override;
  std::optional<way_answer> who_makes_way(const way_question& question) override;

private:
  struct child {
    shape_id shape;
    executor_actor actor;
    cgroup group; ///< of its commands; empty: none
    bool parked = false;
    bool stopping = false;
  };
  /// Filled by executors on CAF's threads.
  struct mailbox {
    std::mutex mutex;
    std::map<request_id, std::string> ended;
    std::set<request_id> cleared; ///< no task of theirs runs any more
  };

  void start(const executor_order& order);
  void reap();

  caf::actor_system& system_;
  options options_;
  carving carving_;
  std::map<request_id, child> children_;
  std::vector<launch_status> ended_;
  std::set<request_id> lingering_; ///< ended, and may have a task that does not end: what they hold is not lent anew
  std::set<request_id> cleared_;   ///< no task of theirs runs any more
  std::set<request_id> over_;      ///< ended or refused, and wanted until the allocator has heard of it
  std::shared_ptr<mailbox> mailbox_ = std::make_shared<mailbox>();
};

} // namespace troupe
