#pragma once

#include <string>

namespace troupe {

/// Names the build of this process: the executable and every library that it has loaded. Two processes with equal names
/// have equal function tables and code. Made from the linker's build ids (from the file's content where one has none);
/// computed once. Any thread.
const std::string& build_id();

} // namespace troupe
