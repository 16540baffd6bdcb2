#pragma once

/// The words of a command with its placeholders replaced for one task. Pure.

#include <cstdint>
#include <string>
#include <string_view>
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
  std::string inputs_file = {}; ///< that lists the inputs (inputs_file.hpp); "": the task has none
};

/// Replaces `{input}`, `{output}` (error unless there is exactly one), `{inputs}`, `{inputs-file}` (error where there
/// is none), `{outputs}`, `{partition}` and `{attempt}`. A word that is exactly `{inputs}` or `{outputs}` becomes one
/// word per file; inside a longer word the files are separated by blanks. `{{input}` and its like stand for `{input}`
/// itself; all other braces stay as they are, since programs of many languages are full of them. Error where a name
/// within a text for a shell (`sh -c`) would mean something to it.
result<std::vector<std::string>> replace_placeholders(const std::vector<std::string>& words,
                                                      const placeholder_values& values);

/// Whether a word is the name or the path of a shell.
bool names_shell(const std::vector<std::string>& words);

/// Whether a word asks for the file that lists the inputs: `{inputs-file}` or `TROUPE_INPUTS_FILE`.
bool names_inputs_file(const std::vector<std::string>& words);

/// Whether a word is the variable's name or holds it as a whole, as `$NAME`, `${NAME}` and `os.environ["NAME"]` do.
bool names_variable(const std::vector<std::string>& words, std::string_view name);

} // namespace troupe
