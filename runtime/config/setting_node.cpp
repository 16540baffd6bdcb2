#include <troupe/runtime/config/setting_node.hpp>

namespace troupe {

result<setting_value> read_setting(std::string_view file, const yaml_node& node, const std::string& what,
                                   const setting_schema& entry) {
  if (!node.is_text()) return yaml_error(file, node.line, what + " must be " + describe_values(entry));
  auto value = parse_setting(entry, node.text);
  if (!value) return yaml_error(file, node.line, what + " = " + show_value(node.text) + ": " + value.error().message);
  return value;
}

} // namespace troupe
