#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A path that a text names, absolute: down to the last folder that is written out, and a pattern as shells have them
/// for the rest.
struct named_path {
  std::string word; ///< as the text has it
  std::string fixed;
  std::string pattern; ///< with `*` for what is not known; "": the path is written out

  bool operator==(const named_path&) const = default;
};

/// What a variable is worth there; none where that is not known.
using variable_values = std::function<std::optional<std::string>(std::string_view name)>;

/// The paths in a word of a command, which may be a text for a shell, as far as they are seen: absolute ones, ones that
/// begin with a variable whose value is, and after `cd FOLDER` relative ones with a slash or a wildcard in them. Words
/// end at blanks, quotes, commas and the like. Lists with colons are taken apart; what is on another host
/// (`host:/path`) is left out. `{…}`, a placeholder of Troupe's, may be anything. Pure.
std::vector<named_path> named_paths(std::string_view text, const variable_values& value);

} // namespace troupe
