#pragma once

/// Hosts of a network of their own on this machine: network namespaces on a switch that is one as well, so that nothing
/// of the machine's own network changes. Needs root and iproute2; files, processes and users are shared with this
/// machine.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::testing {

class test_network {
public:
  /// Whether namespaces can be made here; where not, `why` says what is missing.
  static bool is_possible(std::string& why);

  /// Makes `hosts` hosts. Throws std::runtime_error with what the system said.
  explicit test_network(std::size_t hosts);
  /// Removes them. Processes that still run in one keep it alive until they end.
  ~test_network();
  test_network(const test_network&) = delete;
  test_network& operator=(const test_network&) = delete;

  /// Address of host `i`, from 0; every host reaches every other one.
  std::string address(std::size_t i) const;
  /// Words to put before a command that is to run on host `i`.
  std::vector<std::string> on(std::size_t i) const;
  /// Bytes that host `i` has sent to others so far, and got from them, headers included.
  struct traffic {
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
  };
  traffic traffic_of(std::size_t i) const;
  /// Cuts host `i` off: its packets vanish and no connection is closed. `heal` undoes it.
  void cut(std::size_t i) const;
  void heal(std::size_t i) const;

private:
  std::string host(std::size_t i) const;
  std::string switch_name() const;

  std::string tag_;
  std::vector<std::string> made_;
};

} // namespace troupe::testing
