#pragma once

/// The one schema of all configuration keys. Readers of files, environment and arguments check against it, the key
/// reference is printed from it, and code reads settings through the typed constants of keys.hpp that it lists.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <troupe/runtime/resources/amount.hpp>
#include <troupe/runtime/result.hpp>
#include <troupe/runtime/time.hpp>

namespace troupe {

/// Names one setting and the C++ type of its value: bool (flag), std::int64_t (count, or memory in bytes), duration
/// (time), share (also share or size), resource_amount (count or size), std::string (text, choice, path; a path is
/// absolute or empty), std::vector<std::string> (list).
template <class T>
struct key {
  std::string_view name;
};

/// A family of settings: the part of the name in `<…>` stands for the name of a resource or an actor. A member has no
/// default; it is set or absent.
template <class T>
struct pattern_key {
  std::string_view name;
};

enum class setting_type : std::uint8_t {
  flag,
  count,
  memory,
  time,
  time_or_never, ///< `never` is the duration of that name
  share,
  count_or_size, ///< what an executor has of a custom resource
  share_or_size, ///< what a task takes of one
  text,
  choice,
  path,
  paths, ///< several, with commas between
  list
};
std::string_view to_string(setting_type type) noexcept;

/// Whose behaviour the key changes.
enum class setting_reader : std::uint8_t { driver, executor, client, all };
std::string_view to_string(setting_reader reader) noexcept;

using setting_value =
    std::variant<bool, std::int64_t, duration, share, resource_amount, std::string, std::vector<std::string>>;

/// Largest memory size that a setting may have: sums of many of them do not overflow.
inline constexpr std::int64_t most_memory = std::int64_t{1} << 60;

/// One key, or one family of keys.
struct setting_schema {
  std::string_view name;          ///< `troupe.…`, kebab-case; a family has one part in `<…>`
  setting_type type;              ///
  std::string_view default_text;  ///< "" for a family, and for texts, paths and lists that are not set
  std::string_view choices;       ///< of a choice: `a|b|c`
  std::string_view members;       ///< of a family: the names that may stand for `<…>`, `a|b`; "" for any
  std::int64_t least = 0;         ///< smallest value of a count, memory (bytes), time (nanoseconds), share (units)
  std::int64_t most = INT64_MAX;  ///< largest one
  setting_reader reader;          ///
  std::string_view documentation; ///< one sentence

  bool is_family() const noexcept { return name.find('<') != std::string_view::npos; }
};

/// All keys, ordered by name.
std::span<const setting_schema> schema();

/// The entry that `name` belongs to, and for a family the part that stands for `<…>`.
struct schema_match {
  const setting_schema* entry = nullptr;
  std::string member;
};
/// Error: unknown, with the nearest valid key.
result<schema_match> find_key(std::string_view name);

/// The entry of that very name, `<…>` included. @pre there is one
const setting_schema& schema_entry(std::string_view name);

/// Reads a value. The error says what is allowed here, not where the text came from.
result<setting_value> parse_setting(const setting_schema& entry, std::string_view text);

/// What somebody wrote, to stand in a sentence: in quotes where one would not see it otherwise (nothing, blanks at its
/// ends, control characters) or it has no end.
std::string show_value(std::string_view text);

/// What `parse_setting` takes, for people: `a whole number from 1 to 100`, `one of error, merge`.
std::string describe_values(const setting_schema& entry);

/// The value as text; `parse_setting` reads it back to an equal value.
std::string to_text(const setting_schema& entry, const setting_value& value);

/// What the names of all environment variables that set a key begin with.
inline constexpr std::string_view environment_prefix = "TROUPE_CONF_";

/// The environment variable of a key: `TROUPE_CONF_` and the key without `troupe.`, upper case, `_` for `.` and `-`.
std::string environment_name(std::string_view key_name);

/// The key that an environment variable `TROUPE_CONF_…` sets. A member's name is read in lower case with `-` for `_`.
/// Error: no such key, with the nearest variable.
result<std::string> key_of_environment(std::string_view variable);

/// Splits `a|b|c`.
std::vector<std::string> split_choices(std::string_view choices);

} // namespace troupe
