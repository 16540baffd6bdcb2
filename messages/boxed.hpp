#pragma once

/// How a plain struct travels: wrapped once, shared from then on. Within one process nothing is encoded or copied;
/// between processes the box is encoded when it is sent and checked when it is received (see codec.hpp).

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <troupe/messages/caf_compat.hpp>
#include <troupe/messages/codec.hpp>
#include <troupe/runtime/result.hpp>

namespace troupe {

/// Counts a message whose bytes did not decode (or whose value could not be encoded) and calls the hook. Called by
/// `boxed` on CAF's threads.
void note_malformed(const error& why) noexcept;
/// How many messages of this process were malformed. Any thread.
std::uint64_t malformed_messages() noexcept;
/// Sets what is called for each malformed message, on whichever thread met it; an empty function takes it away. For
/// logs; the hook must not throw and must not set hooks. Any thread.
void on_malformed(std::function<void(const error&)> hook);

/// An immutable `T` that is shared with everyone who has the message. Never null when `box` made it; a message whose
/// bytes do not decode never reaches a handler (CAF hands an empty message to the default handler instead).
template <class T>
class boxed {
public:
  using value_type = T;

  /// Holds nothing; for CAF, which makes an object before it decodes into it.
  boxed() = default;
  /// @pre `value` is not null
  explicit boxed(std::shared_ptr<const T> value) noexcept : value_(std::move(value)) {}

  /// @pre made by `box` or received
  const T& operator*() const noexcept { return *value_; }
  const T* operator->() const noexcept { return value_.get(); }
  /// The value itself, to keep or to pass on.
  const std::shared_ptr<const T>& shared() const noexcept { return value_; }
  /// True when the value was decoded from bytes, so that another process may have said it; false when `box` made it
  /// here. No packet can choose: decoding sets it.
  bool from_wire() const noexcept { return from_wire_; }

  /// Equal content.
  friend bool operator==(const boxed& a, const boxed& b) {
    return a.value_ == b.value_ || (a.value_ && b.value_ && *a.value_ == *b.value_);
  }

  /// For CAF alone: writes or reads the encoded value.
  template <class Inspector>
  friend auto inspect(Inspector& f, boxed& x) {
    return inspect_bytes(
        f, x, codec_name<T>(), [&x](std::string& bytes) { return x.save(bytes); },
        [&x](const std::string& bytes) { return x.load(bytes); });
  }

private:
  bool save(std::string& bytes) const {
    auto encoded = value_ ? encode(*value_) : result<std::string>{make_error(ec::internal, "an empty box was sent")};
    if (!encoded) {
      note_malformed(encoded.error());
      return false;
    }
    bytes = *std::move(encoded);
    return true;
  }

  bool load(const std::string& bytes) {
    auto decoded = decode<T>(bytes);
    if (!decoded) {
      note_malformed(decoded.error());
      return false;
    }
    value_ = std::make_shared<const T>(*std::move(decoded));
    from_wire_ = true;
    return true;
  }

  std::shared_ptr<const T> value_;
  bool from_wire_ = false;
};

/// Wraps a value for sending.
template <class T>
boxed<std::remove_cvref_t<T>> box(T&& value) {
  using plain = std::remove_cvref_t<T>;
  return boxed<plain>{std::make_shared<const plain>(std::forward<T>(value))};
}
/// Sends on a value that is shared already. @pre not null
template <class T>
boxed<T> box(std::shared_ptr<const T> value) {
  return boxed<T>{std::move(value)};
}

} // namespace troupe
