#include <troupe/launcher/event_log.hpp>

#include <chrono>

#include <spdlog/logger.h>

namespace troupe {

result<std::shared_ptr<events::event_file>> open_event_log(const settings& s, const std::string& session,
                                                           std::shared_ptr<spdlog::logger> log) {
  if (!s.get(keys::event_log_enabled)) return std::shared_ptr<events::event_file>{};
  const std::string key{keys::event_log_directory.name};
  const auto& directory = s.get(keys::event_log_directory);
  if (directory.empty())
    return make_error(ec::invalid_configuration,
                      key + " is not set, and troupe.event-log.enabled is: set it to a directory that exists");
  auto file = events::line_file::create(directory + "/" + session + ".jsonl");
  if (!file)
    return make_error(ec::invalid_configuration, key + " = " + directory + ": " + file.error().message +
                                                     "; it has to be a directory that you may write to");
  events::event_file::options o;
  o.version = TROUPE_VERSION;
  o.session = session;
  o.unix_nanoseconds = unix_nanoseconds_now();
  o.on_trouble = [log = std::move(log)](const std::string& what) { log->error("event-log: {}", what); };
  return std::make_shared<events::event_file>(std::move(*file), std::move(o));
}

std::int64_t unix_nanoseconds_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

} // namespace troupe
