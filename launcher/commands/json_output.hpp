#pragma once

/// What `--json` prints. Member names are kebab-case; times are nanoseconds, sizes bytes.

#include <nlohmann/json.hpp>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/messages/session.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/scheduling/job_status.hpp>

namespace troupe::commands {

using json_value = nlohmann::ordered_json; ///< members stay in the order in which they were written

json_value json_of(const job_progress& job);
json_value json_of(const executor_status& executor);
json_value json_of(const session_record& session);
json_value json_of(const error& why);

/// Prints a document on standard output. Text that is not UTF-8 is repaired.
void print_json(const json_value& document);

} // namespace troupe::commands
