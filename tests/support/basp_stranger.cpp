#include <troupe/tests/support/basp_stranger.hpp>

#include <chrono>
#include <set>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <caf/binary_deserializer.hpp>

#include <troupe/tests/support/patience.hpp>

namespace troupe::testing {
namespace {

constexpr std::size_t header_size = 32;
/// Answers come soon, or never.
timeval answer_patience() {
  return {static_cast<time_t>(std::chrono::ceil<std::chrono::seconds>(patience()).count()), 0};
}

void append(std::string& out, std::uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
}

std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

} // namespace

basp_stranger::basp_stranger(caf::actor_system& words, std::uint16_t port) : words_(words) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto limit = answer_patience();
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0)
    throw std::runtime_error{"cannot connect"};
  std::string header, payload;
  if (!read(header, header_size) || !read(payload, number_at(header, 4, 4)))
    throw std::runtime_error{"no handshake came"};
  std::vector<char> bytes{payload.begin(), payload.end()};
  caf::binary_deserializer in{words_, bytes};
  std::vector<std::string> applications;
  std::set<std::string> signatures;
  if (auto failed = in(node_, applications, front_, signatures)) throw std::runtime_error{"the handshake is malformed"};
}

basp_stranger::~basp_stranger() { close(socket_); }

void basp_stranger::introduce_as(std::uint32_t pid) {
  std::vector<char> bytes;
  caf::binary_serializer out{words_, bytes};
  auto me = node_;
  if (out(me)) throw std::runtime_error{"cannot write a node id"};
  // Behind the name of its kind stands the process id.
  for (int i = 0; i < 4; ++i) bytes[8 + static_cast<std::size_t>(i)] = static_cast<char>(pid >> (8 * (3 - i)));
  write(1, 0, 0, 0, 0, std::string{bytes.begin(), bytes.end()});
}

std::string basp_stranger::pack(const caf::node_id* from, const caf::node_id* to, const caf::message& content) {
  std::vector<char> bytes;
  caf::binary_serializer out{words_, bytes};
  std::vector<caf::strong_actor_ptr> stages;
  auto message = content;
  caf::error failed;
  if (from != nullptr) {
    auto source = *from;
    auto target = *to;
    failed = out(source, target);
  }
  if (!failed) failed = out(stages, message);
  if (failed) throw std::runtime_error{"the message cannot be written"};
  return {bytes.begin(), bytes.end()};
}

void basp_stranger::write(std::uint8_t operation, std::uint8_t flags, std::uint64_t data, std::uint64_t sender,
                          std::uint64_t receiver, const std::string& payload) {
  std::string packet;
  append(packet, operation, 1);
  append(packet, 0, 2);
  append(packet, flags, 1);
  append(packet, payload.size(), 4);
  append(packet, data, 8);
  append(packet, sender, 8);
  append(packet, receiver, 8);
  packet += payload;
  for (std::size_t at = 0; at < packet.size();) {
    const auto n = ::send(socket_, packet.data() + at, packet.size() - at, MSG_NOSIGNAL);
    if (n <= 0) throw std::runtime_error{"the connection was closed"};
    at += static_cast<std::size_t>(n);
  }
}

bool basp_stranger::settle() {
  const auto asked = question(++questions_);
  speak(1, ~std::uint64_t{0}, asked, std::string{"are you there?"});
  for (std::string header, payload; read(header, header_size);) {
    if (!read(payload, number_at(header, 4, 4))) return false;
    // The answer to a question has its number and a flag.
    if ((number_at(header, 8, 8) & 0x0fffffffffffffff) == (asked & 0x0fffffffffffffff)) return true;
  }
  return false;
}

bool basp_stranger::read(std::string& bytes, std::size_t size) {
  bytes.resize(size);
  for (std::size_t at = 0; at < size;) {
    const auto n = recv(socket_, bytes.data() + at, size - at, 0);
    if (n <= 0) return false;
    at += static_cast<std::size_t>(n);
  }
  return true;
}

} // namespace troupe::testing
