#pragma once

/// A job as its author describes it: profiles, stages, dependencies. Immutable once submitted and shared from then on.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/resources/profile_rules.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/storage_level.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// How a stage depends on an earlier one of the same job.
enum class dependency_kind : std::uint8_t {
  shuffle = 0, ///< every task reads its bucket of every map output of the parent
  all = 1,     ///< the parent must be complete; files or nothing flow
  /// Task i uses what task i of the parent made: the files of a command, or where the parent has one bucket, the
  /// records in it. Both stages have equally many tasks, and unless one of them is a barrier stage, a task starts when
  /// its input exists.
  one_to_one = 2,
};

struct stage_dependency {
  std::uint32_t stage = 0; ///< index in job_spec::stages, smaller than the dependent's own
  dependency_kind kind = dependency_kind::all;

  auto operator<=>(const stage_dependency&) const = default;
};

/// One step of a native stage: an entry of the function table with its explicit captures.
struct operation {
  std::uint32_t function = 0; ///< index in the function table (see execution/function_table.hpp)
  std::string arguments;      ///< encoded captures

  bool operator==(const operation&) const = default;
};

/// Runs functions of the executable that the driver and the executors share.
struct native_program {
  std::string build_id;              ///< of the executable and every library it loads; compared at installation
  std::vector<operation> operations; ///< a task function alone, or source, narrow operations, sink

  bool operator==(const native_program&) const = default;
};

/// Runs any program. Words may hold `{input}`, `{inputs}`, `{output}`, `{outputs}`, `{partition}`, `{attempt}`; a word
/// that is exactly `{inputs}` becomes several words. No shell is involved.
struct command_program {
  std::vector<std::string> words;                 ///< program and arguments; not empty
  std::map<std::string, std::string> environment; ///< added to the executor's own
  std::string directory;                          ///< base of relative programs and outputs: absolute path
  std::string output_directory;                   ///< where outputs are published: absolute path

  bool operator==(const command_program&) const = default;
};

/// One byte string per task, packed: entry i is `data[ends[i-1] .. ends[i])`. No entries: every task gets "".
struct packed_column {
  std::vector<std::uint32_t> ends;
  std::string data;

  bool operator==(const packed_column&) const = default;
  std::size_t size() const noexcept { return ends.size(); }
  bool empty() const noexcept { return ends.empty(); }
  /// Entry `i`, "" where the column has no entries. @pre empty() or i < size()
  std::string_view operator[](std::size_t i) const noexcept {
    if (ends.empty()) return {};
    const auto begin = i == 0 ? 0u : ends[i - 1];
    return std::string_view{data}.substr(begin, ends[i] - begin);
  }
  void push_back(std::string_view entry) {
    data.append(entry);
    ends.push_back(static_cast<std::uint32_t>(data.size()));
  }
  /// True when the ends never fall and the last one is the size of the data.
  bool is_well_formed() const noexcept;
};

/// A dataset of a stage that carries a profile.
struct carried_profile {
  std::uint32_t profile = 0; ///< index in job_spec::profiles
  std::string dataset;       ///< for people

  bool operator==(const carried_profile&) const = default;
};

/// Records that are kept for later jobs.
struct kept_dataset {
  broadcast_id id; ///< names it, and ends with it: one of the program's
  storage_level level = storage_level::memory;

  bool operator==(const kept_dataset&) const = default;
};

struct stage_spec {
  std::string name;                     ///< for people
  std::uint32_t profile = 0;            ///< index in job_spec::profiles
  std::vector<carried_profile> carried; ///< where several meet, all, in data order: `profile` is yet to be found
  /// Where a change of profile has cut it from its one-to-one parent and the session's rules decide whether that may
  /// be: the profiles before the cut and behind it.
  std::vector<carried_profile> cut_from;
  std::uint32_t tasks = 0;                    ///< number of partitions, at least 1
  std::uint32_t buckets = 0;                  ///< shuffle map stage: number of reduce partitions; else 0
  std::vector<stage_dependency> dependencies; ///< in the order in which the program reads its inputs
  std::variant<native_program, command_program> program;
  std::shared_ptr<const packed_column> arguments; ///< per task; null: all empty
  /// Where each task would rather run (see `parse_locations`), or one entry for all of them; null: anywhere.
  std::shared_ptr<const packed_column> locations;
  bool keep_results = true;      ///< results of this stage go to the submitter
  duration timeout = never;      ///< of one attempt of the stage: longer ones fail the job
  duration task_timeout = never; ///< of one attempt of a task: longer ones are ended, and have failed
  /// Its tasks are a gang: they start together, fail together, and can wait for each other (spec BA). Its `locations`
  /// are ignored: a gang takes the slots that are free at the same time.
  bool barrier = false;
  duration sync_timeout = never; ///< from the first task of a gang that waits until all of them do
  /// Its tasks may make something else when they run again: what one-to-one children read is kept until they are
  /// complete.
  bool indeterminate = false;
  /// What its tasks make is kept when it was read, and when the job is over. With one bucket.
  std::optional<kept_dataset> keeps;

  bool is_shuffle_map() const noexcept { return buckets > 0; }
  bool is_native() const noexcept { return program.index() == 0; }
  bool operator==(const stage_spec& other) const;
};

struct job_spec {
  std::string name;
  std::vector<resource_profile> profiles; ///< entry 0 is the default profile: an empty one stands for the cluster's own
  std::vector<stage_spec> stages;         ///< parents before children
  std::uint32_t max_task_failures = 4;    ///< `troupe.task.max-failures`: so many failures of one task fail the job
  profile_change on_profile_change = profile_change::by_matching; ///< where several profiles meet in a stage
  std::string pool;  ///< whose slots its tasks take (`troupe.scheduler.pool`); "": default
  std::string group; ///< jobs of one name can be cancelled together; "": of none

  bool operator==(const job_spec&) const = default;
};

/// Index of this profile in the job, which gets it where it is new. Equal ones from different builds are two, since
/// only the session's rules say whether they are one (spec MG-2).
std::uint32_t add_profile(job_spec& job, const resource_profile& profile);

/// The profiles that meet in stages and that these rules have to merge or to refuse: one entry for each stage that
/// carries several, and under `exact`, which cuts no stage unless it was asked to, one for each cut.
std::vector<std::vector<carried_profile>> meetings_of(const job_spec& job, const profile_rules& rules);

/// Longest time-out of a stage or a task, but for `never`.
inline constexpr duration max_timeout = std::chrono::hours{24 * 1000};
/// Most tasks that a stage may have.
inline constexpr std::uint32_t max_tasks_per_stage = 100'000'000;
/// Most tasks that all stages of a job may have together.
inline constexpr std::uint64_t max_tasks_per_job = max_tasks_per_stage;
/// Longest name of a job, a group of jobs or a stage, in bytes.
inline constexpr std::size_t max_stage_name_size = 1024;
/// Largest argument of one task, in bytes: arguments pass through the driver, data should not.
inline constexpr std::size_t max_argument_size = 16 << 20;
/// Most bytes of captures in one stage, which each of its executors gets.
inline constexpr std::size_t max_captures_size = 64 << 20;
/// Longest word or environment variable of a command: Linux takes none of more than 128 KiB.
inline constexpr std::size_t max_command_text_size = (128 << 10) - 1;

/// Checks what the types cannot say: indices in range, parents before children, task counts, one-to-one counts equal,
/// shuffle parents with buckets equal to the child's task count, argument columns of the right length, at least one
/// stage, a program in each. Profiles are checked by `validate(resource_profile)`. The first fault, naming the stage.
result<void> validate(const job_spec& job);

} // namespace troupe
