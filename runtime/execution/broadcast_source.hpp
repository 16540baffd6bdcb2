#pragma once

/// Broadcasts as tasks see them: values that a program has made once, and that every process which runs its tasks has
/// once.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <typeindex>

#include <troupe/runtime/ids.hpp>

namespace troupe {

/// Where a broadcast is to be had; travels in the captures of functions.
struct broadcast_reference {
  broadcast_id id;
  std::string host; ///< of the program's block server; "": the driver's
  std::uint16_t port = 0;

  auto operator<=>(const broadcast_reference&) const = default;
};

/// A value to be broadcast.
struct broadcast_content {
  std::shared_ptr<const void> value;
  std::type_index type = typeid(void);
  std::function<std::string()> encode; ///< for other processes; called at most once, before `publish` returns
};

/// Any thread.
class broadcast_source {
public:
  using decoder = std::function<std::shared_ptr<const void>(std::string_view encoded)>;

  virtual ~broadcast_source() = default;
  /// The value, which is decoded once for all that ask for it. Waits until it is there; throws std::runtime_error where
  /// it cannot be had, std::logic_error where it was asked for as another type before, and what `decode` throws.
  virtual std::shared_ptr<const void> get(const broadcast_reference& which, std::type_index type,
                                          const decoder& decode) = 0;
  /// Its program needs it no longer. Whoever has the value keeps it.
  virtual void drop(broadcast_id id) = 0;
};

} // namespace troupe
