#pragma once

/// Effective settings with where each came from. Precedence: default, file, environment, `--conf`. Immutable once
/// built; copies are independent; any thread.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/config/keys.hpp>
#include <troupe/runtime/config/schema.hpp>
#include <troupe/runtime/config/yaml_document.hpp>

namespace troupe {

/// A stronger origin replaces a weaker one, a later value of the same origin an earlier one.
enum class origin_kind : std::uint8_t { default_value = 0, file = 1, environment = 2, argument = 3 };

struct setting_origin {
  origin_kind kind = origin_kind::default_value;
  std::string place; ///< `file:line` or the name of the environment variable, else ""

  bool operator==(const setting_origin&) const = default;
};
/// `default`, `driver.yaml:12`, `environment variable TROUPE_CONF_PROGRESS`, `--conf`.
std::string to_string(const setting_origin& origin);

/// One line of `troupe config show`.
struct explained_setting {
  std::string name;
  std::string value; ///< as text
  setting_origin origin;

  bool operator==(const explained_setting&) const = default;
};

class settings {
public:
  /// Every default.
  settings();

  template <class T>
  const T& get(key<T> k) const {
    return std::get<T>(value_of(k.name));
  }

  /// The members of a family that are set, by the part that stands for `<…>`.
  template <class T>
  std::map<std::string, T> get(pattern_key<T> k) const {
    std::map<std::string, T> out;
    for (const auto& [member, value] : members_of(k.name)) out.emplace(member, std::get<T>(*value));
    return out;
  }

  /// An entry of the `caf` section, its value as written.
  struct caf_setting {
    std::string text;
    setting_origin origin;
  };
  /// The `caf` section, keys flattened (`scheduler.policy`).
  const std::map<std::string, caf_setting>& caf() const noexcept { return caf_; }

  /// Where the value of a key came from. @pre the key exists (a member of a family that is not set: default)
  setting_origin origin_of(std::string_view name) const;

  /// Every key with its effective value, the members that are set, and the entries of `caf`, by name.
  std::vector<explained_setting> explain() const;

  /// Everything that is not a default of Troupe's own, as a file that gives the same settings to another process of
  /// this machine.
  std::string to_yaml() const;

private:
  friend class settings_builder;

  struct stored {
    const setting_schema* entry;
    std::string member; ///< of a family's member
    setting_value value;
    setting_origin origin;
  };

  const setting_value& value_of(std::string_view name) const;
  std::vector<std::pair<std::string, const setting_value*>> members_of(std::string_view family) const;

  std::map<std::string, stored, std::less<>> values_;
  std::map<std::string, caf_setting> caf_;
};

/// Error, with the nearest valid one, for a key of the root that is neither in `fields` nor part of the `troupe` or
/// `caf` section.
result<void> check_root(const yaml_document& document, std::initializer_list<std::string_view> fields);

/// Makes a path of what stands for one in a setting.
using path_expansion = std::function<result<std::string>(std::string_view)>;
/// `expand_path` with the environment of this process.
path_expansion expand_as_written();
/// For settings that were expanded when they were read first, and come from another process.
path_expansion expand_nothing();

/// Collects layers and builds settings from them. Every error is ec::invalid_configuration and names where the value
/// stands, the key, the value, and what is allowed or the nearest valid key.
class settings_builder {
public:
  /// Relative paths in the environment and in arguments, and relative names of files, start at `working_directory`;
  /// relative paths in a file start at the file's own directory.
  explicit settings_builder(std::string working_directory, path_expansion expand = expand_as_written());

  /// Takes the `troupe` and `caf` sections of a file, nested or dotted; other keys of its root are left to their
  /// reader. A key that is given in both spellings is an error.
  result<void> add_file(const yaml_document& document);
  /// Takes every variable that begins with `TROUPE_CONF_` out of a list like `environ` (`NAME=value`, null at the end).
  result<void> add_environment(const char* const* environment);
  /// Takes one `key=value` that a program brings along: weaker than anything but the schema's own default.
  result<void> add_default(std::string_view assignment);
  /// Takes one `key=value` of the command line.
  result<void> add_argument(std::string_view assignment);

  /// The settings, after the checks that concern several keys at once.
  result<settings> build() const;

private:
  result<void> add_assignment(std::string_view assignment, const setting_origin& origin);
  result<void> put(std::string_view name, std::string_view text, setting_origin origin, std::string_view directory);
  result<void> put_node(const std::string& name, const yaml_node& node, std::string_view file,
                        std::string_view directory);

  std::string working_directory_;
  path_expansion expand_;
  settings settings_;
};

} // namespace troupe
