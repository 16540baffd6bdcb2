#pragma once

/// Decides how many executors of each shape there should be: started where tasks wait, stopped when idle, replaced when
/// a fixed one is gone. It states totals; what exists is learned from load reports and backend snapshots, so a missed
/// message heals at the next one. Fed with the time, appends effects, calls nobody.
/// Owner: the allocator actor, a test, or the simulator. Not thread-safe.
/// A request: starting -> present -> parked -> dropped; any -> dropped.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <troupe/runtime/allocation/allocation.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

namespace effects {
/// Make what the backend runs equal to this list.
struct converge {
  std::vector<executor_order> wanted;
  bool operator==(const converge&) const = default;
};
/// Ask the dag scheduler for leave to stop or park an executor.
struct ask_release {
  executor_id executor;
  bool operator==(const ask_release&) const = default;
};
/// Tell the dag scheduler that an executor it may be waiting for will not come.
struct report_launch_failure {
  launch_status status;
  bool operator==(const report_launch_failure&) const = default;
};
/// Tell the dag scheduler what has become of its demand: all of it, where that is not what it was told last.
struct report_shapes {
  std::vector<shape_status> shapes;
  bool operator==(const report_shapes&) const = default;
};
/// Add to the history that an executor was asked for.
struct announce_request {
  request_id request;
  executor_shape shape;
  bool operator==(const announce_request&) const = default;
};
using any_allocation = std::variant<converge, ask_release, report_launch_failure, announce_request, report_shapes>;
using allocation_list = std::vector<any_allocation>;
} // namespace effects

class allocation_policy {
public:
  /// So many executors of one shape that are always there.
  struct fixed_executors {
    executor_shape shape;
    std::uint32_t count = 0;
  };
  struct options {
    bool dynamic = true; ///< grow with waiting tasks, stop what is idle; false: only what nothing satisfies is started
    duration idle_timeout = std::chrono::seconds{60};
    duration keeping_idle_timeout = never;              ///< of those that have partitions of kept datasets
    duration launch_timeout = std::chrono::seconds{30}; ///< from request to admission
    duration retry_pause = std::chrono::seconds{1};     ///< after a failed launch of a shape; doubles up to 32 times
    bool outputs_outlive = false; ///< what an executor serves is kept when it goes, so it may go although it serves
    duration answer_timeout = std::chrono::seconds{10}; ///< a release request without an answer is made again
    std::uint32_t max_executors = 10'000;
    std::vector<fixed_executors> fixed;
    bool only_fixed = false;     ///< no others are ever started, nor do these make way
    bool exact_matching = false; ///< `only_fixed`: the scheduler matches profiles exactly
  };
  /// How many more executors of a shape there is room for, once the effects appended so far have been carried out;
  /// answered by the backend.
  using room_function = std::function<std::uint32_t(const executor_shape&)>;
  /// Who has to go for others, in the same way: see `executor_backend::who_makes_way`.
  using way_function = std::function<std::optional<way_answer>(const way_question&)>;

  explicit allocation_policy(options opts);

  /// Asks for the fixed executors. Once, at the start.
  void on_start(time_point now, const room_function& room, effects::allocation_list& out);
  /// A report that is not newer than the last one is ignored.
  void on_load(const load_report& report, time_point now, const room_function& room, const way_function& way,
               effects::allocation_list& out);
  /// What the backend sees. @pre every request was wanted once
  void on_snapshot(const std::vector<launch_status>& statuses, time_point now, effects::allocation_list& out);
  void on_release_answer(executor_id executor, bool granted, bool serving, effects::allocation_list& out);

  /// Can an executor that satisfies this shape ever be started here? `of_backend` is what the backend says.
  feasibility check(const executor_shape& shape, const std::function<feasibility()>& of_backend) const;

  std::size_t requests() const noexcept { return requests_.size(); }
  /// All executors that should exist now.
  std::vector<executor_order> wanted() const;

private:
  enum class request_state : std::uint8_t { starting, present, parked };
  struct request {
    shape_id shape;
    request_state state = request_state::starting;
    time_point since{};
    bool fixed = false;
  };
  struct shape_record {
    executor_shape shape;
    std::uint32_t fixed = 0;
    std::uint32_t failures = 0; ///< launches in a row that failed
    time_point not_before{};    ///< of the next launch
  };

  using request_map = std::map<request_id, request>;

  void start(shape_record& shape, std::uint32_t count, bool fixed, time_point now, effects::allocation_list& out);
  void read_present(const load_report& report, effects::allocation_list& out);
  std::vector<idle_executor> read_idle(const load_report& report, time_point now, effects::allocation_list& out);
  void ask_release(const idle_executor& idle, time_point now, effects::allocation_list& out);
  void make_way(const shape_load& load, std::uint32_t short_of, std::uint32_t beyond_limit,
                std::vector<idle_executor>& reclaimable, time_point now, const way_function& way,
                effects::allocation_list& out);
  request_map::iterator drop(request_map::iterator it);
  void launch_failed(request_id id, launch_status status, time_point now, effects::allocation_list& out);
  std::uint32_t count(shape_id shape, request_state state, std::optional<bool> fixed = {}) const;
  std::uint32_t live() const;

  options options_;
  std::map<shape_id, shape_record> shapes_;
  request_map requests_;
  std::set<request_id> leaving_; ///< not wanted any more; the backend may still see them and their room is not free yet
  struct asked_release {
    request_id request;
    time_point since{};
  };
  std::map<executor_id, asked_release> asked_; ///< release requests without an answer
  std::vector<shape_status> told_;             ///< to the dag scheduler
  std::uint64_t next_request_ = 1;
  std::uint64_t last_report_ = 0;
};

} // namespace troupe
