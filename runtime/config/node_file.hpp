#pragma once

/// The file of `troupe node --config-file=F`: which part this process plays. What an executor has and listens on, and
/// everything else, are settings.
///
///     node: {role: executor, driver: 127.0.0.1:7077}
///     troupe: {executor: {cores: 2, memory: 1g}}
///     caf: {…}

#include <cstdint>
#include <string>

#include <troupe/runtime/config/master.hpp>
#include <troupe/runtime/config/yaml_document.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

enum class node_role : std::uint8_t { driver, executor };

struct node_description {
  node_role role = node_role::driver;
  endpoint driver; ///< of an executor

  bool operator==(const node_description&) const = default;
};

/// Reads the `node` section; the settings are read by `settings_builder`.
result<node_description> read_node(const yaml_document& document);

} // namespace troupe
