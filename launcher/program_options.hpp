#pragma once

#include <optional>
#include <string>
#include <vector>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/config/node_file.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// What a program that calls `troupe::run` was started with.
struct program_options {
  /// A file that makes this process a part of a cluster instead of running a job.
  struct node_file {
    node_description what;
    std::string file;
  };
  settings effective;
  std::vector<std::string> arguments; ///< the program's own
  std::optional<std::string> help;    ///< text to print instead of running
  std::optional<node_file> node;
  std::optional<session_record> cluster; ///< the one that `--cluster` names
  std::string asked;                     ///< what it was called there
};

/// Takes `--master`, `--cluster`, `--conf key=value`, `--config-file` and `--troupe-help` out of the arguments; the
/// first argument that is none of them, or what follows `--`, begins the program's own. Another one that begins with
/// `--troupe` is an error. `defaults` are `key=value` settings that only the schema's defaults are weaker than.
result<program_options> parse_program_options(int argc, char** argv, const std::vector<std::string>& defaults);

} // namespace troupe
