#pragma once

/// The answer of a discovery script: Spark's JSON, `{"name": "gpu", "addresses": ["0", "1"]}`. Any thread.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// A resource and where it is.
struct resource_information {
  std::string name;
  std::vector<std::string> addresses; ///< in the order of the text; unique

  bool operator==(const resource_information&) const = default;
};

/// More addresses in one answer are an error.
inline constexpr std::size_t max_discovered_addresses = 4096;

/// Reads one JSON object. `name` must be there, `addresses` may be missing (none); keys that are not known do not
/// count. Malformed text (also: nesting deeper than 16, text that is not UTF-8, repeated keys or addresses, addresses
/// that are not strings or not well formed, more than `max_discovered_addresses`) is ec::malformed; the message repeats
/// the beginning of the text, says what is wrong, and shows a correct example.
result<resource_information> parse_resource_json(std::string_view text);

} // namespace troupe
