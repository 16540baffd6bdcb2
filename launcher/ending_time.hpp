#pragma once

#include <troupe/runtime/config/settings.hpp>

namespace troupe {

/// How long a process of a session may take to end before it is killed: its commands have `troupe.task.kill-grace`
/// first, all the rest `troupe.shutdown.grace`.
inline duration ending_time(const settings& s) { return s.get(keys::task_kill_grace) + s.get(keys::shutdown_grace); }

} // namespace troupe
