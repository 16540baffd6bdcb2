#pragma once

#include <string>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// What matches a pattern as glob(7) has them, in any order; nothing where nothing does. Error io, with the path and
/// the reason, where something cannot be looked at that may match: results would lack it. Any thread.
result<std::vector<std::string>> matching_paths(const std::string& pattern);

} // namespace troupe
