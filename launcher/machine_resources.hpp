#pragma once

#include <map>
#include <string>
#include <vector>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/discovery/device_mask.hpp>
#include <troupe/runtime/resources/capacity.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Custom resources of this machine, out of which executors of local masters are carved.
struct machine_resources {
  std::map<std::string, resource_pool> pools;
  std::vector<std::string> fake;  ///< resources whose addresses are made up
  std::vector<std::string> notes; ///< for the log
};

/// Looks as the settings say: configured addresses, scripts, and for GPUs `troupe.gpu.discovery`. Counted sizes are not
/// looked for: a host has as much of one as an executor of the default profile.
result<machine_resources> resources_of_machine(const settings& s);

/// What CUDA_VISIBLE_DEVICES says in this process.
device_mask inherited_device_mask();

} // namespace troupe
