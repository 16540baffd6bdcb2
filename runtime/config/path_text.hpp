#pragma once

/// Paths as people write them: `~` at the begin and `$NAME` or `${NAME}` anywhere stand for what a shell would put
/// there. One rule for job files, configuration and options.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <troupe/runtime/result.hpp>

namespace troupe {

/// The value of an environment variable; nothing where it is not set.
using variable_lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Of this process.
std::optional<std::string> environment_variable(const std::string& name);

/// Whether `expand_path` has something to do.
bool has_variables(std::string_view path);

/// Whether a shell would expand something in it, where nothing is expanded: a `~` at the begin, `$NAME`, `${`, `$(`.
bool is_for_a_shell(std::string_view text);

/// The same for a path that was made absolute, or that is about to be made: also a part that is `~`.
inline bool has_part_for_a_shell(std::string_view path) {
  return is_for_a_shell(path) || path.find("/~/") != path.npos || path.ends_with("/~");
}

/// `~` and `~/x` begin with HOME, `$NAME` and `${NAME}` are the variables, `$$` is a `$`; any other `$` stands for
/// itself. `insert` is applied to what is put in, as where the text is a pattern. Error invalid_configuration, with the
/// cure: a variable that is not set or empty, `~name`, `${…}` with something else than a name in it, `$(…)`.
result<std::string> expand_path(std::string_view path, const variable_lookup& lookup = environment_variable,
                                const std::function<std::string(std::string_view)>& insert = {});

/// Another name for what the system finds at this path, without `.`, and where it is absolute without `..`: behind a
/// link that leads to a folder, `..` is the folder above that one. A `/` at its end stays.
std::string plain_path(const std::filesystem::path& path);

/// A text that `expand_path` makes this path of. @pre it does not begin with `~`
std::string as_path_text(std::string_view path);

} // namespace troupe
