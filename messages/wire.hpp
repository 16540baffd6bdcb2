#pragma once

/// Tools of the codec sources; not for anybody else (it is the only header that knows Protobuf). Each plain struct has
/// two overloads: `write(struct, message, place)` and `read(message, struct, place)`. Both check: `read` because bytes
/// come from strangers, `write` so that a defect here shows here and not as a refusal at the peer.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/arena.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/repeated_field.h>

#include <troupe/messages/codec.hpp>
#include <troupe/runtime/ids.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe::wire {

/// Where in a message the codec is, and the first fault found. Places form a chain on the stack: naming them costs
/// nothing until something is wrong.
class place {
public:
  static constexpr std::size_t no_index = std::numeric_limits<std::size_t>::max();

  /// The message itself. @param code kind of the faults; @param first receives the first one
  place(std::string_view message, ec code, error& first) noexcept : name_(message), code_(code), first_(&first) {}
  /// A field of `outer`, or one entry of a list.
  place(const place& outer, std::string_view field, std::size_t index = no_index) noexcept
    : outer_(&outer), name_(field), index_(index), code_(outer.code_), first_(outer.first_) {}

  bool ok() const noexcept { return first_->code == ec::none; }
  /// Notes a fault of this place; later ones are ignored.
  void fail(std::string_view why) const;
  void fail(std::string_view field, std::string_view why) const { place{*this, field}.fail(why); }

  /// `value` when it is not longer than `limit` bytes, else a fault and "".
  const std::string& text(std::string_view field, const std::string& value,
                          std::size_t limit = wire_limits::text) const;
  /// The same for short texts.
  const std::string& name(std::string_view field, const std::string& value) const {
    return text(field, value, wire_limits::name);
  }
  /// A nonce or a proof: exactly `size` bytes.
  const std::string& exactly(std::string_view field, const std::string& value, std::size_t size) const;

  /// An amount, which is never negative.
  std::int64_t amount(std::string_view field, std::int64_t value) const {
    if (value >= 0) return value;
    fail(field, "is negative");
    return 0;
  }

  /// An enumerator from its number; `last` is the largest one.
  template <class E>
  E enumerator(std::string_view field, std::int64_t number, E last) const {
    if (number >= 0 && number <= static_cast<std::int64_t>(last)) return static_cast<E>(number);
    fail(field, "holds the unknown value " + std::to_string(number));
    return E{};
  }

  /// True when a list of `size` is within the limit.
  bool fits(std::string_view field, std::size_t size) const {
    if (size <= wire_limits::entries) return true;
    fail(field,
         "has " + std::to_string(size) + " entries, at most " + std::to_string(wire_limits::entries) + " are allowed");
    return false;
  }

  /// True when a column that may be left out has the right length.
  bool column(std::string_view field, std::size_t size, std::size_t wanted) const {
    if (size == 0 || size == wanted) return true;
    fail(field, "has " + std::to_string(size) + " entries for " + std::to_string(wanted));
    return false;
  }

private:
  std::string path() const;

  const place* outer_ = nullptr;
  std::string_view name_;
  std::size_t index_ = no_index;
  ec code_;
  error* first_;
};

/// The Protobuf message of a plain struct, and its name in errors. Specialised next to `read` and `write`.
template <class T>
struct form;

// -- lists
// -------------------------------------------------------------------------------------------------------------

template <class T, class Message>
void write_list(const std::vector<T>& in, google::protobuf::RepeatedPtrField<Message>& out, const place& at,
                std::string_view field) {
  if (!at.fits(field, in.size())) return;
  out.Reserve(static_cast<int>(in.size()));
  for (std::size_t i = 0; i < in.size() && at.ok(); ++i) write(in[i], *out.Add(), place{at, field, i});
}

template <class T, class Message>
void read_list(const google::protobuf::RepeatedPtrField<Message>& in, std::vector<T>& out, const place& at,
               std::string_view field) {
  const auto size = static_cast<std::size_t>(in.size());
  if (!at.fits(field, size)) return;
  out.resize(size);
  for (std::size_t i = 0; i < size && at.ok(); ++i) read(in[static_cast<int>(i)], out[i], place{at, field, i});
}

inline void write_texts(const std::vector<std::string>& in, google::protobuf::RepeatedPtrField<std::string>& out,
                        const place& at, std::string_view field) {
  if (!at.fits(field, in.size())) return;
  for (const auto& text : in) *out.Add() = at.text(field, text);
}

