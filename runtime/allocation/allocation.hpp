#pragma once

/// What the dag scheduler tells the allocator, and what the allocator tells its backend: totals, never deltas, so a
/// missed message heals at the next one (spec DA; DESIGN section 6).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/scheduling/executor_exit.hpp>

namespace troupe {

/// The executor half of a profile, interned by content: what executors are asked for by.
struct executor_shape {
  shape_id shape;
  resource_profile profile; ///< complete; of equal executor halves the first one registered

  bool operator==(const executor_shape&) const = default;
};

/// Demand of one shape.
struct shape_load {
  shape_id shape;
  std::uint32_t waiting_tasks = 0;    ///< that no running executor has room for now
  std::uint32_t executors_wanted = 0; ///< so many beyond the admitted ones would run all waiting tasks at once
  bool satisfied_by_none = false;     ///< no admitted executor satisfies a waiting profile of this shape

  auto operator<=>(const shape_load&) const = default;
};

/// An executor on which nothing runs or is queued.
struct idle_executor {
  executor_id executor;
  request_id request; ///< none: started by hand
  std::uint64_t idle_nanoseconds = 0;
  bool serving = false;  ///< holds output that an unfinished job needs: may be parked, not stopped
  bool draining = false; ///< consent was given: it gets no more tasks
  bool keeping = false;  ///< has partitions of kept datasets, which would have to be computed again

  auto operator<=>(const idle_executor&) const = default;
};

/// Sent on change and at most once per tick otherwise.
struct load_report {
  std::uint64_t number = 0;
  std::vector<executor_shape> new_shapes; ///< first mention of each shape
  std::vector<shape_load> loads;          ///< all shapes with demand; one that is absent has none
  std::vector<idle_executor> idle;        ///< all idle executors
  std::vector<request_id> present;        ///< requests whose executor is admitted

  bool operator==(const load_report&) const = default;
};

/// One executor that the backend is to have running.
struct executor_order {
  request_id request;
  executor_shape shape;
  bool parked = false; ///< kept only for output it still serves: takes no room any more
  bool fixed = false;  ///< stands in the cluster file, which names contents: is there for all profiles of such content

  /// The shape that its executor registers as (spec EX-1, MP-8); none where it is there for equal contents.
  shape_id identity() const noexcept { return fixed ? shape_id{} : shape.shape; }
  bool operator==(const executor_order&) const = default;
};

/// What the backend sees of one requested executor.
enum class launch_state : std::uint8_t { starting = 0, running = 1, gone = 2, refused = 3 };
struct launch_status {
  request_id request;
  shape_id shape;
  launch_state state = launch_state::starting;
  std::string detail;      ///< why it is gone or refused: exit code, signal, missing room
  executor_exit exit = {}; ///< where it is gone

  bool operator==(const launch_status&) const = default;
};

/// Whether others that are started in the same way end so, too: by itself, with the exit code of a wrong configuration.
inline bool is_certain(const launch_status& s) noexcept {
  return s.exit.cause == exit_cause::exit_code && s.exit.exit_code == exit_code_of(ec::invalid_configuration);
}

/// Why executors that are wanted were not asked for. Numbers are wire format.
enum class allocation_obstacle : std::uint8_t {
  none = 0,
  only_fixed = 1,  ///< the cluster file lists all that there ever are
  not_dynamic = 2, ///< there is one that fits, and more are started by nobody (troupe.dynamic-allocation.enabled)
  pause = 3,       ///< the last ones failed: they are asked for again in a moment
  limit = 4,       ///< troupe.dynamic-allocation.max-executors
  room = 5,        ///< there is no room; what is idle makes way
};

/// What has become of the demand of one shape.
struct shape_status {
  shape_id shape;
  std::uint32_t starting = 0; ///< executors that were asked for and are not there yet
  std::uint32_t missing = 0;  ///< that are wanted and were not asked for
  allocation_obstacle why = allocation_obstacle::none;

  auto operator<=>(const shape_status&) const = default;
};

/// Can an executor of this shape ever exist here?
struct feasibility {
  bool feasible = true;
  bool fixed = false;               ///< the answer cannot change: the cluster does not grow
  std::string sentence;             ///< which amount is missing where, when not feasible
  std::uint32_t most = 0xffff'ffff; ///< executors of this shape, where nothing else runs; as far as is known

  bool operator==(const feasibility&) const = default;
};

/// Executors that find no room, and who could go for them.
struct way_question {
  executor_shape shape;
  std::uint32_t count = 0;         ///< so many of it are wanted
  std::vector<request_id> leaving; ///< these go in any case: their room is on its way
  std::vector<request_id> may_go;  ///< each once, none of `leaving`; who comes first would rather go

  bool operator==(const way_question&) const = default;
};

/// Who has to go for them.
struct way_answer {
  std::vector<request_id> going; ///< of `may_go`; nobody goes for what finds no room even then
  std::uint32_t placed = 0;      ///< so many of those that are wanted find room when these and `leaving` have gone

  bool operator==(const way_answer&) const = default;
};

/// Starts and stops executors: the one seam between the allocator and a cluster. Called from the allocator actor;
/// implementations do not block and report through `snapshot`.
class executor_backend {
public:
  virtual ~executor_backend() = default;
  /// Starts what is new in `wanted` and stops what is no longer in it. Idempotent.
  virtual void converge(const std::vector<executor_order>& wanted) = 0;
  /// What exists of everything ever wanted and not yet reported as gone or refused.
  virtual std::vector<launch_status> snapshot() = 0;
  virtual feasibility check(const executor_shape& shape) = 0;
  /// How many more executors of this shape there is room for now.
  virtual std::uint32_t room_for(const executor_shape& shape) = 0;
  /// Who has to go so that as many as possible of those that are wanted find room; nothing where the backend knows no
  /// hosts: then one goes for each that is wanted.
  virtual std::optional<way_answer> who_makes_way(const way_question&) { return std::nullopt; }
};

} // namespace troupe
