#pragma once

/// The words of a command with its placeholders replaced for one task. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/command_arguments.hpp>

namespace troupe {

/// What placeholders stand for.
struct placeholder_values {
  std::vector<std::string> inputs;  ///< absolute paths
  std::vector<std::string> outputs; ///< absolute paths in the attempt's directory
  partition_index partition = 0;
  attempt_number attempt = 0;
};

/// Replaces `{input}`, `{output}` (error unless there is exactly one), `{inputs}`, `{outputs}`, `{partition}` and
/// `{attempt}`. A word that is exactly `{inputs}` or `{outputs}` becomes one word per file; inside a longer word the
/// files are separated by blanks. `{{input}` and its like stand for `{input}` itself; all other braces stay as they
/// are, since programs of many languages are full of them.
result<std::vector<std::string>> replace_placeholders(const std::vector<std::string>& words,
                                                      const placeholder_values& values);

} // namespace troupe
