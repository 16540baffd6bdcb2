#pragma once

/// What the subcommands of `troupe` do. Each returns the exit code and says on standard error what went wrong.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <troupe/launcher/settings_source.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe::commands {

/// Settings as every subcommand takes them.
struct setting_flags {
  std::string master;
  std::vector<std::string> conf;
  std::string config_file;

  settings_source source() const;
};

/// Which running cluster is meant: its name, address, or the beginning of its session id; "" is the only one.
struct cluster_flags {
  setting_flags settings;
  std::string which;
  bool json = false;
};

int version(bool json);
int config_show(const setting_flags& flags, bool json);
int profile_check(const setting_flags& flags, const std::string& file, bool json);
int run(const cluster_flags& flags, const std::string& job_file, bool overwrite);
int node(const setting_flags& flags, bool json);
int cluster_up(const setting_flags& flags, bool foreground, bool json);
int cluster_status(const cluster_flags& flags);
int cluster_down(const cluster_flags& flags);
int jobs(const cluster_flags& flags);
/// `stage`: its number within the job; "": all of them.
int explain(const cluster_flags& flags, const std::string& job, const std::string& stage);

/// Either a job, or one stage of it, or a group.
struct cancel_flags {
  std::string job;   ///< number
  std::string stage; ///< number within the job; "": the whole job
  std::string group;
};
int cancel(const cluster_flags& flags, const cancel_flags& what);

struct log_flags {
  std::string job;      ///< number; "": not of a job
  std::string executor; ///< number; "": not of an executor
  bool errors = false;  ///< only standard error
};
int logs(const cluster_flags& flags, const log_flags& what);

/// Prints the error; on standard output as well, as a document with the member `error`, for a command that was asked
/// for JSON and has printed none. @returns its exit code
int complain(const error& why, bool json);

} // namespace troupe::commands
