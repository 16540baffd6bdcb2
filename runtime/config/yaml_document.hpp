#pragma once

/// The YAML that Troupe reads: one document of maps, lists and texts. Whatever YAML readers disagree about or swallow
/// in silence is an error with its line: equal keys in one map, anchors and aliases, merge keys, tags, several
/// documents, indentation by tabs, bytes that are not UTF-8 text. Texts stay texts: `010` is not a number yet.
///
/// Values are plain and immutable once parsed; any thread.

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <troupe/runtime/result.hpp>

namespace troupe {

struct yaml_node {
  enum class kind { null, text, list, map };

  kind type = kind::null;
  int line = 0;                    ///< from 1
  std::string text;                ///< of a text, as written, quotes removed
  std::vector<yaml_node> children; ///< of a list or a map, in the file's order
  std::string key;                 ///< of a map's child
  int key_line = 0;                ///< of a map's child, from 1

  bool is_null() const noexcept { return type == kind::null; }
  bool is_text() const noexcept { return type == kind::text; }
  bool is_list() const noexcept { return type == kind::list; }
  bool is_map() const noexcept { return type == kind::map; }
  /// The child of that key, null where there is none.
  const yaml_node* find(std::string_view name) const noexcept;
};

/// A parsed file. The root is a map.
struct yaml_document {
  std::string file; ///< as errors name it
  yaml_node root;
};

/// Limits that no honest file meets; they bound time and memory for the others.
inline constexpr std::size_t max_yaml_bytes = 4u << 20;
inline constexpr std::size_t max_yaml_nodes = 200'000;
inline constexpr int max_yaml_depth = 24;

/// Parses `text`; `file` is used in errors only. All errors are ec::invalid_configuration and begin with `file:line: `.
result<yaml_document> parse_yaml(std::string_view text, std::string file);

/// Reads a regular file of at most `max_yaml_bytes`. Errors are ec::invalid_configuration and name the path.
result<std::string> read_config_file(const std::string& path);

/// `read_config_file` and `parse_yaml`.
result<yaml_document> load_yaml(const std::string& path);

/// An ec::invalid_configuration error that begins with `file:line: `.
error yaml_error(std::string_view file, int line, std::string_view message);

/// --- reading the fields of a map; `what` names the node in errors ---

/// Error unless the node is a map whose keys are all among `fields`.
result<void> check_fields(std::string_view file, const yaml_node& node, std::string_view what,
                          std::span<const std::string_view> fields);
inline result<void> check_fields(std::string_view file, const yaml_node& node, std::string_view what,
                                 std::initializer_list<std::string_view> fields) {
  return check_fields(file, node, what, std::span{fields.begin(), fields.size()});
}
/// The text of a node that must be one and not be empty.
result<std::string> read_text(std::string_view file, const yaml_node& node, std::string_view what);
/// The texts of a node that must be a list of them; elements may be empty texts, the list may not be empty.
result<std::vector<std::string>> read_texts(std::string_view file, const yaml_node& node, std::string_view what);

} // namespace troupe
