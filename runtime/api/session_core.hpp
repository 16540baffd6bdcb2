#pragma once

/// What a session and its datasets share: the way to the cluster and what was run last. Any thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/api/accumulator.hpp>
#include <troupe/runtime/api/captured.hpp>
#include <troupe/runtime/api/compile.hpp>
#include <troupe/runtime/api/graph.hpp>
#include <troupe/runtime/api/job_client.hpp>
#include <troupe/runtime/api/job_error.hpp>

namespace troupe {

/// How a session builds its jobs; set by whoever starts it, from the configuration.
struct session_options {
  std::uint32_t default_parallelism = 2; ///< partitions of sources and shuffles that name no number; at least 1
  compile_options jobs;
  std::vector<std::string> arguments;      ///< the program's own, without those that `troupe::run` took
  std::vector<std::string> fake_resources; ///< resources whose addresses the configuration made up
  /// Text files are read in pieces of so many bytes at most where nobody says into how many partitions.
  std::uint64_t max_partition_bytes = std::uint64_t{128} << 20;
};

namespace detail {

class session_core {
public:
  /// @param group of every job that is run; "": of none
  /// @param totals of those that share them
  session_core(std::shared_ptr<job_client> client, session_options options, std::string group = {},
               std::shared_ptr<accumulator_totals> totals = std::make_shared<accumulator_totals>());

  const session_options& options() const noexcept { return options_; }
  /// `wanted`, or the default where it is 0.
  std::uint32_t partitions_or_default(std::uint32_t wanted) const noexcept;

  /// Called once per partition of the last stage, in order, with what its task left.
  using visitor = std::function<void(std::string_view result)>;

  /// Runs a job to its end. Throws job_error when it does not succeed.
  void run(job_spec job, const visitor& each);
  /// The same for a dataset and an action.
  void run(const dataset_node& last, const operation& end, const std::string& action, const visitor& each);

  /// The same for jobs of a group.
  std::shared_ptr<session_core> in_group(std::string group) const;
  /// The same for jobs of a pool.
  std::shared_ptr<session_core> in_pool(std::string pool) const;
  /// A broadcast, and what withdraws it with its last copy. Throws job_error.
  std::pair<broadcast_reference, std::shared_ptr<const void>> publish(const broadcast_content& content);
  publish_function publisher() {
    return [this](const broadcast_content& content) { return publish(content); };
  }
  /// @returns how many jobs it has ended. Throws job_error.
  std::size_t cancel_group(std::string_view group);

  const std::shared_ptr<accumulator_totals>& totals() const noexcept { return totals_; }
  job_progress last_job() const;
  std::vector<task_placement> last_placements() const;

private:
  void visit(const job_end& end, const visitor& each);

  std::shared_ptr<job_client> client_;
  session_options options_;
  std::string group_;
  std::shared_ptr<accumulator_totals> totals_;
  mutable std::mutex mutex_;
  job_progress last_;
};

} // namespace detail

} // namespace troupe
