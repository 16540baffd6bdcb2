#pragma once

/// The wire form of every plain struct that crosses between actors: one Protobuf message each (see *.proto), built on
/// an arena and never seen outside this folder's sources. The peer's bytes are not trusted: `decode` checks every
/// field before it is used and allocates in proportion to the bytes that really came.

#include <cstddef>
#include <string>
#include <string_view>

#include <troupe/messages/session.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Limits of the wire form; a value beyond them is refused by `encode` and `decode` alike.
namespace wire_limits {
inline constexpr std::size_t message = std::size_t{512} << 20; ///< bytes of one message
inline constexpr std::size_t name = 1024;                      ///< bytes of an id, a name of a resource, a host …
inline constexpr std::size_t text = std::size_t{1} << 20;      ///< bytes of a sentence, path, word or log tail
inline constexpr std::size_t entries = std::size_t{1} << 20;   ///< elements of a list of structs
inline constexpr std::uint32_t batch = 1u << 20;               ///< tasks of one batch
} // namespace wire_limits

/// The bytes of `value`. Errors: ec::internal for a value that breaks its own struct's rules (a null pointer where one
/// is required, columns of unequal length), ec::overloaded for one beyond the limits. Any thread.
template <class T>
result<std::string> encode(const T& value);

/// The value behind `bytes`, or ec::malformed with a sentence that names the message and the field. Any thread.
template <class T>
result<T> decode(std::string_view bytes);

/// Name of the message for logs: `executor_orders`.
template <class T>
std::string_view codec_name() noexcept;

} // namespace troupe
