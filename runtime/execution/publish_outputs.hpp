#pragma once

/// Brings a succeeded command's files to where its job wants them.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// Moves `names` (see is_output_name) from the attempt's directory to below `to`, all or none: each is first brought
/// next to its destination under another name, copied where that is another filesystem, then all are renamed, over what
/// earlier attempts have published. Missing directories are made. Error not_found names an output that the command did
/// not make; only regular files count. `unique` tells the attempt from all others.
/// @returns their bytes
result<std::uint64_t> publish_outputs(const std::string& from, const std::string& to,
                                      const std::vector<std::string>& names, const std::string& unique);

} // namespace troupe
