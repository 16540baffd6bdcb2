#pragma once

/// Resource profiles as they stand in job files and cluster files, checked when they are read.
///
///     gpu:
///       executor: {cores: 4, memory: 8g, memory-overhead: 1g, off-heap: 1g, resource: {gpu: {amount: 1}}}
///       task: {cpus: 1, resource: {gpu: {amount: 0.5}}}
///
/// A size, such as `gpu-memory: {amount: 40g}`, is counted and has no addresses.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/config/yaml_document.hpp>
#include <troupe/runtime/resources/resource_profile.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

struct named_profile {
  std::string name;
  resource_profile content; ///< valid; what it leaves out is taken from the default profile later
  int line = 0;

  bool operator==(const named_profile&) const = default;
};

/// Reads the map below `profiles:`. Relative discovery scripts start at `directory`. The name `default` is taken: it
/// stands for the cluster's own profile.
result<std::vector<named_profile>> read_profiles(std::string_view file, std::string_view directory,
                                                 const yaml_node& node);

/// The `profiles` of a job file, of a cluster file, or of a file of their own (`troupe profile check FILE`). Nothing
/// else in the file is looked at. `directory` as above.
result<std::vector<named_profile>> read_profiles(const yaml_document& document, std::string_view directory);

/// The profile of that name. Error at `line`, with the nearest name, where there is none. `default` is an empty one.
result<resource_profile> find_profile(const std::vector<named_profile>& profiles, const std::string& name,
                                      std::string_view file, int line);

/// What is wrong with `name` as the name of a custom resource: a sentence when it is built in, else "".
std::string builtin_resource_hint(std::string_view name);

} // namespace troupe
