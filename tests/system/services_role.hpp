#pragma once

#include <string>
#include <vector>

namespace troupe::system_tests {

/// A process that runs the allocator and the resource profile manager of a driver elsewhere, and starts executors in
/// processes of its own. ARGUMENTS: the driver's host:port, cluster id, file of the secret, run directory. Ends at
/// SIGTERM.
int play_services(const std::vector<std::string>& arguments);

} // namespace troupe::system_tests
