#pragma once

/// Suggestions for mistyped names. Pure functions.

#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// How many single-letter edits (insert, remove, replace, swap of neighbours) lead from one text to the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that is closest to `word` by edit distance, the first one on a tie; "" when none is close enough to
/// be what was meant. Capitals and underscores are read as kebab-case: `maxFailures` is close to `max-failures`.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean <nearest>?`, or `; valid here: a, b, c` where nothing is near.
std::string spelling_hint(std::string_view word, const std::vector<std::string>& candidates);

/// `a, b, c`.
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

} // namespace troupe
