#pragma once

/// Writing to descriptors.

#include <string>
#include <string_view>

namespace troupe {

/// Writes all of it, however many calls that takes. @returns 0 or the errno of the call that failed
int write_all(int fd, std::string_view bytes) noexcept;

/// What the system says of an errno, with the cure where the disk is full.
std::string describe_errno(int code);

} // namespace troupe
