#pragma once

/// What `--json` prints. Member names are kebab-case; times are nanoseconds, sizes bytes.

#include <nlohmann/json.hpp>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/messages/session.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe::commands {

nlohmann::ordered_json json_of(const job_progress& job);
nlohmann::ordered_json json_of(const executor_status& executor);
nlohmann::ordered_json json_of(const session_record& session);

/// Prints a document on standard output. Text that is not UTF-8 is repaired.
void print_json(const nlohmann::ordered_json& document);

} // namespace troupe::commands
