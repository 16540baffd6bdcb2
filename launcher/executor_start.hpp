#pragma once

/// What an executor process is told by who starts it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/execution/process_limits.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/reports.hpp>

namespace troupe {

/// Everything that an executor process needs to know but its settings.
struct executor_start {
  endpoint driver;
  std::string cluster_id;
  std::string secret_file;
  std::string run_directory;                  ///< of the session, to join
  std::vector<std::string> local_directories; ///< of the session, to join; none: the run directory is it
  executor_info info;                         ///< profile, capacity with addresses, request, host
  process_limits limits;                      ///< of the process
  bool shuffle_service = false;               ///< it only keeps what others leave
  std::uint32_t command_processes = 0;        ///< most processes and threads of one command; 0: no limit
};

/// With the settings that the executor is to have.
struct executor_document {
  executor_start start;
  settings effective;
};

/// As a text of lines, the settings as YAML at its end.
result<std::string> encode_executor_start(const executor_start& start, const settings& s);
/// Reads what `encode_executor_start` wrote; relative paths in settings start in the current folder. Error: malformed,
/// or that of a setting.
result<executor_document> decode_executor_start(std::string_view text);

} // namespace troupe
