#pragma once

/// Writing to descriptors.

#include <string>
#include <string_view>

namespace troupe {

/// Writes all of it, however many calls that takes. @returns 0 or the errno of the call that failed
int write_all(int fd, std::string_view bytes) noexcept;

/// Puts small pieces together on their way to a descriptor, which it does not own. One thread.
class piece_writer {
public:
  /// @returns 0 or the errno of the call that failed, as all of these
  int append(int fd, std::string_view piece);
  int flush(int fd);

private:
  std::string waiting_;
};

/// What the system says of an errno, with the cure where the disk is full.
std::string describe_errno(int code);

} // namespace troupe
