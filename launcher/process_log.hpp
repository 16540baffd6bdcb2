#pragma once

#include <memory>
#include <string>

#include <spdlog/sinks/sink.h>

#include <troupe/actors/common.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

/// One rotating log file for all actors of a process, each with its own level (`troupe.log.level.<actor>`).
class process_log {
public:
  /// Logs to `path`; where it cannot be opened, to nowhere. With `warn_on_stderr`, warnings and errors show on standard
  /// error as well.
  process_log(const settings& s, std::string path, bool warn_on_stderr = false);

  /// Loggers by actor; stay valid after this object is gone.
  logger_source loggers() const;
  const std::string& path() const noexcept { return path_; }

private:
  settings settings_;
  std::string path_;
  std::shared_ptr<spdlog::sinks::sink> sink_;
};

} // namespace troupe
