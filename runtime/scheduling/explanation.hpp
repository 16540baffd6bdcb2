#pragma once

/// Why a job, its stages and their task sets wait, and what has failed: what `troupe explain` prints. Plain values,
/// made by the dag scheduler out of what placement evaluates (see `hindrance`, `shortfalls`).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/scheduling/failure_notes.hpp>
#include <troupe/runtime/scheduling/hindrance.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe {

/// One condition of a profile, alone.
struct explained_clause {
  std::string clause;             ///< `gpu 1`
  std::uint32_t satisfied_by = 0; ///< executors
  bool operator==(const explained_clause&) const = default;
};

/// How many executors get no task now, by the first reason that holds.
struct explained_hindrance {
  hindrance what = hindrance::none;
  std::uint32_t executors = 0;
  std::string detail; ///< of the first of them, or of all; "": there is nothing to add
  bool operator==(const explained_hindrance&) const = default;
};

/// Who has the slots.
struct explained_holder {
  job_id job; ///< 0: of jobs that have ended
  std::uint32_t stage = 0;
  std::string name; ///< of the stage
  std::uint32_t leases = 0;
  bool operator==(const explained_holder&) const = default;
};

/// The executor that comes nearest, where none fits.
struct explained_nearest {
  executor_id executor;
  std::string host;
  std::vector<std::string> lacks; ///< `needs gpu 1, has 0`
  bool operator==(const explained_nearest&) const = default;
};

/// Something that happens after a time.
struct explained_wait {
  std::string what;
  std::string key;               ///< the setting that says how long
  std::int64_t nanoseconds = -1; ///< left; below 0: for ever
  bool operator==(const explained_wait&) const = default;
};

/// A profile that the tasks may run as: their own, or an alternative.
struct explained_choice {
  profile_id profile;
  std::string content;
  bool asked_for = true;       ///< executors are, where none is free; else only what is free is taken
  std::uint32_t executors = 0; ///< that are there, whatever they are
  std::uint32_t fit = 0;       ///< of them
  std::int64_t slots = 0;      ///< of those that fit, were they empty
  std::int64_t free_slots = 0; ///< now
  std::vector<explained_clause> clauses;
  std::vector<explained_hindrance> hindrances;
  std::optional<explained_nearest> nearest;
  std::vector<explained_holder> holders; ///< of slots of executors that fit; most leases first
  std::string allocation;                ///< what the allocator was asked for, and what it answered
  std::string edit;                      ///< what would help; "": to wait
  bool operator==(const explained_choice&) const = default;
};

/// Tasks of a stage that wait under the same conditions.
struct explained_task_set {
  std::string conditions; ///< `alone`, `with more memory`; "": those of the stage
  std::uint32_t pending = 0;
  std::string reason; ///< in one sentence
  std::vector<explained_wait> waits;
  std::vector<explained_choice> choices; ///< in order of preference
  bool operator==(const explained_task_set&) const = default;
};

struct explained_stage {
  stage_id stage;
  std::uint32_t index = 0; ///< in its job
  std::string name;
  stage_state state = stage_state::waiting;
  std::uint32_t tasks = 0;
  std::uint32_t pending = 0;
  std::uint32_t running = 0;
  std::uint32_t done = 0;
  std::string reason;                        ///< why it does not run; "" where it does
  std::vector<explained_task_set> task_sets; ///< that wait
  bool operator==(const explained_stage&) const = default;
};

struct job_explanation {
  job_id job;
  std::string name;
  job_state state = job_state::accepted;
  std::string reason; ///< why it does not run, or why it has failed; "" where there is nothing to say
  std::vector<explained_stage> stages;
  std::vector<explained_failure> failures; ///< so far, the first and the last ones
  std::uint64_t failures_left_out = 0;     ///< between those
  bool operator==(const job_explanation&) const = default;
};

/// For people: a few lines for each stage that waits. Texts may hold any bytes (see `printable` of the launcher).
std::string to_text(const job_explanation& all);
/// Of that the part about failed attempts and lost executors; "" where there are none.
std::string failures_to_text(const job_explanation& all);

} // namespace troupe
