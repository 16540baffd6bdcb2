#pragma once

/// A stage of a job file as it is written, before its files are looked up.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/config/yaml_document.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

struct declared_dependency {
  std::string stage;
  bool one_to_one = false;
  int line = 0;
};

struct declared_stage {
  std::string name;
  int line = 0;
  std::string profile = "default";
  int profile_line = 0;
  std::vector<declared_dependency> after;
  std::vector<std::string> for_each; ///< names and patterns; empty: none
  int for_each_line = 0;
  std::optional<std::uint32_t> tasks;
  std::vector<std::string> run; ///< not empty
  int run_line = 0;
  std::map<std::string, std::string> environment; ///< `~` and `$NAME` of values are expanded
  std::map<std::string, int> environment_lines;   ///< of its values
  std::vector<std::string> outputs;               ///< templates of names; empty: none are declared
  int outputs_line = 0;
  std::vector<std::string> prefer; ///< locations that its tasks would rather run at; empty: none
  std::optional<duration> timeout;
  std::optional<duration> task_timeout;
  bool barrier = false; ///< its tasks are a gang
  bool indeterminate = false;
  std::optional<duration> sync_timeout;

  /// True when a word of `run` holds `{placeholder}`, and not as `{{placeholder}`.
  bool mentions(std::string_view placeholder) const;
};

/// Reads one child of `stages`. Names of profiles and stages are not looked up yet.
result<declared_stage> read_stage(std::string_view file, const yaml_node& node);

/// Indices of the stages, parents before children, else in the file's order. Errors: a dependency that does not exist,
/// with the nearest name; a cycle, spelled out.
result<std::vector<std::size_t>> order_stages(std::string_view file, const std::vector<declared_stage>& stages);

} // namespace troupe