inline void read_texts(const google::protobuf::RepeatedPtrField<std::string>& in, std::vector<std::string>& out,
                       const place& at, std::string_view field) {
  if (!at.fits(field, static_cast<std::size_t>(in.size()))) return;
  out.reserve(static_cast<std::size_t>(in.size()));
  for (const auto& text : in) out.push_back(at.text(field, text));
}

/// Numbers lie side by side on both ends: one copy.
inline void write_numbers(const std::vector<std::uint32_t>& in, google::protobuf::RepeatedField<std::uint32_t>& out) {
  out.Add(in.begin(), in.end());
}

inline void read_numbers(const google::protobuf::RepeatedField<std::uint32_t>& in, std::vector<std::uint32_t>& out) {
  out.assign(in.data(), in.data() + in.size());
}

template <class Id>
void write_ids(const std::vector<Id>& in, google::protobuf::RepeatedField<std::uint64_t>& out) {
  out.Reserve(static_cast<int>(in.size()));
  for (const auto id : in) out.AddAlreadyReserved(id.value);
}

template <class Id>
void read_ids(const google::protobuf::RepeatedField<std::uint64_t>& in, std::vector<Id>& out) {
  out.reserve(static_cast<std::size_t>(in.size()));
  for (const auto value : in) out.push_back(Id{value});
}

// -- whole messages
// ----------------------------------------------------------------------------------------------------

/// First byte of every encoded message: even a message without content is told from no bytes at all.
inline constexpr char format_mark = '\x01';

/// Room for a small message without any allocation.
struct scratch {
  alignas(8) char block[8192];
  google::protobuf::ArenaOptions options() noexcept {
    google::protobuf::ArenaOptions o;
    o.initial_block = block;
    o.initial_block_size = sizeof block;
    return o;
  }
};

template <class T>
result<std::string> encode_message(const T& value) {
  using message_type = typename form<T>::message;
  scratch memory;
  google::protobuf::Arena arena{memory.options()};
  auto* message = google::protobuf::Arena::CreateMessage<message_type>(&arena);
  error fault;
  const place at{form<T>::name, ec::internal, fault};
  write(value, *message, at);
  if (fault) return fault;
  const auto size = message->ByteSizeLong();
  if (size > wire_limits::message)
    return make_error(ec::overloaded, std::string{form<T>::name} + " has " + std::to_string(size) + " bytes, at most " +
                                          std::to_string(wire_limits::message) + " are allowed");
  std::string bytes;
  bytes.resize(size + 1);
  bytes[0] = format_mark;
  message->SerializeWithCachedSizesToArray(reinterpret_cast<std::uint8_t*>(bytes.data() + 1));
  return bytes;
}

template <class T>
result<T> decode_message(std::string_view bytes) {
  using message_type = typename form<T>::message;
  error fault;
  const place at{form<T>::name, ec::malformed, fault};
  if (bytes.empty() || bytes.front() != format_mark) {
    at.fail(bytes.empty() ? "no bytes" : "does not start with the mark of this wire format");
    return fault;
  }
  if (bytes.size() - 1 > wire_limits::message) {
    at.fail("has " + std::to_string(bytes.size() - 1) + " bytes, at most " + std::to_string(wire_limits::message) +
            " are allowed");
    return fault;
  }
  scratch memory;
  google::protobuf::Arena arena{memory.options()};
  auto* message = google::protobuf::Arena::CreateMessage<message_type>(&arena);
  if (!message->ParseFromArray(bytes.data() + 1, static_cast<int>(bytes.size() - 1))) {
    at.fail("the bytes are not its Protobuf message (cut off or damaged)");
    return fault;
  }
  T value{};
  read(*message, value, at);
  if (fault) return fault;
  return value;
}

} // namespace troupe::wire

namespace troupe {

template <class T>
result<std::string> encode(const T& value) {
  return wire::encode_message(value);
}

template <class T>
result<T> decode(std::string_view bytes) {
  return wire::decode_message<T>(bytes);
}

template <class T>
std::string_view codec_name() noexcept {
  return wire::form<T>::name;
}

} // namespace troupe

/// Once for each struct that is a message of its own, after its `write` and `read`: makes `encode`, `decode` and
/// `codec_name` of it.
#define TROUPE_WIRE_FORM(type, message_type)                                                                           \
  namespace troupe {                                                                                                   \
  template <>                                                                                                          \
  struct wire::form<type> {                                                                                            \
    using message = pb::message_type;                                                                                  \
    static constexpr std::string_view name = #type;                                                                    \
  };                                                                                                                   \
  template result<std::string> encode(const type& value);                                                              \
  template result<type> decode<type>(std::string_view bytes);                                                          \
  template std::string_view codec_name<type>() noexcept;                                                               \
  }
