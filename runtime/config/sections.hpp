#pragma once

/// The fields of the sections `node` and `cluster` of configuration files: what their readers know, and what
/// docs/reference-keys.md says of them.

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include <troupe/runtime/config/yaml_document.hpp>

namespace troupe {

struct section_field {
  std::string_view name;
  bool required;
  std::string_view values;  ///< that it may have, for people
  std::string_view meaning; ///< for people
};

inline constexpr std::array node_fields{
    section_field{"role", true, "driver or executor", "Which part this process plays."},
    section_field{"driver", false, "HOST:PORT or troupe://HOST:PORT",
                  "Address of the driver; needed by an executor, refused for a driver, which listens on "
                  "`troupe.driver.bind-address` and `troupe.driver.port`."},
};

inline constexpr std::array cluster_fields{
    section_field{"hosts", true, "a list of hosts", "The room that the cluster has, all of it on this machine."},
    section_field{"profiles", false, "a map of names to profiles, as in job files", "Profiles of standing executors."},
    section_field{"executors", false, "a list of standing executors", "Executors that are started at once and stay."},
    section_field{"elastic", false, "true or false; otherwise true",
                  "Whether other executors are started and stopped on demand; without them, what the standing ones "
                  "cannot run is infeasible at once."},
};

inline constexpr std::array cluster_host_fields{
    section_field{"name", true, "a text, once in the file", "Name of the host."},
    section_field{"cores", true, "a whole number", "Cores that executors on it have together."},
    section_field{"memory", true, "a memory size", "Memory that executors on it have together."},
    section_field{"resources", false, "a map of names to lists of addresses, numbers of made-up ones, or sizes",
                  "Other resources, such as `gpu: [0, 1]`, `gpu: 2` or `gpu-memory: 80g`."},
};

inline constexpr std::array cluster_executor_fields{
    section_field{"profile", true, "a name out of cluster.profiles, or default", "What each of them has."},
    section_field{"count", false, "a whole number from 1 to 10000; otherwise 1", "How many of them."},
};

/// Error unless the node is a map whose keys are all among those of the section.
template <std::size_t N>
result<void> check_fields(std::string_view file, const yaml_node& node, std::string_view what,
                          const std::array<section_field, N>& fields) {
  std::array<std::string_view, N> names;
  std::transform(fields.begin(), fields.end(), names.begin(), [](const section_field& f) { return f.name; });
  return check_fields(file, node, what, std::span<const std::string_view>{names});
}

} // namespace troupe
