#pragma once

/// The standard streams of a process that a user has started.

#include <string>

namespace troupe {

/// Opens what was closed before the program began (`<&-`): else a file of the session's would get its number, and be
/// written to. Before anything else is opened.
void open_standard_streams() noexcept;

/// The reason why something that was printed on standard output is lost, as on a full disk; "" where nothing is. A
/// program that ends well with part of its results would have them taken for the whole.
std::string loss_of_output();

} // namespace troupe
