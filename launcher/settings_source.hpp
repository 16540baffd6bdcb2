#pragma once

/// Settings as a command line names them: defaults of a program, files, the environment, single assignments.

#include <string>
#include <vector>

#include <troupe/launcher/session_registry.hpp>
#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/config/yaml_document.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

struct settings_source {
  std::vector<std::string> defaults;    ///< `key=value` that only the schema's own are weaker than
  std::vector<std::string> files;       ///< YAML, relative to the current directory
  std::vector<std::string> assignments; ///< `key=value` of the command line
};

struct loaded_settings {
  settings effective;
  std::vector<yaml_document> documents; ///< one per file; what is not settings is their reader's
};

/// Adds where a cluster of this user is, and its secret unless the settings name one.
void add_cluster(settings_source& source, const settings& s, const session_record& cluster);

/// Reads the files and this process's environment. No file is read that is not named.
result<loaded_settings> load_settings(const settings_source& source);

} // namespace troupe
