#pragma once

/// Values of files that are not settings themselves and have the range of one: amounts of profiles and hosts.

#include <string>
#include <string_view>

#include <troupe/runtime/config/schema.hpp>
#include <troupe/runtime/config/yaml_document.hpp>

namespace troupe {

/// Reads a text by the rule of `entry`. The error names file, line, `what`, the value and what is allowed.
result<setting_value> read_setting(std::string_view file, const yaml_node& node, const std::string& what,
                                   const setting_schema& entry);

} // namespace troupe
