#pragma once

/// Events as lines of JSON, for files that other programs read. Where Spark has the event, its name and its members
/// are Spark's: a stage, job or executor looks as in Spark's event log, and an exclusion as Spark's own JSON library
/// writes it (the full name of the class, camelCase). What only Troupe has is called `Troupe…`, its members are written
/// like Spark's. Every line has besides
///
///     "Event"            what has happened; always the first member
///     "Number"           of the event, from 1
///     "Timestamp"        milliseconds since 1970, as Spark's
///     "Unix Nanoseconds" the same moment
///
/// A profile's memory is in MiB, rounded up, as Spark has it, with "Bytes" beside it; other sizes are bytes. Members
/// that end in "Nanoseconds" are durations.

#include <cstdint>
#include <string>
#include <string_view>

#include <troupe/runtime/events/event.hpp>

namespace troupe::events {

/// One event, without the line feed; it has none inside. Text that is not UTF-8 is repaired: U+FFFD stands for each
/// byte that is none.
std::string to_json(const record& event);

/// The first line of a file (`TroupeLogStart`): who writes it.
std::string log_start_to_json(std::string_view version, std::string_view session, std::int64_t unix_nanoseconds);

/// Stands where the events `first` to `last` are missing (`TroupeEventsMissing`).
std::string missing_to_json(std::uint64_t first, std::uint64_t last, std::int64_t unix_nanoseconds);

} // namespace troupe::events
