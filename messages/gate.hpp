#pragma once

/// Keeps out messages of nodes that have not passed the hello.

#include <cstdint>
#include <unordered_map>
#include <utility>

#include <caf/node_id.hpp>

#include <troupe/messages/caf_compat.hpp>

namespace troupe {

/// The nodes whose messages one actor takes: its own, and those that were admitted. A message that names no sender is
/// taken for a stranger's, so local threads speak in an actor's name (`tell_as`). Not thread-safe; owned by the actor.
class gate {
public:
  /// @param local the node of the actor itself
  explicit gate(caf::node_id local) : local_(std::move(local)) {}

  /// Several peers may live on one node: each admission counts.
  void admit(const caf::node_id& node) {
    if (node) ++admitted_[node];
  }
  /// Takes back one admission; unknown nodes are ignored.
  void dismiss(const caf::node_id& node) {
    const auto found = admitted_.find(node);
    if (found != admitted_.end() && --found->second == 0) admitted_.erase(found);
  }

  bool admits(const caf::node_id& node) const {
    // A system without a network has no name and meets no strangers.
    if (!local_) return true;
    return node && (node == local_ || admitted_.find(node) != admitted_.end());
  }

  /// True when the message in hand comes from an admitted node; else it is counted and the handler must drop it.
  template <class Self>
  bool passes(Self* self) {
    if (admits(sender_node(self))) return true;
    ++dropped_;
    return false;
  }

  /// The same for what only actors of this very node may say.
  template <class Self>
  bool is_local(Self* self) {
    if (!local_ || sender_node(self) == local_) return true;
    ++dropped_;
    return false;
  }

  /// Messages that did not pass.
  std::uint64_t dropped() const noexcept { return dropped_; }

private:
  caf::node_id local_;
  std::unordered_map<caf::node_id, std::uint32_t> admitted_;
  std::uint64_t dropped_ = 0;
};

} // namespace troupe
