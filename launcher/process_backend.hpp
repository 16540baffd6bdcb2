#pragma once

/// Executors as processes of this machine, carved out of hosts' worth of room: the backend of `local-cluster` and of
/// cluster files. Used by the allocator actor alone.

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include <troupe/launcher/executor_process.hpp>
#include <troupe/launcher/session_limits.hpp>
#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

class process_backend : public executor_backend {
public:
  struct options {
    std::vector<carving_host> hosts;
    std::string described_by; ///< what the user would edit, for messages
    std::string program;      ///< absolute path of the executable that is started
    executor_start start;     ///< common part: driver, cluster, secret, directory
    settings effective;
    bool shuffle_service = false;           ///< a process keeps what executors leave that are released and still needed
    std::shared_ptr<session_limits> limits; ///< null: none are enforced
    duration grace = std::chrono::milliseconds{1500}; ///< that executors may take to end after TERM
  };
  explicit process_backend(options opts);
  /// Ends every process that is left: TERM, then KILL after the grace.
  ~process_backend() override;
  process_backend(const process_backend&) = delete;
  process_backend& operator=(const process_backend&) = delete;

  void converge(const std::vector<executor_order>& wanted) override;
  std::vector<launch_status> snapshot() override;
  feasibility check(const executor_shape& shape) override;
  std::uint32_t room_for(const executor_shape& shape) override;
  std::optional<way_answer> who_makes_way(const way_question& question) override;

private:
  struct child {
    shape_id shape;
    pid_t pid = 0; ///< of the keeper
    process_limits limits;
    bool parked = false;
    bool stopping = false;
    time_point kill_at{};
  };

  void start(const executor_order& order);
  void provide_service();
  result<pid_t> spawn(request_id request, const executor_start& what);
  void stop(request_id request, child& c);
  void reap();

  options options_;
  carving carving_;
  std::map<request_id, child> children_;
  std::optional<child> service_;            ///< keeps what executors leave that were parked
  time_point next_service_{};               ///< not started before then
  std::vector<launch_status> ended_;        ///< not reported yet
  std::vector<std::future<void>> removals_; ///< of files of executors that have ended
  std::set<request_id> over_;               ///< ended or refused, and wanted until the allocator has heard of it
  int liveness_read_ = -1;                  ///< inherited by keepers
  int liveness_write_ = -1;                 ///< ours alone: its end tells them that we are gone
};

} // namespace troupe
