#pragma once

/// From what the user typed to a connection with a running driver.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/launcher/application.hpp>
#include <troupe/launcher/commands/commands.hpp>
#include <troupe/launcher/session_registry.hpp>
#include <troupe/messages/session.hpp>

namespace troupe::commands {

/// Where a command finds its driver.
struct chosen_cluster {
  settings effective;                   ///< `troupe.master` is the driver's address
  std::optional<session_record> record; ///< of a driver that this user runs on this machine
};

/// The cluster that is named, else the driver that `troupe.master` names, else the only one that this user runs here.
result<chosen_cluster> choose_cluster(const cluster_flags& flags);

/// The same for a question about a job, whose cluster may be no more: the error says what is left of it then.
result<chosen_cluster> choose_cluster_of_job(const cluster_flags& flags);

/// Connects as a client whose log is called `name`.
result<std::unique_ptr<application>> connect_to(const chosen_cluster& cluster, const std::string& name);

/// Digits alone; nothing for any other text.
std::optional<std::uint64_t> parse_number(std::string_view text);
/// A job's number.
result<job_id> parse_job(const std::string& text);
/// Points into `status`.
result<const job_progress*> find_job(const troupe::cluster_status& status, job_id job);

/// Waits until the process has ended. @returns false when it lives longer than `limit`
bool wait_for_end(const session_record& session, duration limit);

} // namespace troupe::commands
