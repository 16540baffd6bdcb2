#pragma once

/// Job files: a DAG of stages of commands, in YAML.
///
///     name: reads
///     group: nightly                    # jobs of one group can be cancelled together; else of none
///     output: out                       # parent of the stages' output directories; `out` beside the file by default
///     max-failures: 4                   # of one task; else troupe.task.max-failures
///     profiles:
///       io: {executor: {cores: 2, memory: 2g}, task: {cpus: 1}}
///     stages:
///       trim:
///         profile: io                   # else the default profile
///         for-each: "data/*.fq"         # one task per file: a pattern, or a list of names and patterns
///         run: [./trim, "{input}", -o, "{output}"]
///         outputs: ["{stem}.out"]       # published as out/trim/<name>
///         environment: {LC_ALL: C}
///       report:
///         after: {trim: all}            # all | one-to-one; a list of names means all
///         indeterminate: true           # run again, its tasks may make something else; else false
///         run: [./merge, "{inputs}"]
///       many: {tasks: 8, run: [./work, "{partition}"]}
///
/// A task starts when its one-to-one parents have made what it reads, and all tasks of the others are done. Where hosts
/// share no file system, the files of one-to-one parents are brought to it.
/// How many tasks: one per file of `for-each`; as many as a `one-to-one` parent has; `tasks`; else one.
/// What is a task's input, in this order: its file; what its one-to-one parents published for it; what all tasks of its
/// other parents published. `{input}` and `{output}` in `run` need exactly one, `{inputs}` and `{outputs}` take any
/// number; `{{input}` stands for the text `{input}`. A name in `outputs` may hold `{stem}` and `{name}` (of the first
/// input that is the task's own, without and with extension) and `{partition}`. Where `outputs` is absent and `run`
/// mentions `{output}`, a task has one output, `{stem}`, or `<stage>-{partition}` where it has no input of its own.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/config/yaml_document.hpp>
#include <troupe/runtime/dag/job_spec.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// The files that match `pattern` (`*`, `?`, `[…]`; a file of that very name wins), relative to the absolute
/// `directory`: absolute paths in byte order, each once. None is no error here.
using path_finder =
    std::function<result<std::vector<std::string>>(const std::string& directory, const std::string& pattern)>;

/// Looks into the file system.
path_finder system_path_finder();

/// Most tasks of one stage of commands, and most bytes of all task arguments of one stage.
inline constexpr std::uint32_t max_command_tasks = 1'000'000;
inline constexpr std::uint64_t max_command_argument_bytes = 256ull << 20;

/// What a job is where its file does not say.
struct job_defaults {
  std::uint32_t max_failures = 4;
  std::string pool{};
  duration stage_timeout = never;
  duration task_timeout = never;
  duration sync_timeout = never; ///< of barrier stages
};

/// As the settings say.
job_defaults job_defaults_of(const settings& s);

/// Reads a job file. `directory` is where the file lies, absolute; relative paths start there. `defaults` count
/// where the file does not say. Errors name file, line, stage, value and the nearest valid name; cycles are spelled
/// out.
result<job_spec> read_job(const yaml_document& document, const std::string& directory, const job_defaults& defaults,
                          const path_finder& find);

/// `load_yaml` and `read_job` with the file's own directory.
result<job_spec> load_job(const std::string& path, const job_defaults& defaults);

} // namespace troupe
