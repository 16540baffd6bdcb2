#pragma once

/// What people are told of a command beyond how it has ended: which task it was of, what was probably meant, and what
/// it has left where nobody looks. Functions of words and files alone; any thread.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/dag/job_spec.hpp>

namespace troupe {

/// The input by which people know the task, behind `before`; "" where it has none.
std::string named_by_inputs(const std::vector<std::string>& inputs, std::string_view before = " with input ");

/// A hint for a command that has failed, "" where there is none: it names a file that lies in the folder of its job,
/// and commands start elsewhere; or words as for a shell, and none was asked for.
/// @param directory that it was started in
std::string hint_at_names(const command_program& program, const std::string& directory);

/// A file that was left in the folder of a command, but for what it prints and its outputs; "" where there is none.
std::string file_left_in(const std::string& directory, const std::vector<std::string>& outputs);

/// The same below a folder there that is called as a shell calls the user's own, `~`.
std::string file_left_in_home(const std::string& directory);

} // namespace troupe
