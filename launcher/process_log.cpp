#include <troupe/launcher/process_log.hpp>

#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace troupe {

process_log::process_log(const settings& s, std::string path, bool warn_on_stderr)
  : settings_(s), path_(std::move(path)) {
  try {
    sink_ = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
        path_, static_cast<std::size_t>(s.get(keys::log_file_size)), static_cast<std::size_t>(s.get(keys::log_files)));
  } catch (const spdlog::spdlog_ex&) {
    // A full disk must not keep a job from running.
    sink_ = std::make_shared<spdlog::sinks::null_sink_mt>();
  }
  if (warn_on_stderr) {
    auto echo = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    echo->set_level(spdlog::level::warn);
    sink_ = std::make_shared<spdlog::sinks::dist_sink_mt>(std::vector<spdlog::sink_ptr>{sink_, std::move(echo)});
  }
  sink_->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %n %v");
}

logger_source process_log::loggers() const {
  return [sink = sink_, level = settings_.get(keys::log_level),
          levels = settings_.get(keys::log_level_of)](std::string_view actor) {
    auto log = std::make_shared<spdlog::logger>(std::string{actor}, sink);
    const auto own = levels.find(std::string{actor});
    log->set_level(spdlog::level::from_str(own == levels.end() ? level : own->second));
    log->flush_on(spdlog::level::info);
    return log;
  };
}

} // namespace troupe
