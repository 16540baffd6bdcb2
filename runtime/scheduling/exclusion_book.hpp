#pragma once

/// Counts failures of tasks against the executors that they ran on, by profile, and says which executors and hosts get
/// no tasks of a profile for a while (spec TS-18, Spark's excludeOnFailure). It tells only of changes; what an
/// exclusion means is its owner's to decide. It knows nothing that is older than the time-out. Owner: the dag
/// scheduler. Not thread-safe; no clock, no I/O.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

struct exclusion_rules {
  bool enabled = false; ///< else nothing is ever counted
  /// An executor is excluded when so many different tasks of a profile have failed there within the time-out.
  std::uint32_t max_failed_tasks_per_executor = 2;
  /// A host is excluded when so many of its executors are, those included that are gone by now.
  std::uint32_t max_failed_executors_per_node = 2;
  duration timeout = std::chrono::hours{1}; ///< how long a failure counts and an exclusion lasts
};

class exclusion_book {
public:
  explicit exclusion_book(exclusion_rules rules) : rules_(rules) {}

  /// One attempt that its executor is to blame for, perhaps.
  struct failure {
    profile_id profile; ///< that the task ran as
    executor_id executor;
    std::string_view host;
    stage_id stage;
    partition_index partition = 0;
    bool lost = false;     ///< the executor went away under it and whatever else ran there: one of them may be to blame
    std::string_view text; ///< for people; its beginning is kept
  };
  /// An exclusion that has begun or ended.
  struct change {
    profile_id profile;
    executor_id executor; ///< 0: it is the host's
    std::string host;
    std::uint32_t count = 0; ///< of its beginning: failed tasks of the executor, excluded executors of the host

    bool operator==(const change&) const = default;
  };
  using changes = std::vector<change>;

  /// Counts a failure. A task that fails again on the same executor counts once; a task that takes one executor after
  /// the other along, and what runs there with it, does not exclude their host.
  /// @returns what is excluded from now on: the executor first, then its host.
  changes on_failure(const failure& f, time_point now);
  /// The same for all that was lost with one executor. Its host is judged when all of it is known.
  changes on_loss(const std::vector<failure>& all, time_point now);
  /// Forgets what is too old. @returns exclusions that are over.
  changes on_time(time_point now);
  /// Forgets the failures of a stage that has ended without success: they may have been its own fault, as Spark counts
  /// those of task sets alone that have succeeded. @returns exclusions that would not have been without them.
  changes on_stage_ended(stage_id stage);

  bool is_excluded(profile_id profile, executor_id executor, std::string_view host) const;
  bool is_host_excluded(profile_id profile, std::string_view host) const;
  /// Whether any executor or host is excluded from this profile.
  bool concerns(profile_id profile) const;
  /// Profiles that this executor, or its host, is excluded from.
  std::set<profile_id> profiles_excluded_from(executor_id executor, std::string_view host) const;
  /// What is excluded from the profile, a few by name, and the last failure; "" where nothing is.
  std::string describe(profile_id profile) const;
  /// True when nothing is remembered.
  bool empty() const noexcept { return executors_.empty() && hosts_.empty(); }
  const exclusion_rules& rules() const noexcept { return rules_; }

private:
  struct failed_task {
    stage_id stage;
    partition_index partition = 0;
    bool lost = false;
    time_point when{};
  };
  struct executor_record {
    std::string host;
    std::vector<failed_task> tasks;  ///< different ones; of those not lost at most the limit of each stage
    std::optional<time_point> until; ///< it is excluded
  };
  struct last_failure {
    std::string text;
    time_point when{};
  };
  using executor_map = std::map<std::pair<profile_id, executor_id>, executor_record>;

  void note(const failure& f, time_point now);
  changes judge(const failure& f, time_point now);
  std::vector<const executor_record*> excluded_on(profile_id profile, std::string_view host) const;
  bool is_host_to_blame(profile_id profile, std::string_view host) const;

  exclusion_rules rules_;
  executor_map executors_;                                         ///< also those that are gone
  std::map<std::pair<profile_id, std::string>, time_point> hosts_; ///< excluded until then
  std::map<profile_id, last_failure> last_;                        ///< within the time-out
};

} // namespace troupe
