#include <troupe/runtime/config/reference.hpp>

#include <span>

#include <troupe/runtime/config/schema.hpp>
#include <troupe/runtime/config/sections.hpp>

namespace troupe {
namespace {

constexpr std::string_view introduction = R"(# Configuration keys

This page is generated from `runtime/config/schema_table.cpp`; a test compares the two.

A value comes from, in falling precedence: `--conf key=value` on the command line, an environment variable, a file
given by name, the default. `troupe config show` prints every effective value with its origin. Unknown keys, values
out of range, and equal keys in one file are errors.

- **In files** (YAML) keys may be nested or dotted: `troupe: {executor: {cores: 2}}` is `troupe.executor.cores: 2`.
  Relative paths start at the file's own directory. A `caf:` section is passed on to CAF.
- **In the environment** a key is `TROUPE_CONF_` and the key without `troupe.` in capitals, with `_` for `.` and `-`:
  `TROUPE_CONF_EXECUTOR_HEARTBEAT_INTERVAL=2s`. The name of a resource is read in lower case with `-` for `_`:
  `TROUPE_CONF_EXECUTOR_RESOURCE_GPU_AMOUNT=2`.
- **Counts** are digits without leading zeros. **Memory** sizes are whole numbers with a unit out of
  `b k m g t p`, or `kb` and `kib` to `pb` and `pib`, in any case (powers of 1024; without one: MiB). **Times** are
  whole numbers with a unit out of `ns us ms s min h d`. **Shares** are decimals with up to 12 digits after the point,
  or `1/n`. **Sizes** are memory sizes whose unit is not left out. **Lists** are YAML lists, or texts separated by
  commas.

| key | type | default | values | read by | meaning |
| --- | --- | --- | --- | --- | --- |
)";

/// `|` would end a cell, and `<…>` would be taken for HTML outside of code.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    if (c == '<') {
      out += "&lt;";
      continue;
    }
    out += c;
  }
  return out;
}

std::string values_of(const setting_schema& entry) {
  if (entry.members.empty()) return describe_values(entry);
  std::string members;
  for (const auto& member : split_choices(entry.members)) members += (members.empty() ? "" : ", ") + member;
  return describe_values(entry) + "; for " + members;
}

std::string table_of(std::string_view title, std::span<const section_field> fields) {
  std::string out = "\n## " + std::string{title} + "\n\n| field | | values | meaning |\n| --- | --- | --- | --- |\n";
  for (const auto& field : fields)
    out += "| `" + std::string{field.name} + "` | " + (field.required ? "needed" : "") + " | " + cell(field.values) +
           " | " + cell(field.meaning) + " |\n";
  return out;
}

} // namespace

std::string key_reference() {
  std::string out{introduction};
  for (const auto& entry : schema()) {
    const std::string value = entry.default_text.empty() ? "" : "`" + std::string{entry.default_text} + "`";
    out += "| `" + std::string{entry.name} + "` | " + std::string{to_string(entry.type)} + " | " + value + " | " +
           cell(values_of(entry)) + " | " + std::string{to_string(entry.reader)} + " | " + cell(entry.documentation) +
           " |\n";
  }
  out += "\n# Sections\n\nOf the files that `troupe node`, programs (`node`) and `troupe cluster up` (`cluster`) read, "
         "beside `troupe` and `caf`; "
         "made from "
         "`runtime/config/sections.hpp`.\n";
  out += table_of("The `node` section", node_fields);
  out += table_of("The `cluster` section", cluster_fields);
  out += table_of("An entry of `cluster.hosts`", cluster_host_fields);
  out += table_of("An entry of `cluster.executors`", cluster_executor_fields);
  return out;
}

} // namespace troupe
