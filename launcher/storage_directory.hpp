#pragma once

#include <optional>
#include <string>

#include <troupe/launcher/run_directory.hpp>
#include <troupe/runtime/config/settings.hpp>

namespace troupe {

/// Where such directories of this user lie; "" where `troupe.storage.directory` is not set.
std::string storage_base(const settings& s);

/// Where `troupe.storage.directory` is set: makes and holds the private directory `<that>/troupe-<uid>/<name>` for
/// blocks in files, after those that a session which was killed may have left there are removed. Else nothing: blocks
/// are kept in the run directory. `name` is unique, such as a session's id.
result<std::optional<run_directory>> make_storage_directory(const settings& s, const std::string& name);

} // namespace troupe
