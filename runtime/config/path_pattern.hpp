#pragma once

/// Patterns of paths, as glob(7) has them: `*`, `?`, `[…]`, `\` before a character that stands for itself; none of them
/// matches a slash, nor a dot at the begin of a name. Pure; any thread.

#include <string>
#include <string_view>

namespace troupe {

/// A pattern that matches `text` alone.
std::string escape_pattern(std::string_view text);

/// Whether some path, or one above it, may match `pattern` and `made` both: `made` is what will exist, and a pattern
/// finds a folder with all that is in it. Both are absolute, without `.` and `..` parts. Where two sets of characters
/// in brackets would have to be compared, the answer is yes.
bool may_find(std::string_view pattern, std::string_view made);

} // namespace troupe
