#pragma once

/// What lies in a stage's folder of outputs, and who has made it. Functions of files alone.

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include <troupe/runtime/execution/made_mark.hpp>

namespace troupe {

/// Files below the directory, by the names that outputs have; none of Troupe's own. @returns false where not all can be
/// seen
bool each_output_in(const std::string& output_directory, const std::function<void(std::string name)>& each);

struct recorded_output {
  std::string job;        ///< the name of the one that has made it last
  std::string file;       ///< its job file; "": not known
  std::int64_t ended = 0; ///< in seconds since 1970: what was changed later is not what the record means
};

/// The jobs that the record (output_record.hpp) of the directory tells of; much sooner there than what they have made.
std::vector<recorded_output> recorded_jobs(const std::string& output_directory);

/// Outputs that the record of the directory tells of, by their names.
std::unordered_map<std::string, recorded_output> recorded_outputs(const std::string& output_directory);

struct known_output {
  maker by = maker::nobody; ///< a task, where it is marked (made_mark.hpp) or recorded as it is now
  std::string job;          ///< that has made it, where it is recorded
  std::string file;         ///< of that job, where it is recorded
};

/// Who has made what is at `name`. @param recorded of that directory
known_output who_made(const std::string& output_directory, const std::string& name,
                      const std::unordered_map<std::string, recorded_output>& recorded);

} // namespace troupe
