#pragma once

/// Keeps out messages of nodes that have not passed the hello.

#include <cstdint>
#include <unordered_map>
#include <utility>

#include <caf/node_id.hpp>

#include <troupe/messages/boxed.hpp>
#include <troupe/messages/caf_compat.hpp>

namespace troupe {

/// Decides which boxed messages one actor takes: those that this process made, and those of admitted nodes. The node of
/// this process is never admitted, since a packet may claim it. Not thread-safe; owned by the actor.
class gate {
public:
  /// @param local the node of the actor itself
  explicit gate(caf::node_id local) : local_(std::move(local)) {}

  /// Several peers may live on one node: each admission counts. The actor's own node needs none and gets none.
  void admit(const caf::node_id& node) {
    if (node && node != local_) ++admitted_[node];
  }
  /// Takes back one admission; unknown nodes are ignored.
  void dismiss(const caf::node_id& node) {
    const auto found = admitted_.find(node);
    if (found != admitted_.end() && --found->second == 0) admitted_.erase(found);
  }

  /// True when messages that come from `node` over a connection are taken.
  bool admits(const caf::node_id& node) const { return node && admitted_.find(node) != admitted_.end(); }

  /// True when `message`, which is in hand, was made by this process or comes from an admitted node; else it is counted
  /// and the handler must drop it.
  template <class Self, class T>
  bool passes(Self* self, const boxed<T>& message) {
    if (!message.from_wire() || admits(sender_node(self))) return true;
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
