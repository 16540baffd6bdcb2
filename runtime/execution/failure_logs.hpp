#pragma once

/// What failed attempts of commands have printed, kept where their user finds it when all is over: in Troupe's own
/// folder beside those of the stages, where who compares or copies a stage's outputs does not find it, as
///
///     PARENT/.troupe/logs/SESSION-JOB/STAGE.PARTITION.ATTEMPT.err     and .out
///     PARENT/.troupe/logs/SESSION-JOB/why.txt                         of each attempt that failed, and of executors
///
/// (`logs-UID` where another user has made that, and below the stage's own folder where PARENT cannot be written to).
/// Only this user can read them. Nothing depends on them: where they cannot be kept, the attempt fails as it would
/// have, and says so.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// How much of it is kept beside the folders of one job's stages.
struct log_limits {
  duration age = std::chrono::days{14}; ///< since it was printed; 0: none is kept
  std::uint64_t bytes = 1ull << 30;     ///< of all jobs; the oldest goes first
};

/// Paths of what one attempt has printed; "" where that is nothing, or is not kept.
struct kept_logs {
  std::string out;
  std::string err;
  std::string fault; ///< where and why one of them or both could not be kept; "" where nothing is missing
};

/// Any thread.
class failure_logs {
public:
  /// Seconds since 1970.
  using clock = std::function<std::int64_t()>;
  static std::int64_t system_seconds();

  /// @param session may be part of a file's name
  failure_logs(std::string session, log_limits limits, clock now = system_seconds);

  /// Keeps the files `stdout` and `stderr` of an attempt's directory, which stay there, too, and removes what exceeds
  /// the limits. @pre the command has ended
  kept_logs keep(const std::string& output_directory, job_id job, const std::string& attempt,
                 const std::string& attempt_directory);
  /// Keeps a text about the whole job there, in place of an earlier one. @returns its path; "" where it is not kept
  std::string keep_report(const std::string& output_directory, job_id job, std::string_view text);
  /// Removes what exceeds the limits, when it is called for this directory for the first time.
  void tidy_once(const std::string& output_directory);

private:
  /// What was kept in a directory since it was last tidied.
  struct tally {
    std::uint64_t bytes = 0;
    std::size_t files = 0;
  };
  std::string folder_of(job_id job) const;
  template <class Keep>
  static int keep_in(const std::filesystem::path& logs, const std::filesystem::path& folder, Keep keep);
  int keep_one(const std::string& from, const std::string& to, std::string& kept);
  void tidy(const std::string& logs);

  const std::string session_;
  const log_limits limits_;
  const clock now_;
  std::mutex mutex_;
  std::map<std::string, tally> kept_; ///< by folder of logs
};

} // namespace troupe
