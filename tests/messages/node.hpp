#pragma once

/// An actor system that may meet others.

#include <troupe/messages/network.hpp>
#include <troupe/messages/type_ids.hpp>

namespace troupe {

/// One node.
struct node {
  struct config : caf::actor_system_config {
    config() {
      init_types();
      register_types(*this);
      load<caf::io::middleman>();
    }
  };
  config cfg;
  caf::actor_system system{cfg};
};

} // namespace troupe
