#pragma once

/// The clusters that tests of jobs run on.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <troupe/tests/support/test_cluster.hpp>

namespace troupe::system_tests {

struct cluster_shape {
  std::string name;
  std::string master;
  std::int64_t cores_of_host = 0;
  std::uint32_t hosts = 1;
  bool processes = false;

  test_cluster::options options(std::vector<std::string> conf = {}) const {
    return {.master = master, .fake_gpus = 2, .conf = std::move(conf)};
  }
};

inline std::ostream& operator<<(std::ostream& out, const cluster_shape& shape) { return out << shape.master; }

inline const std::vector<cluster_shape>& all_shapes() {
  static const std::vector<cluster_shape> shapes{
      {"in_process", "local[2]", 2, 1, false},
      {"one_host", "local-cluster[1,2,1g]", 2, 1, true},
      {"two_small_hosts", "local-cluster[2,1,1g]", 1, 2, true},
      {"two_hosts", "local-cluster[2,2,2g]", 2, 2, true},
  };
  return shapes;
}

} // namespace troupe::system_tests
