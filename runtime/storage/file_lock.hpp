#pragma once

#include <chrono>

namespace troupe {

/// Locks an open file for this process alone, and waits for others that hold it, but not for longer than this. The lock
/// goes with the last descriptor of the opening. @returns false where another still holds it. Where the file system has
/// no locks it counts as held
bool lock_within(int fd, std::chrono::milliseconds patience);

} // namespace troupe
