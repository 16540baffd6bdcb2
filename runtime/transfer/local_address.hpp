#pragma once

/// Under which address the peers of this machine reach what listens here.

#include <cstdint>
#include <string>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// `bound` itself, unless that is the address of all interfaces (0.0.0.0 or ::), which means nothing to a peer: then
/// the address with which this machine talks to `host`:`port`, who can reach it there. Sends nothing. Errors:
/// unreachable (no way leads there).
result<std::string> address_to_reach(const std::string& bound, const std::string& host, std::uint16_t port);

/// The name of this machine.
std::string this_host();

} // namespace troupe
