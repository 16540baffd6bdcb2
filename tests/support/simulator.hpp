#pragma once

/// The inside of `simulate`: the driver's side, and that of the executors.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <troupe/runtime/allocation/allocation_policy.hpp>
#include <troupe/runtime/dag/dag_scheduler.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/resources/profile_registry.hpp>
#include <troupe/tests/support/builders.hpp>
#include <troupe/tests/support/cluster_simulator.hpp>
#include <troupe/tests/support/dice.hpp>
#include <troupe/tests/support/fake_executor.hpp>
#include <troupe/tests/support/random_cluster.hpp>

namespace troupe::testing {

using namespace std::chrono_literals;

inline constexpr duration turmoil = 30s;       ///< so long things go wrong
inline constexpr duration aftermath = 20'000s; ///< then every job has so long to end

class simulator {
public:
  simulator(std::uint64_t seed, const simulation_options& options)
    : dice_(seed), options_(options),
      matching_(dice_.once_in(5) ? profile_matching::exact : profile_matching::compatible),
      scheduler_(random_options(dice_, matching_)), registry_(default_test_profile()),
      hosts_(random_hosts(dice_), "test"), policy_(random_policy(dice_)) {}

  simulation_report run();

private:
  struct member {
    member(const executor_info& info, bool loses_messages) : self(info), loses(loses_messages) {}
    fake_executor self;
    time_point orders_until{}; ///< orders arrive in their order
    std::set<lease_id> busy;   ///< leases whose front runs
    std::set<std::tuple<stage_id, partition_index, attempt_number>> blocks;
    bool alive = true;
    bool haunts = false; ///< declared lost, and goes on for a while without being heard
    /// Its channel loses messages, or repeats them, never both: what is repeated would count as what got lost.
    bool loses = false;
    bool deaf = false; ///< orders got lost: it leaves alone what comes after the gap
    bool mute = false; ///< a report got lost
    time_point reports_until{};
    time_point next_beat{};
    /// Tasks of gangs that wait for the others, and those that have met them.
    std::map<fake_attempt, lease_id> waiting;
    std::set<fake_attempt> met;
    std::set<fake_attempt> deserted; ///< of those the ones that wait in vain
  };
  struct launched {
    executor_id executor; ///< none before its hello
    bool stopping = false;
    bool gone = false;
  };

  void at(duration after, std::string what, std::function<void()> action) {
    queue_.push({now_ + after, ++number_, std::move(what), std::move(action)});
  }
  void say(const std::string& what) {
    history_.push_back(
        std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch()).count()) + "us " +
        what);
  }
  duration latency() {
    return duration{static_cast<std::int64_t>(dice_.between(20'000, dice_.once_in(20) ? 300'000'000 : 400'000))};
  }
  bool jobs_are_over() const { return to_submit_ == 0 && running_.empty(); }
  bool calm() const { return now_.time_since_epoch() > turmoil; }
  /// Something goes wrong, unless this one is left out. The dice are thrown either way.
  bool happens(bool hit) {
    if (!hit) return false;
    const auto number = report_.mishaps++;
    if (options_.only_mishaps && !options_.only_mishaps->contains(number)) return false;
    ++report_.mishaps_run;
    return true;
  }
  bool strikes(std::uint64_t n) { return happens(dice_.once_in(n) && !calm()); }

  /// What becomes of output files: simulated_outputs.cpp.
  using output_task = std::pair<stage_id, partition_index>;
  void stage_output(const fake_executor& by, const fake_attempt& a);
  void publish(const effects::staged_attempt& what);
  void use_right(executor_id e, const publication_right& right);
  void put_in_place(stage_id stage, partition_index partition, attempt_number attempt, bool by_right);
  void check_outputs(job_id job);
  bool driver_sees(executor_id e);

  void submit();
  void dispatch(effects::list& out);
  void dispatch(effects::allocation_list& out);
  void converge(const std::vector<executor_order>& wanted);
  void admit(executor_info info);
  /// Its heartbeats go on; until somebody notices, nothing works.
  bool misses_messages(const member& m) const { return m.alive && (m.deaf || m.mute); }
  /// @param ended its process is known to be dead
  void lose(executor_id e, bool lost, bool ended);
  void stop(request_id r);
  void send(const effects::send_orders& what);
  void deliver(executor_id e, const executor_report& report, const std::string& what);
  void beat(executor_id e);
  void work(executor_id e);
  void finish(executor_id e, lease_id lease, std::uint32_t count);
  bool meets(executor_id e, lease_id lease);
  void let_go(executor_id e, const executor_orders& orders);
  fake_end outcome_of(member& m, const fake_attempt& a);
  std::optional<task_failure> missing_input(const fake_executor& reader, const fake_attempt& a);
  /// Kept datasets that somebody needs no longer, or has no room for.
  void drop_some();
  void withdraw(broadcast_id dataset);
  void tick();
  void check_end(const job_end& end);
  void check_rest();
  void empty_queue();

  dice dice_;
  const simulation_options& options_;
  profile_matching matching_;
  dag_scheduler scheduler_;
  profile_registry registry_;
  carving hosts_;
  allocation_policy policy_;
  time_point now_{};
  std::uint64_t number_ = 0;
  std::uint64_t next_executor_ = 1;

  struct event {
    time_point when;
    std::uint64_t number;
    std::string what;
    std::function<void()> action;
    bool operator<(const event& other) const { return std::tie(other.when, other.number) < std::tie(when, number); }
  };
  std::priority_queue<event> queue_;
  std::map<executor_id, std::unique_ptr<member>> members_;
  std::map<request_id, launched> launches_;
  std::map<stage_id, duration> pace_; ///< run time of a stage's tasks
  std::map<stage_id, std::int64_t> accepted_;
  std::map<stage_id, job_id> job_of_; ///< of every stage that there was
  std::set<std::tuple<stage_id, partition_index, attempt_number>> staged_;
  std::set<std::tuple<stage_id, partition_index, attempt_number>> reported_; ///< that have come as successes, in time
  std::set<std::tuple<stage_id, partition_index, attempt_number>> accepted_outputs_; ///< that may be published
  /// Of which nobody knows yet how they were used.
  std::map<output_task, std::pair<attempt_number, executor_id>> open_rights_;
  std::map<output_task, attempt_number> in_place_;
  std::map<std::string, bool> seen_hosts_; ///< hosts with the driver's file system
  std::set<job_id> over_;
  std::set<stage_id> gangs_;
  std::set<stage_id> meeting_; ///< gangs whose tasks wait for each other
  std::set<stage_id> spared_;  ///< stages of which former jobs may have left what they make, and those above them
  std::set<job_id> running_;
  std::uint32_t to_submit_ = 0;
  std::shared_ptr<const job_spec> last_job_;
  std::vector<broadcast_id> datasets_; ///< that jobs keep, one entry each time
  std::vector<std::string> history_;
  simulation_report report_;
};

} // namespace troupe::testing
