#pragma once

/// Which drivers of this user run on this machine: each writes a file into its run directory, and the user's other
/// commands look through the directories.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

struct session_record {
  std::string name;    ///< `troupe.app.name` of the driver
  std::string address; ///< `host:port`
  std::string cluster_id;
  std::string session_id;
  std::string secret_file;
  std::string config_file;   ///< that it was started with
  std::string directory;     ///< run directory; where the record was found
  pid_t pid = 0;             ///< of the driver
  std::uint64_t started = 0; ///< of that process, in clock ticks since boot: a later one of the same number is another
  std::vector<std::string> warnings; ///< about its machine, for who starts it

  bool operator==(const session_record&) const = default;
};

/// Writes `<record.directory>/session`, complete or not at all. Fills in nothing.
result<void> write_session(const session_record& record);
/// Reads what `write_session` wrote; `directory` is where the file lies.
result<session_record> read_session(const std::string& directory);

/// When the process began, in clock ticks since boot; 0 when there is none, or it is a zombie.
std::uint64_t process_start(pid_t pid);
/// True while the driver process of the record lives.
bool is_alive(const session_record& record);

/// `where` itself, unless that is all interfaces of this machine (0.0.0.0 or ::): its loopback address then, where a
/// process of this machine reaches what listens there.
endpoint reached_from_here(endpoint where);
/// True when the driver of the record is reached from here at `address`, such as `127.0.0.1:17077`.
bool listens_at(const session_record& record, std::string_view address);

/// Records below the run directory's base whose driver lives, by name, then session.
std::vector<session_record> running_sessions(const std::string& base);

/// The session that `which` names: its name, address, or the beginning of its cluster or session id; "" is the only
/// one there is. Errors: ec::unreachable when there is none, ec::invalid_configuration, listing them, when there are
/// several.
result<session_record> choose_session(const std::vector<session_record>& sessions, std::string_view which);

} // namespace troupe
