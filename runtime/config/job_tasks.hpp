#pragma once

/// From a declared stage to its tasks: how many there are, which files they read and what they publish.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/config/job_file.hpp>
#include <troupe/runtime/config/job_stage.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {

struct planned_stage {
  std::string output_directory;         ///< absolute
  std::vector<command_arguments> tasks; ///< inputs of the task's own come first
};

/// Plans the tasks of `stage`, whose `after[i]` is `parents[i]`.
result<planned_stage> plan_stage(std::string_view file, const declared_stage& stage,
                                 const std::vector<const planned_stage*>& parents, const std::string& directory,
                                 const std::string& output_directory, const path_finder& find);

} // namespace troupe
