#pragma once

/// Times and lists as configuration texts. Counts, memory sizes and shares are read by runtime/resources/amount.hpp.

#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Reads a time: a whole number and a unit out of `ns us ms s m min h d` (`m` is minutes), or `0`. A number without a
/// unit, signs, fractions, blanks, leading zeros and more than 100,000 days are errors that repeat the text.
result<duration> parse_time(std::string_view text);

/// The largest unit that divides the time exactly: `90s`, `2min`, `0s`. Parses to the same time.
std::string time_to_string(duration time);

/// Splits at commas. "" is the empty list; an empty element is an error.
result<std::vector<std::string>> parse_list(std::string_view text);

} // namespace troupe
