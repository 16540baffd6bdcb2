#pragma once

/// CAF as Troupe's own processes use it.

#include <caf/actor_system_config.hpp>

#include <troupe/runtime/config/settings.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// The configuration of a process of Troupe's own: tuned for few cores, network loaded, no file read unasked.
class node_config : public caf::actor_system_config {
public:
  /// @param networked loads CAF's network part
  explicit node_config(bool networked);
  /// Applies the settings' `caf:` section and heartbeats. Errors name the option.
  result<void> apply(const settings& s);
};

} // namespace troupe
