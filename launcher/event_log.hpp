#pragma once

/// The file of a session's events, as the settings ask for it.

#include <memory>
#include <string>

#include <troupe/actors/common.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/events/event_file.hpp>

namespace troupe {

/// Makes `<troupe.event-log.directory>/<session>.jsonl` where `troupe.event-log.enabled` says so; null where it does
/// not. What goes wrong later is logged by `log`. Error invalid_configuration where the file cannot be made.
result<std::shared_ptr<events::event_file>> open_event_log(const settings& s, const std::string& session,
                                                           std::shared_ptr<spdlog::logger> log);

/// Nanoseconds since 1970, now.
std::int64_t unix_nanoseconds_now();

} // namespace troupe
