#include <troupe/actors/common.hpp>

#include <spdlog/sinks/null_sink.h>

namespace troupe {

logger_source silent_loggers() {
  auto sink = std::make_shared<spdlog::sinks::null_sink_mt>();
  return [sink](std::string_view actor) {
    auto log = std::make_shared<spdlog::logger>(std::string{actor}, sink);
    log->set_level(spdlog::level::off);
    return log;
  };
}

actor_hooks logging_hooks(const std::shared_ptr<spdlog::logger>& log, std::uint64_t* surprises) {
  actor_hooks hooks;
  hooks.on_unexpected = [log, surprises](const std::string& what) {
    ++*surprises;
    log->error("unexpected-message types={}", what);
  };
  hooks.on_forged = [log, surprises](const std::string& what) {
    ++*surprises;
    log->warn("stranger-dropped what=\"{}\"", what);
  };
  hooks.on_error = [log](const caf::error& what) { log->warn("unhandled-error code={}", what.code()); };
  hooks.on_exception = [log](const std::string& what) { log->critical("handler-threw what=\"{}\"", what); };
  return hooks;
}

} // namespace troupe
