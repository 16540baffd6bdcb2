#pragma once

/// File systems that keep their files in memory: what a command writes there takes memory as much as what it allocates.

#include <cstdint>
#include <string>

namespace troupe {

/// Whether `path`, or what there is of it, is in a file system that takes memory. Any thread.
bool lies_in_memory(const std::string& path);

/// Bytes that files below `directory` take, each once whatever number of names it has. Links are not followed, and what
/// goes meanwhile or cannot be looked at is left out. Any thread.
std::uint64_t bytes_taken_below(const std::string& directory);

} // namespace troupe
