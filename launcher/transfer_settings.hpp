#pragma once

/// How the settings say that blocks move.

#include <cstdint>
#include <string>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/transfer/block_client.hpp>
#include <troupe/runtime/transfer/block_server.hpp>

namespace troupe {

/// For a process that reads blocks. `sockets` is the directory in which the processes of the cluster on this machine
/// have their sockets (see host_directory); "": it is not to talk to them so.
block_client::options reading_options(const settings& s, const std::string& cluster_id, const std::string& sockets);

/// For the block server of an executor with this incarnation.
block_server::options serving_options(const settings& s, const std::string& cluster_id, const std::string& sockets,
                                      incarnation epoch);

/// From which size on block sets in memory are kept so that other processes of this machine can be given them.
std::uint64_t shared_from(const settings& s);

} // namespace troupe
