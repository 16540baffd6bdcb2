#pragma once

/// The file of `troupe cluster up`: hosts, executors to start at once, profiles, settings.
///
///     cluster:
///       hosts:
///         - {name: left, cores: 4, memory: 8g}
///         - {name: right, cores: 4, memory: 8g, resources: {gpu: [0, 1]}}   # addresses, a number of fake
///                                                     # ones, or a size that is counted: gpu-memory: 80g
///       profiles:
///         gpu: {executor: {cores: 1, memory: 1g, resource: {gpu: {amount: 1}}}, task: {cpus: 1}}
///       executors:
///         - {profile: gpu, count: 2}
///       elastic: true          # also start executors for other profiles; false: only those above, and a job that
///                              # none of them satisfies is infeasible at once
///     troupe: {…}
///     caf: {…}

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/profile_yaml.hpp>
#include <troupe/runtime/resources/carving.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Executors that a cluster starts by itself.
struct standing_executors {
  std::string profile_name;
  resource_profile profile; ///< empty: the default profile
  std::uint32_t count = 0;  ///< at least 1
  int line = 0;             ///< of the entry in its file

  bool operator==(const standing_executors&) const = default;
};

/// A cluster of processes on this machine.
struct cluster_description {
  std::vector<carving_host> hosts; ///< at least one; every one valid, names different, all on one machine
  std::vector<named_profile> profiles;
  std::vector<standing_executors> executors;
  bool elastic = true; ///< others than `executors` are started and stopped on demand

  bool operator==(const cluster_description&) const = default;
};

/// Reads the `cluster` section; the settings are read by `settings_builder`. `directory` is where relative paths of the
/// file start. A file without executors that is not elastic could run nothing and is an error.
result<cluster_description> read_cluster(const yaml_document& document, std::string_view directory);

/// Whether the standing executors find room on the hosts all together, placed in the order of the list. Else
/// ec::infeasible at the first entry that does not: what is missing where. `defaults` and `overhead` complete their
/// profiles.
result<void> check_room(const cluster_description& cluster, const resource_profile& defaults,
                        const overhead_rule& overhead, std::string_view file);

/// The hosts of `local-cluster[N,cores,memory]`, without standing executors. `resources` are the machine's own
/// addresses by name: every host lists them, and each is lent once.
cluster_description cluster_of(const local_cluster_master& master,
                               const std::map<std::string, resource_pool>& resources);

} // namespace troupe
