#pragma once

/// Messages that only actors of one process can send each other.

#include <memory>
#include <type_traits>
#include <utility>

#include <caf/allowed_unsafe_message_type.hpp>

#include <troupe/messages/boxed.hpp>

namespace troupe {

/// A `T` that was said in this process. It is announced to no actor system and has no wire form, so CAF can neither
/// write one to a connection nor read one from it, whatever a packet claims. A handler that takes it needs no gate.
/// Shared with everyone who has the message, immutable.
template <class T>
class local_message {
public:
  using value_type = T;

  /// @pre `value` is not null
  explicit local_message(std::shared_ptr<const T> value) noexcept : value_(std::move(value)) {}

  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }
  /// The value itself, to keep or to pass on.
  const std::shared_ptr<const T>& shared() const noexcept { return value_; }

private:
  std::shared_ptr<const T> value_;
};

namespace detail {
template <class T>
inline constexpr bool is_boxed = false;
template <class T>
inline constexpr bool is_boxed<boxed<T>> = true;
} // namespace detail

/// Wraps a value for an actor of this process.
template <class T>
requires(!detail::is_boxed<std::remove_cvref_t<T>>) local_message<std::remove_cvref_t<T>> local(T&& value) {
  using plain = std::remove_cvref_t<T>;
  return local_message<plain>{std::make_shared<const plain>(std::forward<T>(value))};
}
/// Says in this process what came in a box: the caller vouches for it.
template <class T>
local_message<T> local(const boxed<T>& received) {
  return local_message<T>{received.shared()};
}

} // namespace troupe

template <class T>
struct caf::allowed_unsafe_message_type<troupe::local_message<T>> : std::true_type {};
