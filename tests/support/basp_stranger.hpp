#pragma once

/// A process that knows no secret and writes the packets of CAF's protocol (BASP) by hand, in any name it likes. For
/// attacks on actors that a test has published.

#include <cstdint>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/message.hpp>
#include <caf/node_id.hpp>

namespace troupe::testing {

/// One connection. Writes throw `std::runtime_error` where the other side has closed it.
class basp_stranger {
public:
  /// Connects to `port` of this machine and reads the handshake there, which tells everybody the node and the number of
  /// the published actor. @param words an actor system that knows the names of the message types
  basp_stranger(caf::actor_system& words, std::uint16_t port);
  basp_stranger(const basp_stranger&) = delete;
  basp_stranger& operator=(const basp_stranger&) = delete;
  ~basp_stranger();

  /// The attacked node.
  const caf::node_id& node() const noexcept { return node_; }
  /// Number of the published actor.
  std::uint64_t front() const noexcept { return front_; }

  /// Introduces itself as a node of the attacked machine with the made-up process id `pid`.
  void introduce_as(std::uint32_t pid);
  /// A message to `receiver` that is said to come from actor `sender` of the attacked node itself.
  template <class... T>
  void forge(std::uint64_t sender, std::uint64_t receiver, std::uint64_t message_id, const T&... content) {
    write(routed_message, 0, message_id, sender, receiver, pack(&node_, &node_, caf::make_message(content...)));
  }
  /// A message in its own name; sender 0 is nobody.
  template <class... T>
  void speak(std::uint64_t sender, std::uint64_t receiver, std::uint64_t message_id, const T&... content) {
    write(direct_message, 0, message_id, sender, receiver, pack(nullptr, nullptr, caf::make_message(content...)));
  }
  /// Any packet: operation, flags, and the three numbers of a header, then the payload.
  void write(std::uint8_t operation, std::uint8_t flags, std::uint64_t data, std::uint64_t sender,
             std::uint64_t receiver, const std::string& payload);
  /// Waits until the node has read everything that was written before: it answers a question to an actor that it does
  /// not have. Actors may hear of it a little later. @returns false where it has closed the connection instead
  bool settle();

  /// The number of an asynchronous message of normal priority.
  static constexpr std::uint64_t asynchronous = 0x1000000000000000;
  /// The `n`th question of its sender.
  static constexpr std::uint64_t question(std::uint64_t n) { return asynchronous + n; }

private:
  static constexpr std::uint8_t direct_message = 2;
  static constexpr std::uint8_t routed_message = 3;

  std::string pack(const caf::node_id* from, const caf::node_id* to, const caf::message& content);
  bool read(std::string& bytes, std::size_t size);

  caf::actor_system& words_;
  int socket_ = -1;
  caf::node_id node_;
  std::uint64_t front_ = 0;
  std::uint64_t questions_ = 1'000'000;
};

} // namespace troupe::testing
