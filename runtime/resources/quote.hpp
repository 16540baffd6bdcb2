#pragma once

/// Texts of strangers in error messages. Any thread.

#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::detail {

/// `text` between double quotes, fit for one line of a message whatever it holds: at most so many bytes of it (then
/// `…`), and bytes outside printable ASCII as `\xNN`.
std::string quote(std::string_view text, std::size_t most = 80);

} // namespace troupe::detail
