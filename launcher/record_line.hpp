#pragma once

/// A line of the record of what is whose among the outputs of a stage (output_record.hpp).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A time in such a line, `2026-01-31T12:00:00Z`.
std::string time_text(std::int64_t seconds);
/// Of such a text; 0 for any other.
std::int64_t seconds_of(const std::string& text);

/// As somebody has written it. Empty fields: it does not say so.
struct recorded_line {
  std::string run;
  std::string job;
  std::string file; ///< the job file
  std::string ended;
  std::optional<std::vector<std::string>> outputs; ///< none: the line is about a run
};

/// None where it is no line of a record.
std::optional<recorded_line> parse_line(const std::string& text);

} // namespace troupe
