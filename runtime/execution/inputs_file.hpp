#pragma once

/// The inputs of a command's task as a file, for lists that are longer than arguments or a variable may be.

#include <string>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// Writes the paths, one a line. What lies at `file` is replaced. Any thread.
result<void> write_inputs_file(const std::string& file, const std::vector<std::string>& inputs);

} // namespace troupe
