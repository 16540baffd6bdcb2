#pragma once

/// What the environment says of the task that this process may run in, and of variables that its own tasks will not
/// see.

#include <string>

namespace troupe {

/// A warning where this process runs in a task of this session, or in one of a session that such a task has started: a
/// job that it submits there waits for what the task holds. "" otherwise.
std::string waits_for_its_own_task(const std::string& session_id);

/// A warning that names the variables of the user's to which Troupe gives another value in each task. "" where there
/// are none, and within a task, where they are Troupe's own.
std::string replaced_variables();

} // namespace troupe
