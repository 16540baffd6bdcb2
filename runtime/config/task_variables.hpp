#pragma once

/// Names of the variables that Troupe sets for each task of a command, which nobody else can set for it.

#include <algorithm>
#include <array>
#include <string_view>

namespace troupe {

inline constexpr std::array<std::string_view, 16> task_variables{
    "TROUPE_ATTEMPT", "TROUPE_ATTEMPT_NUMBER", "TROUPE_CPUS",      "TROUPE_GANG",
    "TROUPE_INPUT",   "TROUPE_INPUTS",         "TROUPE_JOB",       "TROUPE_MEMORY",
    "TROUPE_OUTPUT",  "TROUPE_OUTPUTS",        "TROUPE_PARTITION", "TROUPE_SESSION",
    "TROUPE_STAGE",   "TROUPE_TASKS",          "TROUPE_EXECUTOR",  "TROUPE_INPUTS_FILE"};
/// The sessions in whose tasks a command runs, with colons between, the outermost first. Each adds itself to what it
/// was started with.
inline constexpr std::string_view sessions_variable = "TROUPE_SESSIONS";
/// Programs with Troupe that have led to this one, each started by the one before.
inline constexpr std::string_view depth_variable = "TROUPE_DEPTH";
/// Whether Troupe sets it, from what is found in it.
inline bool is_variable_of_all(std::string_view name) { return name == sessions_variable || name == depth_variable; }
/// The name of a resource follows.
inline constexpr std::array<std::string_view, 2> task_variable_prefixes{"TROUPE_ADDRESSES_", "TROUPE_AMOUNT_"};

/// What numeric libraries read to know how many threads they may start.
inline constexpr std::array<std::string_view, 5> thread_variables{
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS"};

inline bool is_task_variable(std::string_view name) {
  return std::find(task_variables.begin(), task_variables.end(), name) != task_variables.end() ||
         std::any_of(task_variable_prefixes.begin(), task_variable_prefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

} // namespace troupe
