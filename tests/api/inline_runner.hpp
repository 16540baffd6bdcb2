#pragma once

/// Runs jobs of native stages on the calling thread, stage by stage, from the same bytes that travel to executors.

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <troupe/runtime/api/job_client.hpp>

namespace troupe::test {

/// Not thread-safe.
class inline_runner : public job_client {
public:
  /// Results of more bytes than this are left to be fetched.
  std::uint64_t max_inline_result = std::numeric_limits<std::uint64_t>::max();
  /// Every job that was accepted.
  std::vector<std::shared_ptr<const job_spec>> jobs;
  /// Results that were left to be fetched and not released.
  std::size_t kept_results() const noexcept { return stored_.size(); }

  job_end run(std::shared_ptr<const job_spec> job) override;
  result<std::string> fetch(const result_location& where) override;
  void release(job_id job) override;
  result<std::vector<task_placement>> placements(job_id job) override;
  result<void> cancel(job_id job, std::string_view reason) override;
  result<void> cancel_stage(job_id job, std::uint32_t stage, std::string_view reason) override;
  /// Every job has ended when this is called.
  result<std::vector<job_id>> cancel_group(std::string_view group, std::string_view reason) override;
  result<broadcast_reference> publish(const broadcast_content& content) override;
  void withdraw(broadcast_id id) override;
  /// Broadcasts that were not withdrawn.
  std::size_t most_result = 0; ///< bytes of what one task left
  std::size_t most_broadcasts() const noexcept { return most_broadcasts_; }
  std::size_t kept_broadcasts() const noexcept { return broadcasts_.values.size(); }

private:
  struct published : broadcast_source {
    std::shared_ptr<const void> get(const broadcast_reference& which, std::type_index type,
                                    const decoder& decode) override;
    void drop(broadcast_id id) override { values.erase(id); }
    struct entry {
      std::string bytes;
      std::shared_ptr<const void> value; ///< null: nobody has read it
    };
    std::map<broadcast_id, entry> values;
  };
  struct finished_job {
    job_end end;
    std::vector<task_placement> placements;
  };

  finished_job execute(job_id id, const job_spec& job);

  std::map<job_id, finished_job> finished_;
  std::map<std::pair<stage_id, partition_index>, std::string> stored_; ///< of jobs that were not released
  std::uint64_t next_stage_ = 1;
  published broadcasts_;
  std::uint64_t next_broadcast_ = 1;
  std::size_t most_broadcasts_ = 0; ///< at the same time
};

} // namespace troupe::test
