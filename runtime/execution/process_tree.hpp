#pragma once

/// Ends what a command has left behind.

#include <cstddef>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace troupe {

/// Name of the variable by which an attempt's processes are known, wherever they have gone.
inline constexpr std::string_view attempt_variable = "TROUPE_ATTEMPT";

/// Kills every process that `main` left behind: members of its session or group, and processes whose environment holds
/// `TROUPE_ATTEMPT=attempt`; those that these leave behind in turn as well. Where this process is a child subreaper
/// they are its own children by now (or become so one after another) and only those are looked at; elsewhere all
/// processes of this user are. Also reaps adopted children that have ended. Any thread; `main` has ended and is not
/// reaped yet. `alone`: no other command of this process runs or starts meanwhile, so that an adopted child with a
/// session of its own and without any mark can only be what a command has left, and is killed too.
/// @returns how many it killed
std::size_t end_left_behind(pid_t main, std::string_view attempt, bool alone);

/// The processes that `end_left_behind` would kill, as far as they are seen at the moment.
std::vector<pid_t> left_behind(pid_t main, std::string_view attempt, bool alone);

/// `main` and its descendants that run at this moment, as far as they have not left their parents. Any thread.
std::vector<pid_t> tree_of(pid_t main);

/// Kills all descendants of this process, a child subreaper, until none is left, or none that it may and can kill (one
/// that runs as another user, or hangs in the kernel). Single-threaded callers only: it takes the end of every child.
void end_all_descendants();

} // namespace troupe
