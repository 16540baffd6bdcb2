#pragma once

/// Writing to descriptors.

#include <string_view>

namespace troupe {

/// Writes all of it, however many calls that takes. @returns 0 or the errno of the call that failed
int write_all(int fd, std::string_view bytes) noexcept;

} // namespace troupe
